"""A sink that calls what the user gave: a function of each tuple, or an object that also takes part in checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rayelastic.compile.lanes.python_lane import call_each, marked, position
from rayelastic.graph.edges.sinks import CallSink, Committing
from rayelastic.runtime.files.outputs import BlobStore, Output

__all__ = ["Called"]


class Called:
    """Calls it, and counts.

    Args:
        body: the description of the sink.
        before: what it had taken up to the checkpoint that it goes on from, if there is one.
    """

    def __init__(self, body: CallSink, before: Output | None) -> None:
        self._rows, self._epoch = (0, 0) if before is None else (before.rows, before.epoch)
        self._committing = body.function if isinstance(body.function, Committing) else None
        self._call: Callable[[Sequence[Any]], None] = (
            self._numbered(body.function) if body.numbered else call_each(body.function)
        )
        if self._committing is not None:
            if self._epoch:
                self._committing.commit(self._epoch)
            self._committing.abort()

    def run(self, tuples: Sequence[Any]) -> None:
        """Calls it with each of some tuples."""
        self._call(tuples)
        self._rows += len(tuples)

    def prepare(self, epoch: int, store: BlobStore) -> Output:  # noqa: ARG002  (the object has a place of its own)
        """Has an object make what it got outlive the process."""
        if self._committing is not None:
            self._committing.prepare(epoch)
        self._epoch = epoch
        return Output("", self._rows, epoch=epoch)

    def commit(self, epoch: int) -> None:
        """Tells an object that a checkpoint is complete."""
        if self._committing is not None:
            self._committing.commit(epoch)

    def close(self) -> None:
        """Has an object show the rest: the stream is at its end."""
        if self._committing is not None:
            self._committing.prepare(self._epoch + 1)
            self._committing.commit(self._epoch + 1)

    def output(self, rows: int) -> None:
        """Leaves nothing that a later run meets here."""

    def _numbered(self, function: Callable[..., Any]) -> Callable[[Sequence[Any]], None]:
        def run(tuples: Sequence[Any]) -> None:
            rest, epoch = iter(tuples), self._epoch + 1
            try:
                for number, item in enumerate(rest, self._rows):
                    function(item, epoch, number)
            except BaseException as error:
                marked(error, position(tuples, rest))
                raise

        return run
