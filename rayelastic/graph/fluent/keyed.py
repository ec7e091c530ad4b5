"""Methods of streams with keys: operators that keep state by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from rayelastic.graph.fluent.base import StreamBase, StreamT
from rayelastic.graph.fluent.functions import ErrorChoice
from rayelastic.graph.fluent.naming import named
from rayelastic.graph.operators.aggregates import Emit
from rayelastic.graph.operators.functions import NO_SIDES, deduplicate, function_operator
from rayelastic.graph.operators.gathering.combined import combine
from rayelastic.graph.operators.gathering.folds import fold, reduce, scan
from rayelastic.graph.operators.patterns import Pattern, match
from rayelastic.graph.operators.processes import process
from rayelastic.graph.records.time_info import Lifetime
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.declaration import LaneChoice
from rayelastic.graph.spec.operator_spec import OperatorKind

__all__ = ["KeyedMethods"]


class KeyedMethods(StreamBase[StreamT]):
    """Operators that depend on the keys of the stream."""

    __slots__ = ()

    @named
    def map(
        self,
        fn: Callable[..., Any],
        *,
        name: str = "",
        state: Callable[[], Any] | None = None,
        ttl: Lifetime | None = None,
        schema: object = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        sides: Mapping[str, object] = NO_SIDES,
        concurrent: Concurrency | None = None,
    ) -> StreamT:
        """Give one tuple for each; with state= by a function of the tuple and the state of its key.

        Args:
            fn: `fn(t)`, or `fn(t, s)` with state=.
            name: of the operator; by default the name of its function.
            state: NamedTuple class with defaults, whose fields fn sets (fixed layout, can be compiled), or any callable
                without arguments that makes a key's first state (python lane).
            ttl: seconds, or a timedelta, without a tuple of a key after which its state is forgotten, so that its next
                tuple finds the first state again; None: never. See below. A rel.Ttl counts since the key's first tuple,
                or since the last one that changed its state, instead.
            schema: of what it gives, see Schema.of; found out by default.
            lane: 'auto', 'compiled', 'vectorised' or 'python'.
            on_error: as of Stream.map.
            sides: as of Stream.map.
            concurrent: as of Stream.map; not with state=.

        Where the stream has an event time, ttl is of that time: a key is forgotten for a tuple whose time, or the
        watermark, is more than ttl after the latest tuple of the key. What comes out then depends on the tuples alone,
        as long as none is late. Else it goes by the clock, read once for each run of tuples; while a job is stopped
        into a snapshot that clock stands still. The memory of keys that don't come again is freed bit by bit, as
        others come.

        Source: StateTtlConfig of Apache Flink, as with OnReadAndWrite and NeverReturnExpired.

        >>> from typing import NamedTuple
        >>> import rayelastic as rel
        >>> class Count(NamedTuple):
        ...     n: int = 0
        >>> def count(t, s):
        ...     s.n += 1
        ...     return s.n
        >>> topology = rel.Topology("visits")
        >>> rows = rel.rows([("a", 0), ("b", 40), ("a", 60), ("a", 200)], schema={"who": str, "at": int})
        >>> timed = topology.source(rows, name="visits").event_time("at", name="time")
        >>> timed.key_by("who").map(count, name="count", state=Count, schema=int, ttl=100).sink(rel.list(), name="out")
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [1, 1, 2, 1]
        """
        return self._declare(
            function_operator(
                self._upstream, OperatorKind.MAP, name, fn,
                state=state, ttl=ttl, schema=schema, lane=lane, on_error=on_error, sides=sides, concurrent=concurrent,
            )
        )  # fmt: skip

    @named
    def filter(
        self,
        fn: Callable[..., Any],
        *,
        name: str = "",
        state: Callable[[], Any] | None = None,
        ttl: Lifetime | None = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        concurrent: Concurrency | None = None,
    ) -> StreamT:
        """Keep the tuples for which fn is true. Arguments as for ``map``."""
        return self._declare(
            function_operator(
                self._upstream, OperatorKind.FILTER, name, fn,
                state=state, ttl=ttl, lane=lane, on_error=on_error, concurrent=concurrent,
            )
        )  # fmt: skip

    @named
    def flat_map(
        self,
        fn: Callable[..., Any],
        *,
        name: str = "",
        state: Callable[[], Any] | None = None,
        ttl: Lifetime | None = None,
        schema: object = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        sides: Mapping[str, object] = NO_SIDES,
        concurrent: Concurrency | None = None,
    ) -> StreamT:
        """Give any number of tuples for each: fn yields them. Arguments as for ``map``."""
        return self._declare(
            function_operator(
                self._upstream, OperatorKind.FLAT_MAP, name, fn,
                state=state, ttl=ttl, schema=schema, lane=lane, on_error=on_error, sides=sides, concurrent=concurrent,
            )
        )  # fmt: skip

    @named
    def process(
        self,
        cls: object,
        *,
        name: str = "",
        schema: object,
        state: Callable[[], Any] | None = None,
        ttl: Lifetime | None = None,
        clock: bool = False,
        lane: LaneChoice = "auto",
    ) -> StreamT:
        """Call an object with the tuples of each key, and at times that it asks for.

        Its class has `on_tuple(t, state, out)`, and may have `on_time(time, state, out)` and, for each key once the
        input has ended, `on_end(state, out)`. `state` is that of the key; `out.give(tuple)` sends, `out.timer(at)` and
        `out.after(seconds)` have on_time called, `out.cancel(at)` takes that back, `out.forget()` gives the key its
        first state again; `out.key`, `out.time`, `out.ended`.

        Where the stream has an event time, all of it happens in that time: tuples come in the order of their times,
        each when the watermark has come to it, and a timer behind all tuples up to its time. What comes out of a key
        depends on its tuples alone, then, however the job runs. At the end of the input all timers come, also those
        that others set then. Tuples that come too late go to `.late()`. Else, and with clock=True, tuples come at once
        and times are those of the clock, seconds since 1970; timers that aren't due when the input ends don't come.

        Args:
            cls: a class that can be made without arguments, or an object, of which each processing element has a copy.
            name: of the operator; by default the name of its class.
            schema: of what it gives, see Schema.of.
            state: makes the first state of a key: a NamedTuple class with defaults, whose fields are set, or any
                callable without arguments; `dict` by default. It has to pickle for snapshots and replicas.
            ttl: seconds, or a timedelta, without a tuple of a key after which it is forgotten as by `out.forget()`;
                None: never. As of ``map``, but for since='change'. At the end of the input no key is forgotten.
            clock: whether it goes by the clock although there is an event time.
            lane: 'auto', 'compiled' or 'python'. Compiled are methods that `map` with state= would compile, with a
                NamedTuple class as state=.

        Raises:
            GraphError: the name is taken or bad, or the class hasn't these methods.
            LaneError: lane='compiled' can't be had.
            SchemaError: a record can't hold what it gives.

        Source: KeyedProcessFunction of Apache Flink; the order of times as in its CEP library.

        >>> import rayelastic as rel
        >>> class Silence:
        ...     def on_tuple(self, t, state, out):
        ...         state["last"] = t.at
        ...         out.after(60)
        ...     def on_time(self, time, state, out):
        ...         if time == state["last"] + 60:
        ...             out.give((*out.key, time))
        >>> topology = rel.Topology("silence")
        >>> rows = rel.rows([("a", 0), ("b", 30), ("a", 50), ("a", 200)], schema={"who": str, "at": int})
        >>> timed = topology.source(rows, name="seen").event_time("at", name="time").key_by("who")
        >>> timed.process(Silence, name="silence", schema={"who": str, "at": int}).sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('b', 90), ('a', 110), ('a', 260)]
        """
        return self._declare_timely(process(self._upstream, name, cls, schema, state, ttl, clock, lane))

    @named
    def match(
        self, pattern: Pattern, *, name: str = "", how: Literal["inner", "left"] = "inner", lane: LaneChoice = "auto"
    ) -> StreamT:
        """Find sequences of tuples of a key: "A, then B within 60 s, and no C between".

        All goes by event time; tuples of equal times as they came. Each tuple that the pattern's first step is good for
        begins a sequence of its own, and each sequence takes the first tuple behind that its next step is good for;
        one tuple may be taken by many. The predicates are compiled, where they can be, and the sequences are native.

        Args:
            pattern: `rel.Pattern(name, fn).then(name, fn, within=seconds, without=fn)`.
            name: of the operator; by default 'match'.
            how: 'left': also give the sequences to which a step hasn't come in time, as soon as the watermark has
                passed that time, or the input has ended; fields of what hasn't come are None.
            lane: of the predicates, as of ``map``.

        Returns:
            A stream with one tuple for each sequence that is complete, at the time of its last tuple: the key fields,
            then for each step the other fields of its tuple, called `STEP_FIELD`. With how='left' there is a field
            `missing` behind them, the name of the step that hasn't come or None, and no event time until the stream is
            given one. `.late()` has the tuples that came too late.

        Raises:
            GraphError: no pattern of two steps at least, or no event time; two fields would have one name.
            LaneError: the lane can't be had.

        Source: complex event processing, as in Apache Flink's CEP library: relaxed contiguity, no skipping.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("fraud")
        >>> rows = rel.rows([("a", 0, 5), ("b", 10, 3), ("a", 50, 700)], {"who": str, "at": int, "sum": int})
        >>> paid = topology.source(rows, name="paid").event_time("at", name="time").key_by("who")
        >>> pattern = rel.Pattern("small", lambda t: t.sum < 10).then("large", lambda t: t.sum > 500, within=60)
        >>> paid.match(pattern, name="fraud", how="left").sink(rel.list(), name="out")
        <sink out>
        >>> [(t.who, t.small_sum, t.large_sum, t.missing) for t in rel.run(topology)["out"]]
        [('a', 5, 700, None), ('b', 3, None, 'large')]
        """
        return self._declare_timely(match(self._upstream, name, pattern, how, lane))

    @named
    def deduplicate(self, *, name: str = "", ttl: Lifetime | None = None) -> StreamT:
        """Keep the first tuple of each key.

        The state holds every key; with ttl= those that came within so many seconds, as for ``map``. A key passes again
        when it hasn't come for longer, or, with ttl=rel.Ttl(seconds, since="first"), when its first tuple is longer
        ago. Errors as for ``filter``.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("once")
        >>> words = topology.source(rel.rows([("a",), ("b",), ("a",)], schema={"word": str}), name="words")
        >>> words.key_by("word").deduplicate(name="once").sink(rel.list(), name="out")
        <sink out>
        >>> [t.word for t in rel.run(topology)["out"]]
        ['a', 'b']
        """
        return self._declare(deduplicate(self._upstream, name, ttl))

    @named
    def scan(
        self,
        fn: Callable[[Any, Any], Any],
        start: Any,
        *,
        name: str = "",
        schema: object = None,
        ttl: Lifetime | None = None,
    ) -> StreamT:
        """Give after each tuple what has come together of its key: `accumulated = fn(accumulated, t)`.

        In the python lane; ``map`` with state= does the same compiled, with a state that fn changes.

        Args:
            fn: of what came together and the next tuple.
            start: the first `accumulated` of each key: a plain value, or a NamedTuple; copied.
            name: of the operator; by default the name of its function.
            schema: of what fn gives, see Schema.of; that of `start` by default.
            ttl: as of ``map``: a key without tuples for so many seconds begins with `start` again.

        Returns:
            A stream of the key fields, then those of what came together; a plain value is called `value`.

        Raises:
            GraphError: the name is taken or bad, fn is no such function, or a field is called like a key.
            SchemaError: a record can't hold it.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("balances")
        >>> paid = topology.source(rel.rows([("a", 2), ("b", 5), ("a", -1)], {"who": str, "sum": int}), name="paid")
        >>> paid.key_by("who").scan(lambda total, t: total + t.sum, 0, name="balance").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('a', 2), ('b', 5), ('a', 1)]
        """
        return self._declare(scan(self._upstream, name, fn, start, schema, ttl))

    @named
    def combine(
        self,
        own: object,
        *,
        name: str = "",
        schema: object = None,
        emit: str | Emit = "final",
        ttl: Lifetime | None = None,
        lane: LaneChoice = "auto",
    ) -> StreamT:
        """Aggregate the tuples of each key as a class of yours says; natively where its methods compile.

        Args:
            own: a class that can be made without arguments, or an object. `init()` makes the state of nothing: a
                NamedTuple, whose fields the others read and assign (fixed layout, can be compiled), or anything that
                can be changed and pickled. `add(t, state)` takes a tuple in, `result(state)` gives a value or a
                NamedTuple, `merge(other, state)` takes another state in; keys need no merge, see
                ``WindowedStream.combine``. What runs is a copy, and it keeps nothing but the state.
            name: of the operator; by default the name of its class.
            schema: of what `result` gives, see Schema.of; found out by default.
            emit: 'final': one tuple per key when the input has ended; 'update': what it is after each tuple.
            ttl: with emit='update', as of ``map``.
            lane: 'auto', 'compiled' or 'python'.

        Returns:
            A stream of the key fields, then those that `result` gives; a plain value is called `value`.

        Raises:
            GraphError: a method is missing, or a field is called like a key; ttl= with emit='final'.
            LaneError: lane='compiled' can't be had.
            SchemaError: a record can't hold the result.

        Source: AggregateFunction of Apache Flink.

        >>> import math
        >>> from typing import NamedTuple
        >>> import rayelastic as rel
        >>> class Sums(NamedTuple):
        ...     n: int = 0
        ...     logs: float = 0.0
        >>> class GeometricMean:
        ...     init = Sums
        ...     def add(self, t, state):
        ...         state.n += 1
        ...         state.logs += math.log(t.price)
        ...     def result(self, state):
        ...         return math.exp(state.logs / state.n)
        >>> topology = rel.Topology("prices")
        >>> prices = topology.source(rel.rows([("a", 2.0), ("a", 8.0)], {"k": str, "price": float}), name="prices")
        >>> prices.key_by("k").combine(GeometricMean, name="mean").sink(rel.list(), name="out")
        <sink out>
        >>> [(t.k, round(t.value, 9)) for t in rel.run(topology)["out"]]
        [('a', 4.0)]
        """
        return self._declare(combine(self._upstream, name, own, schema, emit, ttl, lane))

    @named
    def fold(self, fn: Callable[[Any, Any], Any], start: Any, *, name: str = "", schema: object = None) -> StreamT:
        """Give what has come together of each key when the input has ended; arguments and errors as for ``scan``.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("longest")
        >>> words = topology.source(rel.rows([("a", "x"), ("a", "yy"), ("b", "z")], {"k": str, "word": str}))
        >>> words.key_by("k").fold(lambda most, t: max(most, len(t.word)), 0).sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('a', 2), ('b', 1)]
        """
        return self._declare(*fold(self._upstream, name, fn, start, schema))

    @named
    def reduce(
        self, fn: Callable[[Any, Any], Any], *, name: str = "", emit: str | Emit = "final", ttl: Lifetime | None = None
    ) -> StreamT:
        """Make one tuple of all of a key: `reduced = fn(reduced, t)`, the first one being its first tuple.

        Args:
            fn: of two tuples; gives one of the same schema.
            name: of the operator; by default the name of its function.
            emit: 'final': one tuple per key when the input has ended; 'update': what it is after each tuple.
            ttl: with emit='update', as of ``map``.

        Returns:
            A stream of the key fields, then the others; they come from the key's tuples as fn says.

        Raises:
            GraphError: the name is taken or bad, fn is no such function, there are no fields but keys, or ttl= with
                emit='final'.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("best")
        >>> rows = rel.rows([("a", 7, "x"), ("a", 5, "y")], {"k": str, "n": int, "of": str})
        >>> offers = topology.source(rows, name="offers")
        >>> offers.key_by("k").reduce(lambda best, t: t if t.n < best.n else best).sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('a', 5, 'y')]
        """
        return self._declare(*reduce(self._upstream, name, fn, emit, ttl))
