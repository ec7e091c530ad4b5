"""Methods of every stream: operators of functions, aggregates, and event time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from rayelastic.graph.fluent.base import StreamBase, StreamT
from rayelastic.graph.fluent.naming import named
from rayelastic.graph.operators.aggregates import AggregateSpec, Emit, TopK
from rayelastic.graph.operators.aggregation import aggregate, aggregate_in_two_steps, has_two_steps_by_itself
from rayelastic.graph.operators.event_time import event_time
from rayelastic.graph.operators.functions import NO_SIDES, function_operator
from rayelastic.graph.records.time_info import Lifetime, Seconds, TimeUnit
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.declaration import LaneChoice
from rayelastic.graph.spec.operator_spec import OperatorKind

__all__ = ["ErrorChoice", "FunctionMethods"]

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
    ) -> StreamT:
        """Give one tuple for each.

        Args:
            fn: of one tuple; returns a tuple of the new schema, or a plain value for records of one field `value`. May
                be an object with `__call__`; its `initialize()`, if there is one, is called in each process before.
            name: of the operator; by default the name of its function.
            schema: of what it gives, see Schema.of; found out by default.
            lane: 'auto', 'compiled', 'vectorised' or 'python'.
            on_error: what happens to a tuple on which fn raises: 'fail' fails the job, 'skip' leaves the tuple out,
                'divert' sends it to the stream `.errors` of the result, with fields `error` and `operator` added. What
                fn did to the state of a key before it raised stays.
            sides: {port: schema} of side outputs: where fn gives `rel.to(port, tuple)`, it goes to the stream
                `.side(port)` of the result.
            concurrent: rel.concurrent(capacity=...): that many calls wait at the same time. An `async def` fn has
                rel.concurrent() by default, a plain one none.

        Raises:
            GraphError: the name is taken or bad, or fn is no function of one tuple.
            LaneError: the lane can't be had.
            SchemaError: what fn gives isn't known or can't be held by a record.

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
                self._upstream, OperatorKind.MAP, name, fn,
                schema=schema, lane=lane, on_error=on_error, sides=sides, concurrent=concurrent,
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
    ) -> StreamT:
        """Keep the tuples for which fn is true. Arguments and errors as for ``map``."""
        return self._declare(
            function_operator(
                self._upstream, OperatorKind.FILTER, name, fn, lane=lane, on_error=on_error, concurrent=concurrent
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
    ) -> StreamT:
        """Give any number of tuples for each: fn yields them. Arguments and errors as for ``map``."""
        return self._declare(
            function_operator(
                self._upstream,
                OperatorKind.FLAT_MAP,
                name,
                fn,
                schema=schema,
                lane=lane,
                on_error=on_error,
                sides=sides,
                concurrent=concurrent,
            )
        )

    @named
    def aggregate(
        self,
        *,
        name: str = "",
        emit: str | Emit = Emit.FINAL,
        ttl: Lifetime | None = None,
        two_steps: bool | None = None,
        **aggregates: AggregateSpec | TopK,
    ) -> StreamT:
        """Aggregate the tuples of each key, natively; all tuples together where there is no key_by before.

        Args:
            name: of the operator; by default 'aggregate'.
            emit: 'final': one tuple per key when the input has ended; 'update': the key's new values after each tuple.
            ttl: with emit='update' and keys, as of KeyedStream.map.
            two_steps: with emit='final' and count, sum, min, max, first, last: an operator `NAME.partial` aggregates
                what comes at a time, whatever its keys, and this one what it gives. Right behind a source the first
                step gets replicas that take any tuples, so that no key can be too hot; and little goes to the second.
                Results are the same, but for the last bits of sums of floats, which are added up in another order.
                None: behind a Python function right behind a source, of counts, least and greatest values and exact
                sums by key; explain() shows it. False: never.
            aggregates: output field = rel.count(), or rel.sum, mean, weighted_mean, min, max, first, last, stddev,
                distinct, quantile or top_k of a field.

        Returns:
            A stream of the key fields and then the aggregates. At the end keys come in the order of their first tuples,
            but for those that another thread counted first: 'final' aggregates that are the same in any order of tuples
            use several threads (docs/concepts/elasticity.md).

        Raises:
            GraphError: no aggregate, or one named like a key field; a time to live without keys or with emit='final';
                two_steps with another aggregate, or with emit='update'.
            SchemaError: unknown field, or a sum or mean of something that is no number.

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
        whole = None if two_steps else aggregate(up, name, aggregates, emit, ttl)
        if whole is None or (two_steps is None and has_two_steps_by_itself(whole, up.operators)):
            return self._declare(*aggregate_in_two_steps(up, name, aggregates, emit, ttl))
        return self._declare(whole)

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
        """Say which field tells when a tuple happened, for what comes after and goes by time.

        Tuples may come out of order by `lateness`: windows wait that long, in event time. What comes later than that
        goes to the side output of the window that it is too late for. Which tuples are late depends on their order
        alone, not on how the job runs.

        Args:
            field: a datetime; an integer; or a float of seconds (to the microsecond). May not be null.
            name: of the operator; by default 'event_time'.
            lateness: seconds, or a timedelta.
            unit: of an integer field: 's' (the default), 'ms', 'us' or 'ns'.
            idle_after: seconds by the clock, or a timedelta, without a tuple after which the stream is idle: where it
                is united, merged or joined with others, they no longer wait for it until its next tuple, which may be
                late then. None: it is never idle.
            by_clock: while it is idle its time goes on as the clock does, so that windows close and timers come though
                no tuple does; a tuple with an earlier time than that is late.
            ahead: seconds, or a timedelta, that a tuple may be ahead of the machine's clock (UTC). One that is more
                doesn't move the watermark, so that a wrong clock makes no other tuple late. It goes to
                `.side("ahead")`, or is dropped, counted and logged where nothing takes that. None: no bound.

        Each file of the stream's source, partition of a polled source and input of a union has a watermark of its own;
        the least of them counts.

        What idle streams give depends on when their tuples come, no longer on the tuples alone.

        Raises:
            GraphError: the name is taken or bad; lateness is negative or finer than the field; no such unit; idle_after
                isn't above 0, or missing with by_clock.
            SchemaError: no such field, or it holds no times or nulls.
        """
        return self._declare(*event_time(self._upstream, name, field, lateness, unit, idle_after, by_clock, ahead))
