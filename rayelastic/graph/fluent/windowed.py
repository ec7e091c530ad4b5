"""Streams in windows: what users call `aggregate` on behind `window` and `session`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from rayelastic.graph.fluent.base import StreamBase, StreamT
from rayelastic.graph.operators.aggregates import AggregateSpec, TopK
from rayelastic.graph.operators.processes import window_process
from rayelastic.graph.operators.windows import Window, windowed
from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["WindowedStream"]


class WindowedStream(Generic[StreamT]):
    """Tuples in windows, waiting to be told what is to become of them; see ``Stream.window`` and ``Stream.session``."""

    __slots__ = ("_declare", "stream", "window")

    def __init__(self, stream: StreamBase[Any], window: Window, declare: Callable[[OperatorSpec], StreamT]) -> None:
        self.stream = stream
        self.window = window
        self._declare = declare

    def aggregate(self, name: str, /, **aggregates: AggregateSpec | TopK) -> StreamT:
        """Aggregate the tuples of each window, natively.

        Args:
            name: of the operator.
            aggregates: output field = rel.count(), rel.sum(field), ...; see ``Stream.aggregate``.

        Returns:
            A stream with one tuple a window: the key fields; of windows by time `start` and `end`, of the type of the
            event time (the end is no part of the window; a session's is its gap after its last tuple); the aggregates.
            Windows given at once are in the order of their end, then of their keys' hashes, however the job runs.
            `.late()` of it has the tuples that came too late.

        Raises:
            GraphError: no aggregate, or one named like a key field, `start` or `end`.
            SchemaError: unknown field, or one that can't be aggregated so.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("clicks")
        >>> rows = [(0, "a"), (4, "b"), (9, "a"), (11, "a"), (2, "b"), (31, "b")]
        >>> clicks = topology.source("clicks", rel.rows(rows, schema={"at": int, "user": str}))
        >>> counts = clicks.event_time("time", "at", lateness=5).window(seconds=10).aggregate("counts", n=rel.count())
        >>> counts.sink("out", rel.list())
        <sink out>
        >>> counts.late().sink("late", rel.list())
        <sink late>
        >>> result = rel.run(topology)
        >>> [tuple(t) for t in result["out"]], [tuple(t) for t in result["late"]]
        ([(0, 10, 4), (10, 20, 1), (30, 40, 1)], [])
        """
        return self._declare(windowed(self.stream._upstream, self.window, name, aggregates))

    def __repr__(self) -> str:
        return f"<{self.window} of {self.stream!r}>"

    def process(self, name: str, fn: Callable[..., Any], *, schema: object) -> StreamT:
        """Call a function once for each window of a key, with all of its tuples, when the window is complete.

        It runs in Python, and keeps the tuples until then; where an aggregate will do, that is much faster.

        Args:
            name: of the operator.
            fn: `fn(key, window, tuples)`: the values of the key fields; `window.start` and `window.end`, written as the
                event time is; the tuples in the order of their times. It yields or returns any number of tuples.
            schema: of what it gives, see Schema.of.

        Returns:
            A stream of what fn gives; `.late()` has the tuples that came behind the watermark.

        Raises:
            GraphError: a window by count, or of the whole stream; or fn is no such function.

        >>> import rayelastic as rel
        >>> def longest(key, window, tuples):
        ...     yield (*key, window.start, max((t.word for t in tuples), key=len))
        >>> topology = rel.Topology("longest")
        >>> rows = rel.rows([("x", "a", 1), ("x", "bb", 4), ("x", "c", 12)], {"k": str, "word": str, "at": int})
        >>> timed = topology.source("words", rows).event_time("time", "at").key_by("k")
        >>> schema = {"k": str, "start": int, "word": str}
        >>> timed.window(seconds=10).process("longest", longest, schema=schema).sink("out", rel.list())
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('x', 0, 'bb'), ('x', 10, 'c')]
        """
        return self._declare(window_process(self.stream._upstream, self.window, name, fn, schema))
