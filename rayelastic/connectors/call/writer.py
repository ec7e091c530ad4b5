"""A sink that calls the user's function with each tuple, or an object that also takes part in checkpoints.

docs/reference/calls_of_objects.md lists the calls of such an object, and its duties in each. A number is prepared once:
checkpoints count upwards over all restarts, and none is prepared after the end of the stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from rayelastic import _native
from rayelastic.compile import Flags
from rayelastic.compile.lanes.python_lane import call_each, error_text, marked, position
from rayelastic.connectors.call.declaration import CallSink, Committing, commits
from rayelastic.connectors.output.record import BlobStore, Output
from rayelastic.connectors.problem import Problem
from rayelastic.connectors.sink import NewSink, SinkOperator
from rayelastic.errors import SinkError
from rayelastic.graph.spec.user_objects import FLUSH, method_of


def call_sink(new: NewSink, body: CallSink) -> SinkOperator:
    """Make a sink that calls the user's function or object.

    Raises:
        SinkError: Its object can't be restored.
    """
    try:
        called = Called(body, new.output)
    except Exception as error:  # whatever the user's object raises
        raise SinkError(
            f"it can't be restored to the checkpoint: {error_text(error)}",
            hint="Check its methods commit and abort",
        ) from error
    problem, shown, flags = Problem(), new.schema.tuple_type, Flags.SINK | Flags.NEEDS_TOKEN
    native = _native.Operator.python(new.spec.name, problem.of(called.run), new.native, None, shown, flags=flags)
    return SinkOperator(native, called, new.before, stops=called.prepare, problem=problem)


class Called:
    """Calls the user's function or object with each tuple, and counts.

    Args:
        body: The description of the sink.
        before: Its output up to the restored checkpoint, if there is one.
    """

    def __init__(self, body: CallSink, before: Output | None) -> None:
        self._rows, self._epoch = (0, 0) if before is None else (before.rows, before.epoch)
        function: Any = body.function
        self._committing: Committing | None = function if commits(function) else None
        self._flush = method_of(body.function, FLUSH)
        self._call: Callable[[Sequence[Any]], None] = (
            self._numbered(body.function) if body.numbered else call_each(body.function)
        )
        self._is_prepared = False  # whether no tuple has arrived since the last number
        self._closed = False
        self._committed = threading.Lock()  # guards the fields below, because commits come from another thread
        self._due = 0  # the last number that is prepared and not committed
        if self._committing is not None:
            if self._epoch:
                self._committing.commit(self._epoch)
            self._committing.abort()

    def run(self, tuples: Sequence[Any]) -> None:
        """Call it with each of some tuples."""
        self._is_prepared = False
        self._call(tuples)
        self._rows += len(tuples)

    def prepare(self, epoch: int, store: BlobStore) -> Output:  # noqa: ARG002  (the object has a place of its own)
        """Flush it; an object that commits makes its tuples durable. Also when a job is stopped with a savepoint."""
        if not self._closed:
            self._prepare(epoch)
        return Output("", self._rows, epoch=epoch)

    def commit(self, epoch: int) -> None:
        """Notify an object that a checkpoint is complete."""
        if self._committing is not None:
            self._committing.commit(epoch)
            with self._committed:
                self._due = 0 if self._due <= epoch else self._due

    def close(self) -> None:
        """Flush it, and show what is hidden: the stream is at its end."""
        if not self._is_prepared:  # the job takes no checkpoints, so no other number follows
            self._prepare(self._epoch + 1)
        if self._due:
            self.commit(self._due)
        self._closed = True

    def output(self, rows: int, store: BlobStore) -> None:
        """Do nothing: `prepare` has its output."""

    def _prepare(self, epoch: int) -> None:
        if self._flush is not None:
            self._flush()
        if self._committing is not None:
            self._committing.prepare(epoch)
            with self._committed:
                self._due = epoch
        self._epoch = epoch
        self._is_prepared = True

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
