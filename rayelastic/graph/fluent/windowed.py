"""Streams in windows: what users call `aggregate` on behind `window` and `session`."""

from __future__ import annotations

from collections.abc import Callable
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn

from rayelastic.graph.fluent.base import StreamBase, StreamT
from rayelastic.graph.fluent.declarations import Declarations
from rayelastic.graph.fluent.naming import named
from rayelastic.graph.operators.aggregates import AggregateSpec, Emit, TopK
from rayelastic.graph.operators.gathering.combined import window_combine
from rayelastic.graph.operators.gathering.declared import (
    When,
    window_collect,
    window_fold,
    window_process,
    window_reduce,
    window_top,
)
from rayelastic.graph.operators.windows import Window, windowed
from rayelastic.graph.records.time_info import Seconds
from rayelastic.graph.spec.declaration import LaneChoice
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.words import STREAM, missing

__all__ = ["WindowedStream"]


class WindowedStream(Generic[StreamT]):
    """Tuples in windows, waiting to be told what is to become of them; see ``Stream.window`` and ``Stream.session``."""

    __slots__ = ("_declare", "stream", "window")
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)  # WindowedStream[T, K]: see stream.pyi

    if not TYPE_CHECKING:  # else every name would be there

        def __getattr__(self, word: str) -> NoReturn:
            if word.startswith("_"):
                raise AttributeError(f"a WindowedStream has no {word!r}")
            raise AttributeError(missing("a WindowedStream", word, dir(type(self)), STREAM))

    def __init__(self, stream: StreamBase[Any], window: Window, declare: Callable[[OperatorSpec], StreamT]) -> None:
        self.stream = stream
        self.window = window
        self._declare = declare

    @property
    def topology(self) -> Declarations:
        """The one that the stream belongs to."""
        return self.stream.topology

    @named
    def aggregate(self, *, name: str = "", **aggregates: AggregateSpec | TopK) -> StreamT:
        """Aggregate the tuples of each window, natively.

        Args:
            name: of the operator; by default 'aggregate'.
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
        >>> clicks = topology.source(rel.rows(rows, schema={"at": int, "user": str}), name="clicks")
        >>> counts = clicks.event_time("at", lateness=5).window(seconds=10).aggregate(n=rel.count())
        >>> counts.sink(rel.list(), name="out")
        <sink out>
        >>> counts.late().sink(rel.list(), name="late")
        <sink late>
        >>> result = rel.run(topology)
        >>> [tuple(t) for t in result["out"]], [tuple(t) for t in result["late"]]
        ([(0, 10, 4), (10, 20, 1), (30, 40, 1)], [])
        """
        return self._declare(windowed(self.stream._upstream, self.window, name, aggregates))

    def __repr__(self) -> str:
        return f"<{self.window} of {self.stream!r}>"

    @named
    def process(
        self,
        fn: Callable[..., Any],
        *,
        name: str = "",
        schema: object,
        emit: str | Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> StreamT:
        """Call a function once for each window of a key, with all of its tuples, when the window is complete.

        It runs in Python, and keeps the tuples until then; where an aggregate will do, that is much faster.

        Args:
            fn: `fn(key, window, tuples)`: the values of the key fields; `window.start` and `window.end`, written as the
                event time is; the tuples in the order of their times. It yields or returns any number of tuples.
            name: of the operator; by default the name of its function.
            schema: of what it gives, see Schema.of.
            emit: 'final': once; 'update': also after each tuple, with `window.final` False.
            every: or also so many seconds of event time after its start, and again, if tuples have come since.
            until: a function of a tuple: where it holds, what has come is given at once, as what is final, and the next
                tuple begins anew: another session or batch, or the rest of the window.

        Returns:
            A stream of what fn gives; `.late()` has the tuples that came behind the watermark.

        Raises:
            GraphError: a window by count, or of the whole stream; emit= of batches; or fn is no such function.

        >>> import rayelastic as rel
        >>> def longest(key, window, tuples):
        ...     yield (*key, window.start, max((t.word for t in tuples), key=len))
        >>> topology = rel.Topology("longest")
        >>> rows = rel.rows([("x", "a", 1), ("x", "bb", 4), ("x", "c", 12)], {"k": str, "word": str, "at": int})
        >>> timed = topology.source(rows, name="words").event_time("at", name="time").key_by("k")
        >>> schema = {"k": str, "start": int, "word": str}
        >>> timed.window(seconds=10).process(longest, name="longest", schema=schema).sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('x', 0, 'bb'), ('x', 10, 'c')]
        """
        return self._declare(
            window_process(self.stream._upstream, self.window, name, fn, schema, When(emit, every, until))
        )

    @named
    def combine(
        self,
        own: object,
        *,
        name: str = "",
        schema: object = None,
        emit: str | Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
        lane: LaneChoice = "auto",
    ) -> StreamT:
        """Aggregate the tuples of each window as a class of yours says; natively where its methods compile.

        Args:
            own: a class, or an object, with the methods of ``KeyedStream.combine``. Natively `merge(other, state)` is
                needed too, for windows that overlap and sessions that meet: merging into the state of nothing gives the
                other's.
            name: of the operator; by default the name of its class.
            schema: of what `result` gives, see Schema.of; found out by default.
            emit: as of ``process``; early results are given by Python.
            every: likewise.
            until: likewise, but a function of what `result` gives.
            lane: 'auto', 'compiled' or 'python'.

        Returns:
            A stream as of ``fold``, with what `result` gives.

        Raises:
            GraphError: a method is missing, or a field is called like a key; in Python as of ``process``.
            LaneError: lane='compiled' can't be had, or windows by count, or without keys, aren't compiled.

        >>> from typing import NamedTuple
        >>> import rayelastic as rel
        >>> class Prices(NamedTuple):
        ...     low: float = float("inf")
        ...     high: float = float("-inf")
        >>> class Spread:
        ...     init = Prices
        ...     def add(self, t, state):
        ...         state.low = min(state.low, t.price)
        ...         state.high = max(state.high, t.price)
        ...     def merge(self, other, state):
        ...         state.low = min(state.low, other.low)
        ...         state.high = max(state.high, other.high)
        ...     def result(self, state) -> float:
        ...         return state.high - state.low
        >>> topology = rel.Topology("spreads")
        >>> rows = rel.rows([("x", 7.0, 1), ("x", 5.0, 4), ("x", 9.0, 12)], {"k": str, "price": float, "at": int})
        >>> timed = topology.source(rows, name="offers").event_time("at", name="time").key_by("k")
        >>> timed.window(seconds=10).combine(Spread, name="spread").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('x', 0, 10, 2.0), ('x', 10, 20, 0.0)]
        """
        when = When(emit, every, until)
        return self._declare(window_combine(self.stream._upstream, self.window, name, own, schema, when, lane))

    @named
    def fold(
        self,
        fn: Callable[[Any, Any], Any],
        start: Any,
        *,
        name: str = "",
        schema: object = None,
        emit: str | Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> StreamT:
        """Give what has come together in each window of a key: `accumulated = fn(accumulated, t)`.

        In Python, in the order of the tuples' times; `aggregate` is native. Errors as of ``process``.

        Args:
            fn: of what came together and the next tuple.
            start: the first `accumulated`: a plain value, or a NamedTuple; copied.
            name: of the operator; by default the name of its function.
            schema: of what fn gives, see Schema.of; that of `start` by default.
            emit: as of ``process``.
            every: likewise.
            until: likewise, but a function of what came together.

        Returns:
            A stream of the key fields, `start` and `end` of the window, with emit='update' or every= `final`, where the
            window has lateness= `corrected`, then what came together; a plain value is called `value`. `.late()` as of
            ``process``.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("longest")
        >>> rows = rel.rows([("x", "a", 1), ("x", "bb", 4), ("x", "c", 12)], {"k": str, "word": str, "at": int})
        >>> timed = topology.source(rows, name="words").event_time("at", name="time").key_by("k")
        >>> timed.window(seconds=10).fold(lambda n, t: max(n, len(t.word)), 0, every=3).sink(rel.list(), name="out")
        <sink out>
        >>> for t in rel.run(topology)["out"]:
        ...     print(tuple(t))
        ('x', 0, 10, False, 1)
        ('x', 0, 10, False, 2)
        ('x', 0, 10, True, 2)
        ('x', 10, 20, False, 1)
        ('x', 10, 20, True, 1)
        """
        return self._declare(
            window_fold(self.stream._upstream, self.window, name, fn, start, schema, When(emit, every, until))
        )

    @named
    def reduce(
        self,
        fn: Callable[[Any, Any], Any],
        *,
        name: str = "",
        emit: str | Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> StreamT:
        """Make one tuple of all of a window of a key: `reduced = fn(reduced, t)`, the first being its first tuple.

        Arguments and errors as of ``fold``.

        Returns:
            A stream of the key fields, `start`, `end` and perhaps `final` as of ``fold``, then the other fields.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("best")
        >>> rows = rel.rows([("x", 7, 1), ("x", 5, 4), ("x", 9, 12)], {"k": str, "price": int, "at": int})
        >>> timed = topology.source(rows, name="offers").event_time("at", name="time").key_by("k")
        >>> best = timed.session(gap=5).reduce(lambda best, t: t if t.price < best.price else best, name="best")
        >>> best.sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('x', 1, 9, 5, 4), ('x', 12, 17, 9, 12)]
        """
        return self._declare(window_reduce(self.stream._upstream, self.window, name, fn, When(emit, every, until)))

    @named
    def top(
        self,
        k: int,
        by: str,
        *,
        name: str = "",
        least: bool = False,
        emit: str | Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> StreamT:
        """Give the k tuples of each window of a key that have the largest values of a field, whole.

        Args:
            k: how many, 1 or more.
            by: the field; tuples where it is null, or no number, are left out.
            name: of the operator; by default 'top'.
            least: whether the least ones are wanted.
            emit: as of ``process``.
            every: likewise.
            until: likewise.

        Returns:
            A stream of the key fields, `start`, `end` and perhaps `final` as of ``fold``, `place` from 1 on, then the
            other fields; the best first, of equal ones the one that came first.

        Raises:
            GraphError: no such field, or k is no number of tuples; as of ``process``.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("largest")
        >>> rows = rel.rows([("x", 7, 1), ("x", 5, 4), ("x", 9, 6)], {"k": str, "price": int, "at": int})
        >>> timed = topology.source(rows, name="offers").event_time("at", name="time").key_by("k")
        >>> timed.window(seconds=10).top(2, "price", name="largest").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('x', 0, 10, 1, 9, 6), ('x', 0, 10, 2, 7, 1)]
        """
        return self._declare(
            window_top(self.stream._upstream, self.window, name, k, by, least, When(emit, every, until))
        )

    @named
    def collect(
        self,
        *,
        name: str = "",
        emit: str | Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> StreamT:
        """Give all tuples of each window of a key together, in the order of their times, when it is complete.

        Arguments and errors as of ``process``, which gives lists to a function instead.

        Returns:
            A stream of the key fields, `start`, `end` and perhaps more as of ``fold``, `place` from 1 on, then the
            other fields.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("baskets")
        >>> scanned = [("x", "tea", 4), ("x", "milk", 1), ("x", "pay", 6), ("x", "rice", 7)]
        >>> rows = rel.rows(scanned, {"k": str, "what": str, "at": int})
        >>> timed = topology.source(rows, name="scanned").event_time("at", name="time", lateness=5).key_by("k")
        >>> baskets = timed.session(gap=60).collect(name="baskets", until=lambda t: t.what == "pay")
        >>> baskets.map(lambda t: (t.start, t.place, t.what), name="short").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [(1, 1, 'milk'), (1, 2, 'tea'), (1, 3, 'pay'), (7, 1, 'rice')]
        """
        return self._declare(window_collect(self.stream._upstream, self.window, name, When(emit, every, until)))
