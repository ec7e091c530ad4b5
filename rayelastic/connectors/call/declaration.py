"""A Python function as a sink, or an object that takes part in checkpoints."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rayelastic.connectors.description import Sink
from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.concurrency import is_async
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.user_objects import FLUSH, LIFE, check_object, has_method


class Committing(Protocol):
    """An object for `rel.call` that takes part in the checkpoints of the job.

    It is called with each tuple, and hides it from readers until a checkpoint is complete. So readers see each tuple
    exactly once. An epoch is the part of the stream between two checkpoints. A job that takes checkpoints ends with
    one; a job without checkpoints has one epoch, which is prepared and committed at its end.
    `rayelastic.testing.check_sink` drives such an object through its calls, with a crash between each two.
    """

    def __call__(self, t: Any, /) -> Any:
        """Write a tuple of the current epoch."""
        ...

    def prepare(self, epoch: int, /) -> None:
        """Make the tuples since the last call durable but hidden, under the number of an epoch.

        Numbers increase, over all restarts; they may have gaps.
        """
        ...

    def commit(self, epoch: int, /) -> None:
        """Show the tuples of an epoch and those before. May be called twice, from another thread and process."""
        ...

    def abort(self) -> None:
        """Drop prepared tuples that aren't committed. Called before the first tuple, after the commit of a restart."""
        ...


_COMMITS = ("prepare", "commit", "abort")


def commits(function: object) -> bool:
    """Return whether it is an object that takes part in checkpoints."""
    return all(has_method(function, name) for name in _COMMITS)


@dataclass(frozen=True, slots=True)
class CallSink(Sink):
    """Calls a Python function with each tuple; with `numbered` also with its epoch and its number in the stream."""

    function: Callable[..., Any]
    numbered: bool = False
    lane: Lane = Lane.PYTHON
    reason: str = "a Python function called with each tuple"
    object_field = "function"

    @property
    def shows_rows(self) -> bool:  # type: ignore[override]  # of the object
        """Whether its object takes part in checkpoints."""
        return commits(self.function)

    def check(self, operator: str) -> None:
        """Raise SinkError if it isn't a function, or is an object with methods that are never called."""
        function: Any = self.function
        if not builtins.callable(function) or isinstance(function, type):
            raise SinkError(
                f"rel.call needs a function, not {shown(function)}",
                operator=operator,
                hint="Pass the function itself, or an object, not what it returns and not its class",
                code=ErrorCode.NOT_A_FUNCTION,
            )
        code = function if inspect.isroutine(function) else type(function).__call__
        if is_async(function) or inspect.isgeneratorfunction(code):
            what = "is async" if is_async(function) else "yields"
            raise SinkError(
                f"rel.call got a function that {what}: nothing would run it",
                operator=operator,
                hint="Make it a plain function; async work goes into a flat_map before the sink",
                code=ErrorCode.ASYNC_FUNCTION,
            )
        check_object(function, (*LIFE, FLUSH), error=SinkError)
        methods = [name for name in _COMMITS if has_method(function, name)]
        if methods and len(methods) < len(_COMMITS):
            lacks = [name for name in _COMMITS if name not in methods]
            raise SinkError(
                f"its class {type(function).__name__} has {methods[0]}(), but no {lacks[0]}(): none would be called",
                operator=operator,
                hint=f"Write {', '.join(_COMMITS)}, or only flush() for at least once",
                code=ErrorCode.MISSING_METHOD,
            )


def call(function: Callable[..., Any], *, numbered: bool = False) -> CallSink:
    """Call a Python function with each tuple, in order, never from two threads at once.

    A job that restores a checkpoint calls it again with the tuples after it: at least once. For exactly once, the
    function drops repeated tuples by their number. Or pass an object that also has the methods `prepare`,
    `commit` and `abort`, and hides its tuples until a checkpoint is complete (`Committing`).

    An object may have `initialize()`, called before the first tuple, `flush()`, called at each checkpoint and at the
    end, and `shutdown()`, called at the end. With checkpoints each start copies the object.

    Args:
        function: A function of one tuple, or such an object; its return value is ignored.
        numbered: Call it with the tuple, a number of its epoch, and its own number in the stream. The epoch is higher
            than all prepared ones. The tuple's number counts from 0 and is the same after a restart.

    Raises:
        SinkError: At the declaration, if it is async, yields, or has methods that are never called.

    >>> import rayelastic as rel
    >>> seen = {}
    >>> topology = rel.Topology("once")
    >>> letters = topology.source(rel.rows([("a",), ("b",)], schema={"letter": str}), name="letters")
    >>> letters.sink(rel.call(lambda t, epoch, number: seen.setdefault(number, t.letter), numbered=True), name="seen")
    <sink seen>
    >>> rel.run(topology)["seen"], seen
    (2, {0: 'a', 1: 'b'})
    """
    return CallSink(function, numbered)


def print() -> CallSink:  # noqa: A001  (the public name is rel.print)
    """Print each tuple on standard output, of the process that runs the sink.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("letters")
    >>> topology.source(rel.rows([("a",), ("b",)], {"letter": str})).sink(rel.print(), name="out")
    <sink out>
    >>> rel.run(topology)["out"]
    Record(letter='a')
    Record(letter='b')
    2
    """
    return call(builtins.print)
