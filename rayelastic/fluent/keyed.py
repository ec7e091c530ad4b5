"""Methods of streams with keys: operators with keyed state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from rayelastic.fluent.base import StreamBase, StreamT
from rayelastic.fluent.functions import ErrorChoice
from rayelastic.fluent.naming import named
from rayelastic.graph.operators.aggregates import Emit
from rayelastic.graph.operators.functions import NO_SIDES, deduplicate, function_operator
from rayelastic.graph.operators.gathering.combined import combine
from rayelastic.graph.operators.gathering.expressions import as_function
from rayelastic.graph.operators.gathering.folds import fold, reduce, scan
from rayelastic.graph.operators.patterns import Pattern, match
from rayelastic.graph.operators.processes import process
from rayelastic.graph.records.time_info import Lifetime
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.declaration import LaneChoice
from rayelastic.graph.spec.ordering import OrderChoice
from rayelastic.graph.spec.requests import FunctionKind


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
        ordered: OrderChoice = None,
    ) -> StreamT:
        """Emit one tuple for each; with state= by a function of the tuple and its key's state.

        Args:
            fn: `fn(t)`, or `fn(t, s)` with state=.
            name: The operator's name; its function's by default.
            state: A NamedTuple class with defaults, whose fields fn sets: its layout is fixed, and it can be compiled.
                Or any callable without arguments that makes a key's initial state, which runs in Python.
            ttl: Seconds, or a timedelta, without a tuple of a key after which its state is dropped. The next tuple then
                starts with the initial state. None: never. A rel.Ttl counts since the key's first tuple, or since the
                last one that changed its state, instead.
            schema: The schema of its output, see Schema.of; inferred by default.
            lane: 'auto', 'compiled', 'vectorised' or 'python'.
            on_error: As for Stream.map.
            sides: As for Stream.map.
            concurrent: As for Stream.map; not with state=.
            ordered: As for Stream.map; not with state=, whose keys keep their order.

        On a stream with an event time, ttl is in event time. A key expires for a tuple whose time, or the watermark, is
        more than ttl after the key's latest tuple. Results depend on the tuples alone, as long as none is late.
        Otherwise ttl follows the clock, read once for each run of tuples; the clock stands still while a job is stopped
        with a savepoint. The memory of expired keys is freed gradually, as other keys arrive.

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
                self._upstream, FunctionKind.MAP, name, fn,
                state=state, ttl=ttl, schema=schema, lane=lane, on_error=on_error, sides=sides, concurrent=concurrent,
                ordered=ordered,
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
        ordered: OrderChoice = None,
    ) -> StreamT:
        """Keep the tuples for which fn is true. Arguments as for ``map``."""
        return self._declare(
            function_operator(
                self._upstream, FunctionKind.FILTER, name, as_function(fn),
                state=state, ttl=ttl, lane=lane, on_error=on_error, concurrent=concurrent,
                ordered=ordered,
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
        ordered: OrderChoice = None,
    ) -> StreamT:
        """Emit any number of tuples for each: fn yields them. Arguments as for ``map``."""
        return self._declare(
            function_operator(
                self._upstream, FunctionKind.FLAT_MAP, name, fn,
                state=state, ttl=ttl, schema=schema, lane=lane, on_error=on_error, sides=sides, concurrent=concurrent,
                ordered=ordered,
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
        """Call an object with the tuples of each key, and by timers that it sets.

        Its class has `on_tuple(t, state, out)`. It may have `on_time(time, state, out)` and, for each key once the
        input has ended, `on_end(state, out)`. `state` is the key's. `out.give(tuple)` emits. `out.timer(at)` and
        `out.after(seconds)` set a timer that calls on_time; `out.cancel(at)` cancels it. `out.forget()` resets the
        key's state. `out.key`, `out.time` and `out.ended` are there, too.

        On a stream with an event time, everything is in event time. Tuples come in the order of their times, each when
        the watermark has reached it; a timer fires after all tuples up to its time. The output of a key then depends on
        its tuples alone, however the job runs. At the end of the input all timers fire, also those set then. Late
        tuples go to `.late()`. Otherwise, and with clock=True, tuples come at once and times are those of the clock,
        seconds since 1970. Timers that aren't due when the input ends don't fire.

        Args:
            cls: A class that can be made without arguments, or an object, which each PE copies.
            name: The operator's name; its class's by default.
            schema: The schema of its output, see Schema.of.
            state: Makes the initial state of a key: a NamedTuple class with defaults, whose fields are set, or any
                callable without arguments; `dict` by default. It has to pickle for checkpoints and replicas.
            ttl: Seconds, or a timedelta, without a tuple of a key after which it is dropped as by `out.forget()`; None:
                never. As for ``map``, but without since='change'. At the end of the input no key is dropped.
            clock: Whether it follows the clock although there is an event time.
            lane: 'auto', 'compiled' or 'python'. Methods compile that `map` with state= would compile, with a
                NamedTuple class as state=.

        Raises:
            GraphError: The name is taken or invalid, or the class lacks these methods.
            LaneError: lane='compiled' is unsupported: the methods don't compile.
            SchemaError: A record can't hold what it emits.

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

        All of it follows event time; tuples of equal times are in order of arrival. Each tuple that matches the first
        step begins its own sequence. Each sequence takes the next tuple that matches its next step; several may take
        one tuple. The predicates are compiled if possible, and the sequences are native.

        Args:
            pattern: `rel.Pattern(name, fn).then(name, fn, within=seconds, without=fn)`.
            name: The operator's name; 'match' by default.
            how: 'left': also emit incomplete sequences, with None in the fields of the missing step. They are emitted
                once the watermark has passed the time of that step, or the input has ended.
            lane: The execution mode of the predicates, as for ``map``.

        Returns:
            A stream with one tuple for each complete sequence, at the time of its last tuple. Its fields are the keys,
            then those of each step's tuple, named `STEP_FIELD`. With how='left' a field `missing` follows, with the
            name of the missing step or None. That stream has no event time until you assign one. `.late()` has the late
            tuples.

        Raises:
            GraphError: Not a pattern of at least two steps, no event time, or two fields of one name.
            LaneError: The execution mode is unsupported.

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

        The state holds every key; with ttl= only those of the last seconds, as for ``map``. A key passes again after
        that time without it, or, with ttl=rel.Ttl(seconds, since="first"), after that time since its first tuple.
        Errors as for ``filter``.

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
        """Emit the accumulated value of a key after each of its tuples: `accumulated = fn(accumulated, t)`.

        It runs in Python; ``map`` with state= does the same compiled, with a state that fn changes.

        Args:
            fn: A function of the accumulated value and the next tuple.
            start: The first `accumulated` of each key: a plain value, or a NamedTuple; copied.
            name: The operator's name; its function's by default.
            schema: The schema of what fn returns, see Schema.of; that of `start` by default.
            ttl: As for ``map``: a key without tuples for so many seconds begins with `start` again.

        Returns:
            A stream of the key fields, then those of the accumulated value; a plain value is named `value`.

        Raises:
            GraphError: The name is taken or invalid, fn isn't such a function, or a field has the name of a key.
            SchemaError: A record can't hold it.

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
        """Aggregate the tuples of each key by a class of yours; natively if its methods compile.

        Args:
            own: A class that can be made without arguments, or an object. `init()` makes the initial state: a
                NamedTuple, whose fields the others read and assign (fixed layout, can be compiled), or any mutable
                object that pickles. `add(t, state)` adds a tuple, `result(state)` returns a value or a NamedTuple,
                `merge(other, state)` adds another state. Keys need no merge, see ``WindowedStream.combine``. What runs
                is a copy, and it keeps nothing but the state.
            name: The operator's name; its class's by default.
            schema: The schema of what `result` returns, see Schema.of; inferred by default.
            emit: 'final': one tuple per key when the input has ended; 'update': the result after each tuple.
            ttl: With emit='update', as for ``map``.
            lane: 'auto', 'compiled' or 'python'.

        Returns:
            A stream of the key fields, then those that `result` returns; a plain value is named `value`.

        Raises:
            GraphError: A method is missing, a field has the name of a key, or ttl= with emit='final'.
            LaneError: lane='compiled' is unsupported: the methods don't compile.
            SchemaError: A record can't hold the result.

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
        """Emit the accumulated value of each key when the input has ended; arguments and errors as for ``scan``.

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
        """Reduce the tuples of a key to one: `reduced = fn(reduced, t)`, starting with its first tuple.

        Args:
            fn: A function of two tuples, which returns one of the same schema.
            name: The operator's name; its function's by default.
            emit: 'final': one tuple per key when the input has ended; 'update': the result after each tuple.
            ttl: With emit='update', as for ``map``.

        Returns:
            A stream of the key fields, then the others as fn returns them.

        Raises:
            GraphError: The name is taken or invalid, fn isn't such a function, there are only key fields, or ttl= with
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

    reduce_final = reduce
