"""Methods of every stream: operators of functions, aggregates, and event time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from rayelastic.fluent.base import StreamBase, StreamT
from rayelastic.fluent.naming import named
from rayelastic.graph.operators.aggregates import AggregateSpec, Emit, Named, TopK
from rayelastic.graph.operators.aggregation import aggregate, aggregate_in_two_steps, by_name, has_two_steps_by_itself
from rayelastic.graph.operators.columns import without_nulls
from rayelastic.graph.operators.event_time import event_time
from rayelastic.graph.operators.functions import NO_SIDES, function_operator
from rayelastic.graph.operators.gathering.expressions import as_function
from rayelastic.graph.records.time_info import Lifetime, Seconds, TimeUnit
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.declaration import LaneChoice, declaring
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.ordering import OrderChoice
from rayelastic.graph.spec.requests import FunctionKind

ErrorChoice = OnError | Literal["fail", "skip", "divert"]


class FunctionMethods(StreamBase[StreamT]):
    """Operators with one input stream and one function, or none."""

    __slots__ = ()

    @named
    def map(
        self,
        fn: Callable[..., Any],
        *,
        name: str = "",
        schema: object = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        sides: Mapping[str, object] = NO_SIDES,
        concurrent: Concurrency | None = None,
        ordered: OrderChoice = None,
    ) -> StreamT:
        """Emit one tuple for each.

        Args:
            fn: A function of one tuple. It returns a tuple of the new schema, or a plain value for records of one field
                `value`. It may be an object with `__call__`; each process calls its `initialize()`, if any, first.
            name: The operator's name; its function's by default.
            schema: The schema of its output, see Schema.of; inferred by default.
            lane: 'auto', 'compiled', 'vectorised' or 'python'.
            on_error: What happens to a tuple on which fn raises. `'fail'` fails the job. `'skip'` drops the tuple.
                `'divert'` sends it to the stream `.errors` of the result, with fields `error` and `operator` added.
                Changes that fn made to keyed state before it raised stay.
            sides: {port: schema} of side outputs. What fn returns as `rel.to(port, tuple)` goes to the stream
                `.side(port)` of the result.
            concurrent: rel.concurrent(capacity=...): the number of calls that may be in flight. An `async def` fn has
                rel.concurrent() by default, a plain one none.
            ordered: The order of its output when it has several replicas. True: that of its input. 'key': each key of
                the stream keeps its order, and a key has one replica. False: any, so that no tuple waits for a slow
                one. None: that of its input; where streams meet, each keeps its own. `explain()` shows it.

        Raises:
            GraphError: The name is taken or invalid, or fn isn't a function of one tuple. Or ordered=True where
                the input has no order, such as downstream of a union, or ordered='key' without a key_by.
            LaneError: The execution mode is unsupported.
            SchemaError: The schema of what fn returns is unknown, or a record can't hold it.

        >>> import asyncio
        >>> import rayelastic as rel
        >>> async def twice(t) -> int:
        ...     await asyncio.sleep(0.01)
        ...     return 2 * t.value
        >>> topology = rel.Topology("waiting")
        >>> numbers = topology.source(rel.rows([(1,), (2,), (3,)], schema=int), name="numbers")
        >>> numbers.map(twice, concurrent=rel.concurrent(capacity=32, timeout=5)).sink(rel.list(), name="out")
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [2, 4, 6]
        """
        return self._declare(
            function_operator(
                self._upstream, FunctionKind.MAP, name, fn,
                schema=schema, lane=lane, on_error=on_error, sides=sides, concurrent=concurrent,
                ordered=ordered,
            )
        )  # fmt: skip

    @named
    def filter(
        self,
        fn: Callable[..., Any],
        *,
        name: str = "",
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        concurrent: Concurrency | None = None,
        ordered: OrderChoice = None,
    ) -> StreamT:
        """Keep the tuples for which fn is true. Arguments and errors as for ``map``."""
        return self._declare(
            function_operator(
                self._upstream,
                FunctionKind.FILTER,
                name,
                as_function(fn),
                lane=lane,
                on_error=on_error,
                concurrent=concurrent,
                ordered=ordered,
            )
        )

    @named
    def flat_map(
        self,
        fn: Callable[..., Any],
        *,
        name: str = "",
        schema: object = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        sides: Mapping[str, object] = NO_SIDES,
        concurrent: Concurrency | None = None,
        ordered: OrderChoice = None,
    ) -> StreamT:
        """Emit any number of tuples for each: fn yields them. Arguments and errors as for ``map``."""
        return self._declare(
            function_operator(
                self._upstream,
                FunctionKind.FLAT_MAP,
                name,
                fn,
                schema=schema,
                lane=lane,
                on_error=on_error,
                sides=sides,
                concurrent=concurrent,
                ordered=ordered,
            )
        )

    @named
    def filter_map(
        self,
        fn: Callable[..., Any],
        *,
        name: str = "",
        schema: object = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        ordered: OrderChoice = None,
    ) -> StreamT:
        """Emit what fn returns, unless it is None. Arguments and errors as for ``map``.

        >>> import rayelastic as rel
        >>> from rayelastic import testing
        >>> small = lambda t: t.n if t.n < 5 else None
        >>> testing.collect(lambda s: s.filter_map(small), [(4,), (5,)], {"n": int})
        [(4,)]
        """
        return self._declare(
            function_operator(
                self._upstream, FunctionKind.FLAT_MAP, name, fn,
                schema=schema, lane=lane, on_error=on_error, drops_none=True, ordered=ordered,
            )
        )  # fmt: skip

    @named
    def aggregate(
        self,
        *named_ones: AggregateSpec | Named,
        name: str = "",
        emit: str | Emit = Emit.FINAL,
        ttl: Lifetime | None = None,
        two_steps: bool | None = None,
        **aggregates: AggregateSpec | TopK,
    ) -> StreamT:
        """Aggregate the tuples of each key, natively; all tuples together without a key_by before.

        Args:
            name: The operator's name; 'aggregate' by default.
            emit: 'final': one tuple per key when the input has ended; 'update': the key's new values after each tuple.
            ttl: With emit='update' and keys, as for KeyedStream.map.
            two_steps: Needs emit='final' and count, sum, min, max, first, last. An operator `NAME.partial` aggregates
                each run of tuples, whatever their keys, and this one merges its results. Downstream of a source, the
                first step is replicated freely, so that no key overloads a replica; the second receives few tuples.
                Results are the same, but for the last bits of sums of floats, which are added in another order.
                None: only downstream of a Python function that follows a source, for counts, minima, maxima and exact
                sums by key; explain() shows it. False: never.
            named_ones: aggregates with `.alias(name)`; without it they have the name of their field.
            aggregates: output field = rel.count(), or rel.sum, mean, weighted_mean, min, max, first, last, stddev,
                distinct, quantile or top_k of a field.

        Returns:
            A stream of the key fields and then the aggregates. At the end, keys are in the order of their first tuples,
            except keys that another thread counted first. With emit='final', several threads compute aggregates that
            don't depend on the order of tuples (docs/concepts/elasticity.md).

        Raises:
            GraphError: No aggregate, or one with the name of a key field. A time to live without keys or with
                emit='final'. Or two_steps with another aggregate, or with emit='update'.
            SchemaError: An unknown field, or a sum or mean of a field that isn't numeric.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("sizes")
        >>> rows = rel.rows([("a", 2), ("b", 5), ("a", 4)], schema={"word": str, "size": int})
        >>> words = topology.source(rows, name="words")
        >>> words.key_by("word").aggregate(name="by_word", mean=rel.mean("size")).sink(rel.list(), name="keyed")
        <sink keyed>
        >>> words.aggregate(words=rel.distinct("word"), sizes=rel.sum("size")).sink(rel.list(), name="global")
        <sink global>
        >>> result = rel.run(topology)
        >>> [tuple(t) for t in result["keyed"]], [tuple(t) for t in result["global"]]
        ([('a', 3.0), ('b', 5.0)], [(2, 11)])
        """
        up = self._upstream
        with declaring(up.called, caller_location()):
            aggregates = {**by_name(named_ones, aggregates)}
        whole = None if two_steps else aggregate(up, name, aggregates, emit, ttl)
        if whole is None or (two_steps is None and has_two_steps_by_itself(whole, up.operators)):
            return self._declare(*aggregate_in_two_steps(up, name, aggregates, emit, ttl))
        return self._declare(whole)

    agg = aggregate

    @named
    def event_time(
        self,
        field: str,
        *,
        name: str = "",
        lateness: Seconds = 0,
        unit: TimeUnit | None = None,
        idle_after: Seconds | None = None,
        by_clock: bool = False,
        ahead: Seconds | None = None,
    ) -> StreamT:
        """Assign event times to the tuples, by one of their fields, for downstream operators.

        Tuples may be out of order by `lateness`: windows wait that long, in event time. Later ones go to the side
        output of the window that they are too late for. Which tuples are late depends on their order alone, not on how
        the job runs.

        Each file of the stream's source, partition of a polled source and input of a union has its own watermark. The
        least of them counts. Results of idle streams depend on when their tuples arrive, not on the tuples alone.

        Args:
            field: A datetime, an integer, or a float of seconds (to the microsecond). A None
                fails the job; `drop_nulls` leaves such tuples out.
            name: The operator's name; 'event_time' by default.
            lateness: Seconds, or a timedelta.
            unit: Of an integer field: 's' (the default), 'ms', 'us' or 'ns'.
            idle_after: Seconds by the clock, or a timedelta, without a tuple after which the stream is idle. Unions,
                merges and joins don't wait for an idle stream until its next tuple, which may then be late. None:
                never.
            by_clock: Whether the time of an idle stream follows the clock. Windows then close and timers fire without
                tuples, and a tuple with an earlier time is late.
            ahead: Seconds, or a timedelta, that a tuple may be ahead of the machine's clock (UTC). One further ahead
                doesn't advance the watermark, so that a wrong clock makes no other tuple late. It goes to
                `.side("ahead")`. Without a consumer there, it is dropped, counted and logged. None: no bound.

        Raises:
            GraphError: The name is taken or invalid. Lateness is negative or finer than the field. An unknown unit.
                idle_after isn't above 0, or is missing with by_clock.
            SchemaError: An unknown field, or one that holds no times, or nulls.

        >>> import rayelastic as rel
        >>> from rayelastic import testing
        >>> minutes = lambda s: s.event_time("at", lateness=10).window(seconds=60).aggregate(n=rel.count())
        >>> testing.collect(minutes, [(0,), (61,), (59,)], {"at": int})
        [(0, 60, 2), (60, 120, 1)]
        """
        up = self._upstream
        found = up.schema.find(field)
        if found is None or not found.nullable or len(up.inputs) > 1:
            return self._declare(*event_time(up, name, field, lateness, unit, idle_after, by_clock, ahead))
        known = without_nulls(up, f"{name}.known", [field])
        up = up.behind(known, up.keys)
        return self._declare(known, *event_time(up, name, field, lateness, unit, idle_after, by_clock, ahead))
