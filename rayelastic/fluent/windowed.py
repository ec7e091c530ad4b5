"""Streams of windows: what `window` and `session` return, and users call `aggregate` on."""

from __future__ import annotations

from collections.abc import Callable
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn

from rayelastic.fluent.base import StreamBase, StreamT
from rayelastic.fluent.declarations import Declarations
from rayelastic.fluent.naming import named
from rayelastic.fluent.tables import TotalMethods
from rayelastic.graph.operators.aggregates import AggregateSpec, Emit, Named, TopK
from rayelastic.graph.operators.aggregation import by_name
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
from rayelastic.graph.spec.declaration import LaneChoice, declaring
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.words import STREAM, missing


class WindowedStream(TotalMethods, Generic[StreamT]):
    """Tuples in windows, before they are aggregated; see ``Stream.window`` and ``Stream.session``.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("minutes")
    >>> clicks = topology.source(rel.rows([(0,), (20,), (70,)], schema={"at": int}), name="clicks").event_time("at")
    >>> minutes = clicks.window(seconds=60)
    >>> minutes.topology.name
    'minutes'
    >>> minutes.aggregate(clicks=rel.count()).sink(rel.list(), name="out")
    <sink out>
    >>> [tuple(t) for t in rel.run(topology)["out"]]
    [(0, 60, 2), (60, 120, 1)]
    """

    __slots__ = ("_declare", "stream", "window")
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)  # WindowedStream[T, K]: see stream.pyi

    if not TYPE_CHECKING:  # otherwise type checkers would accept every name

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
        """The stream's topology."""
        return self.stream.topology

    @named
    def aggregate(
        self, *named_ones: AggregateSpec | Named, name: str = "", **aggregates: AggregateSpec | TopK
    ) -> StreamT:
        """Aggregate the tuples of each window, natively.

        Args:
            name: The operator's name; 'aggregate' by default.
            named_ones: As of ``Stream.aggregate``.
            aggregates: output field = rel.count(), rel.sum(field), ...; see ``Stream.aggregate``.

        Returns:
            A stream with one tuple for each window: the key fields, then the aggregates. Windows by time have `start`
            and `end` in between, of the type of the event time; `window_start` and `window_end` if a key or an
            aggregate has one of these names. The end is exclusive. A session ends its gap after its
            last tuple. Windows that are emitted together are in the order of their ends, then of their keys' hashes,
            however the job runs. Its `.late()` has the late tuples.

        Raises:
            GraphError: No aggregate, or one with the name of a key field.
            SchemaError: An unknown field, or one that can't be aggregated so.

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
        up = self.stream._upstream
        with declaring(up.called, caller_location()):
            aggregates = {**by_name(named_ones, aggregates)}
        return self._declare(windowed(up, self.window, name, aggregates))

    agg = aggregate

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

        It runs in Python, and keeps the tuples until then; an aggregate is much faster.

        Args:
            fn: `fn(key, window, tuples)`: the values of the key fields; `window.start` and `window.end`, of the type of
                the event time; the tuples in the order of their times. It yields or returns any number of tuples.
            name: The operator's name; its function's by default.
            schema: The schema of its output, see Schema.of.
            emit: 'final': once; 'update': also after each tuple, with `window.final` False.
            every: Or also every so many seconds of event time after its start, if tuples have arrived since.
            until: A predicate of a tuple. Where it holds, the tuples so far are emitted at once, as a final result. The
                next tuple begins anew: another session or batch, or the rest of the window.

        Returns:
            A stream of what fn returns; `.late()` has the tuples behind the watermark.

        Raises:
            GraphError: A window by count, or of the whole stream; emit= of batches; or fn isn't such a function.

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
        """Aggregate the tuples of each window by a class of yours; natively if its methods compile.

        Args:
            own: A class, or an object, with the methods of ``KeyedStream.combine``. Natively, windows that overlap and
                sessions that meet need `merge(other, state)`, too: merging into the initial state must equal the other.
            name: The operator's name; its class's by default.
            schema: The schema of what `result` returns, see Schema.of; inferred by default.
            emit: As for ``process``; early results run in Python.
            every: As for ``process``, in Python.
            until: As for ``process``, in Python, but a function of what `result` returns.
            lane: 'auto', 'compiled' or 'python'.

        Returns:
            A stream as of ``fold``, with what `result` returns.

        Raises:
            GraphError: A method is missing, or a field has the name of a key; in Python as for ``process``.
            LaneError: lane='compiled' is unsupported: the methods don't compile, or windows by count, or without keys.

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
        """Emit the accumulated value of each window of a key: `accumulated = fn(accumulated, t)`.

        Tuples are taken in the order of their times. It is compiled for windows by event time, sessions and batches,
        if fn compiles, without early results. `start` must be a plain value or a NamedTuple. Otherwise it runs in
        Python. Errors are then those of ``process``.

        Args:
            fn: A function of the accumulated value and the next tuple.
            start: The first `accumulated`: a plain value, or a NamedTuple; copied.
            name: The operator's name; its function's by default.
            schema: The schema of what fn returns, see Schema.of; that of `start` by default.
            emit: As for ``process``.
            every: As for ``process``.
            until: As for ``process``, but a predicate of the accumulated value.

        Returns:
            A stream of the key fields, `start` and `end` of the window, then the accumulated value; a plain value is
            named `value`. In between is `final` with emit='update' or every=, and `corrected` if the window has
            lateness=. `.late()` as for ``process``.

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
        """Reduce the tuples of a window of a key to one: `reduced = fn(reduced, t)`, starting with its first tuple.

        Arguments, execution mode and errors as for ``fold``.

        Returns:
            A stream of the key fields, `start`, `end` and perhaps `final` as for ``fold``, then the other fields.

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
        """Emit the k tuples of each window of a key that have the largest values of a field.

        Args:
            k: How many, 1 or more.
            by: The field; tuples in which it is null or NaN are left out.
            name: The operator's name; 'top' by default.
            least: Whether to emit the smallest ones instead.
            emit: As for ``process``; early results run in Python.
            every: As for ``process``, in Python.
            until: As for ``process``, in Python.

        It is native, and keeps k tuples of each window, or of each slice that windows share. Batches, windows by the
        clock and sessions whose gaps are in their tuples run in Python. So does a field of enums or lists.

        Returns:
            A stream of the key fields, `start`, `end` and perhaps `final` as for ``fold``, `place` from 1 on, then the
            other fields. The best is first; of equal ones, the one with the earliest event time, then the first to
            arrive. Windows by count have no `start` and `end`.

        Raises:
            GraphError: An unknown field, or k isn't a positive number; in Python as for ``process``.

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
        """Emit all tuples of each window of a key together, in the order of their times, when it is complete.

        Arguments and errors as for ``process``, which passes lists to a function instead.

        Returns:
            A stream of the key fields, `start`, `end` and perhaps more as for ``fold``, `place` from 1 on, then the
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
