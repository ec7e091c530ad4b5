"""Collects tuples until the job returns them, or counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.connectors.output.kept_rows import KeptRows
from rayelastic.connectors.output.record import BlobStore, Output
from rayelastic.connectors.sink import NewSink, SinkOperator

if TYPE_CHECKING:
    from rayelastic.connectors.memory.declaration import CountSink


def collecting_sink(new: NewSink, body: object) -> SinkOperator:  # noqa: ARG001  (the driver makes its result of the table)
    """Make a sink that collects its rows into a table."""
    past = new.past
    rows = KeptRows(new.schema, new.blobs, new.output, past.store, past.keep, own=past.own)
    return SinkOperator(new.batches(rows.write), rows, new.before)


def count_sink(new: NewSink, body: CountSink) -> SinkOperator:  # noqa: ARG001  (it has no settings)
    """Make a native sink that counts its tuples."""
    native = _native.Operator.count_sink(new.spec.name, new.native)
    return SinkOperator(native, Counted(lambda: native.count or 0, new.before), new.before)


class Counted:
    """The writer of a sink whose only result is a number.

    Args:
        received: Returns the number of rows received in this run.
        before: The number of rows of earlier runs.
    """

    def __init__(self, received: Callable[[], int], before: int) -> None:
        self._received = received
        self._before = before

    def prepare(self, epoch: int, store: BlobStore) -> Output:  # noqa: ARG002  (a number needs no blob)
        """Return the number."""
        return Output("", self._before + self._received(), epoch=epoch)

    def commit(self, epoch: int) -> None:
        """Do nothing: there is nothing to show."""

    def close(self) -> None:
        """Return None: there is no result."""

    def output(self, rows: int, store: BlobStore) -> None:
        """Return None: a later run finds nothing."""
