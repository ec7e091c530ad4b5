"""A sink that is ready to run: its native operator, what that writes to, and how both go through checkpoints."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rayelastic.compile.lanes.python_lane import error_text
from rayelastic.errors import SinkError, SinkLostError, SinkTakenError, StateError, is_outage
from rayelastic.runtime.files.outputs import BlobStore, Output
from rayelastic.runtime.readers.problem import Problem

if TYPE_CHECKING:
    from rayelastic import _native

__all__ = ["Counted", "OwnedWriter", "Past", "SinkOperator", "Writer"]

T = TypeVar("T")
CHECK = "Check rights, space and connection"  # what a user can do about a sink that can't write


@dataclass(frozen=True, slots=True)
class Past:
    """What sinks go on from, and how.

    Args:
        outputs: what the run to go on from has written, by sink; a sink that writes to the same place goes on there.
        store: the blobs of the checkpoint to go on from.
        by_epoch: whether the job makes checkpoints: what sinks write stays hidden until one is complete.
        keep: how many complete checkpoints may be gone back to.
        own: whether that run was of this very job, which was lost.
        run: names this run of the job, whatever is lost of it.
        job: the name of the job.
    """

    outputs: Mapping[str, Output] = field(default_factory=dict)
    store: BlobStore | None = None
    by_epoch: bool = False
    keep: int = 1
    own: bool = False
    run: str = ""
    job: str = ""

    def kept(self, sink: str) -> Output | None:
        """What a sink had taken up to the checkpoint that keeps its rows in memory."""
        output = self.outputs.get(sink)
        return output if output is not None and output.epoch and not output.location else None

    def taken(self, sink: str) -> int:
        """How many rows a sink had taken up to the checkpoint."""
        output = self.outputs.get(sink)
        return output.rows if output is not None and output.epoch else 0


class Writer(Protocol):
    """Takes what a sink gets, epoch by epoch. One thread at a time calls it, but for `commit`."""

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Make everything so far outlive the process; a checkpoint counts on it."""
        ...

    def commit(self, epoch: int) -> None:
        """The checkpoint is complete. May come late, twice or not at all, from any thread."""
        ...

    def close(self) -> Any:
        """Show what isn't shown yet, and return what the sink leaves.

        A job that takes checkpoints prepares and commits all rows before. `prepare` may follow, and repeats what is
        there.
        """
        ...

    def output(self, rows: int, store: BlobStore) -> Output | None:
        """What is written when this run has taken so many rows and is closed; None: nothing that a later run meets."""
        ...


class OwnedWriter(Writer, Protocol):
    """A writer to a place that one run has at a time. It looks when it is made, and changes nothing before `begin`."""

    def write(self, batch: Any) -> None:
        """Take a batch."""
        ...

    def begin(self) -> str:
        """Brings what is there to where it was at the checkpoint; returns what it took back, in words."""
        ...

    def abandon(self) -> None:
        """Lets others have the place; what isn't shown stays hidden. Safe to repeat."""
        ...


class SinkOperator:
    """A sink, ready to be added to a scheduler.

    Args:
        native: the operator.
        writer: what it gives its rows to.
        before: rows that it had taken up to the checkpoint that it goes on from.
        abandon: ends what the writer does by itself.
        stops: prepares under the number at which a job is stopped; None: `output` says what it will leave.
        begin: has the writer change what is there for the first time; every sink of the job has looked at it then.
    """

    def __init__(
        self,
        native: _native.Operator,
        writer: Writer,
        before: int,
        abandon: Callable[[], None] = lambda: None,
        stops: Callable[[int], Output] | None = None,
        begin: Callable[[], str] = str,
        problem: Problem | None = None,
    ) -> None:
        self._problem = problem or Problem()  # of what the native operator calls
        self.native = native
        self.before = before
        self.abandon = abandon
        self._stops = stops
        self.begin = begin
        self._writer = writer
        self._lock = threading.Lock()
        self._closed = False
        self._value: Any = None
        self._failure: Exception | None = None

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Make all that it has taken outlive the process, while it is held, or at its end.

        Args:
            epoch: of the checkpoint; each is larger than the one before.
            store: takes what isn't written anywhere else.

        Raises:
            SinkError: it can't be written. The sink may have lost rows: neither another checkpoint nor the job's end
                gets past it.
            StateError: the checkpoint can't be written.
        """
        return self._written(lambda: self._writer.prepare(epoch, store))

    def stop(self, epoch: int, rows: int, store: BlobStore) -> Output | None:
        """Return what it will have written once it is closed, when it has taken so many rows in this run.

        Args:
            epoch: a number that no checkpoint has.
            rows: that it has taken.
            store: takes what isn't written anywhere else.

        Raises:
            SinkError: as `prepare` does.
        """
        stops = self._stops
        return self._written(lambda: self._writer.output(rows, store) if stops is None else stops(epoch))

    def commit(self, epoch: int) -> None:
        """Show what was prepared for an epoch, whose checkpoint is complete, and those before; safe to repeat.

        Raises:
            SinkError: it can't be shown now; the next commit shows it, too.
        """
        try:
            self._writer.commit(epoch)
        except SinkError:
            raise
        except Exception as error:
            raise SinkError(f"it can't show what it has written: {error_text(error)}", hint=CHECK) from error

    def close(self) -> Any:
        """End the sink, once, and return what it leaves.

        Raises:
            SinkError: it can't be written or shown.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if not self._closed:
                try:
                    self._value = self._writer.close()
                except SinkError:
                    raise
                except Exception as error:
                    raise SinkError(f"it can't be completed: {error_text(error)}", hint=CHECK) from error
                self._closed = True
            return self._value

    def _written(self, write: Callable[[], T]) -> T:
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                self.native.flush()
                return write()
            except StateError:
                raise
            except (SinkLostError, SinkTakenError) as error:
                self._failure = error
                raise
            except Exception as error:
                lost = self._problem.error
                self._failure = (
                    lost
                    if lost is not None and is_outage(lost)
                    else SinkError(f"it can't be written: {error_text(error)}", hint=CHECK)
                )
                raise self._failure from error


class Counted:
    """Of a sink that leaves nothing but a number.

    Args:
        taken: rows that it has taken in this run.
        before: and before it.
    """

    def __init__(self, taken: Callable[[], int], before: int) -> None:
        self._taken = taken
        self._before = before

    def prepare(self, epoch: int, store: BlobStore) -> Output:  # noqa: ARG002  (a number needs no blob)
        """Tells the number."""
        return Output("", self._before + self._taken(), epoch=epoch)

    def commit(self, epoch: int) -> None:
        """Has nothing to show."""

    def close(self) -> None:
        """Leave nothing."""

    def output(self, rows: int, store: BlobStore) -> None:
        """Leave nothing that a later run meets."""
