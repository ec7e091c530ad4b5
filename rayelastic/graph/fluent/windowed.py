"""Streams in windows: what users call `aggregate` on behind `window` and `session`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from rayelastic.graph.fluent.base import StreamBase, StreamT
from rayelastic.graph.operators.aggregates import AggregateSpec, TopK
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
