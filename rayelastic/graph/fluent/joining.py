"""Methods that bring a stream together with another one, or with a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from rayelastic.errors import GraphError
from rayelastic.graph.fluent.base import StreamBase, StreamT
from rayelastic.graph.fluent.naming import named
from rayelastic.graph.operators.aligned import Aligned
from rayelastic.graph.operators.functions import function_operator
from rayelastic.graph.operators.joins.by_key import SUFFIX, Matching, cross_join, join
from rayelastic.graph.operators.joins.enrichment import TABLE_SUFFIX, enrich
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import Lifetime, Seconds
from rayelastic.graph.spec.declaration import LaneChoice, NewOperator
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["CrossMethods", "JoinMethods"]


class CrossMethods(StreamBase[StreamT]):
    """Joins that depend on no key of the stream."""

    __slots__ = ()

    @named
    def cross_join(
        self,
        right: StreamT,
        *,
        name: str = "",
        how: Literal["inner", "left"] = "inner",
        by: Literal["arrival"] | None = None,
        ttl: Lifetime | None = None,
        suffix: str = SUFFIX,
        fn: Callable[..., Any] | None = None,
        schema: object = None,
        lane: LaneChoice = "auto",
    ) -> StreamT:
        """Join each tuple with the latest of every key of another stream: rules that change, a table that is a stream.

        Every replica of the operator receives all of the right, in its order, and a new replica what the others have of
        it (broadcast state). This stream is dealt out by its keys, if it has any; without them replicas take turns.
        Where both have an event time, the right's tuples are as of the tuple's own time, and the result doesn't depend
        on how the job runs (there is one replica then, if this stream has no keys). Else say by='arrival': a tuple is
        joined with what has arrived before it, which depends on timing.

        Args:
            right: the other stream, few tuples that are kept; with keys, the latest of each, else the latest of all.
                To take a rule back, give it a field that says so, and check it; or let it end by ttl=.
            name: of the operator; by default 'cross_join'.
            how: 'left': also emit tuples while there is nothing on the right yet, the right's fields being None.
            by: 'arrival': join with what has arrived before; needed where there are no event times.
            ttl: seconds, or a timedelta, after the latest tuple of a key of the right at which it ends: by event time
                where both streams have one, else by the clock. None: never.
            suffix: added to names of the right's fields that this stream has, too.
            fn: of one joined tuple; maps what is joined, like ``map`` with schema and lane.
            schema: of what fn gives.
            lane: of fn.

        Returns:
            A stream of the fields of this one, then those of the right, called `NAME_right` where this one has the
            name; for each tuple those of all keys, in an order of keys that is always the same.

        Raises:
            GraphError: no stream of this topology, or event times of different units; no event times without
                by='arrival'.

        Source: broadcast state of Apache Flink; the latest as of a time as in its temporal joins.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("alerts")
        >>> limits = [("high", 100, 0), ("low", 10, 0), ("high", 500, 5)]
        >>> limits = rel.rows(limits, {"rule": str, "most": int, "at": int})
        >>> rules = topology.source(limits, name="rules").event_time("at", name="rule_time").key_by("rule")
        >>> paid = rel.rows([("a", 50, 1), ("b", 200, 2), ("c", 300, 9)], {"who": str, "sum": int, "at": int})
        >>> paid = topology.source(paid, name="paid").event_time("at", name="time").key_by("who")
        >>> broken = paid.cross_join(rules, name="each").filter(lambda t: t.sum > t.most, name="broken")
        >>> broken.sink(rel.list(), name="out")
        <sink out>
        >>> [(t.who, t.rule, t.most) for t in rel.run(topology)["out"]]
        [('a', 'low', 10), ('b', 'high', 100), ('b', 'low', 10), ('c', 'low', 10)]
        """
        other = right_of(self, name, right)
        joined = cross_join(
            self._upstream, name if fn is None else f"{name}.joined", other,
            Matching(how=how, by=by, suffix=suffix, ttl=ttl),
        )  # fmt: skip
        return self._declare_joined(name, joined, fn, schema, lane)

    def _declare_joined(
        self, name: str, joined: OperatorSpec, fn: Callable[..., Any] | None, schema: object, lane: LaneChoice
    ) -> StreamT:
        if fn is None:
            return self._declare_timely(joined)
        behind = self._upstream.behind(joined)
        return self._declare(joined, function_operator(behind, OperatorKind.MAP, name, fn, schema=schema, lane=lane))


class JoinMethods(CrossMethods[StreamT]):
    """Joins by the keys of the stream."""

    __slots__ = ()

    @named
    def join(
        self,
        right: StreamT,
        *,
        name: str = "",
        keep: Literal["latest", "first", "all"] | None = None,
        within: Seconds | tuple[Seconds, Seconds] | None = None,
        window: Seconds | Aligned | None = None,
        how: Literal["inner", "left", "right", "full"] | None = None,
        by: Literal["arrival"] | None = None,
        symmetric: bool = False,
        ttl: Lifetime | None = None,
        suffix: str = SUFFIX,
        fn: Callable[..., Any] | None = None,
        schema: object = None,
        lane: LaneChoice = "auto",
    ) -> StreamT:
        """Join each tuple with what another stream has for its key, natively.

        Both streams have an event time: an *as-of* join, with the latest tuple of the key as of the tuple's own time
        (right ones of the same time included), or what keep=, within= or window= say. The result doesn't depend on how
        the job runs as long as nothing is late; what is late for a join depends on how its two streams interleave.

        One has no event time: say how=, and the result is that of SQL, all pairs of a key, in any order of arrival. A
        stream that ends by itself is read first, if the other one's sources can wait for it, and it alone is kept, the
        right one if both end; else both sides are kept. Tuples without a match are emitted once the other side has
        ended. Or say by='arrival': each tuple is joined with what has arrived before it, which depends on timing.

        A key with a None matches nothing, as in SQL.

        Args:
            right: the other stream, keyed by as many fields of the same types, or having the same key fields.
            name: of the operator; by default 'join'.
            keep: which tuples of the right are kept, by event time or by arrival: 'latest', the default; 'first'; or
                'all', without end, as they were.
            within: instead: with all right tuples at most so many seconds before; (before, after) for both sides.
            window: instead: with all right tuples in the same tumbling window of so many seconds; a rel.Aligned says
                where windows start, or has windows of days.
            how: 'inner'; 'left': also emit tuples without a match, the right's fields being None; 'right': right tuples
                without a match, likewise but for the keys, once nothing can match them any more; 'full': both. 'right'
                and 'full' not as of a time, and the stream has no event time then until it is given one. By default
                'inner'; needed where there are no event times.
            by: 'arrival': join with what has arrived before.
            symmetric: by arrival: right tuples, too, are joined with what is kept of the left, as keep= says for both.
            ttl: not with within= or window=: seconds, or a timedelta, without a tuple of a key on either side, after
                which what is kept of it is dropped, as of ``map``; None: never. A rel.Ttl(seconds, since="first")
                counts since the first tuple that was kept. By event time where both streams have one. Else by the
                clock, which depends on timing, and tuples without a match are emitted when their key ends.
            suffix: added to names of the right's fields that this stream has, too.
            fn: of one joined tuple; maps what is joined, like ``map`` with schema and lane.
            schema: of what fn gives.
            lane: of fn.

        Returns:
            A stream of the fields of this one, then those of the right but its keys; called `NAME_right` where this one
            has the name. Joins by time emit it in the order of this one's times; `.late()` has what came too late.

        Raises:
            GraphError: no such keys, or of other types; no event times and neither how= nor by=; within= or window=
                without event times; by= with them; how='right' or 'full' where a tuple may be matched for ever.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("named")
        >>> orders = topology.source(rel.rows([(1, "ann"), (2, "bob")], {"order": int, "user": str}), name="orders")
        >>> users = topology.source(rel.rows([("ann", "NZ")], {"user": str, "country": str}), name="users")
        >>> orders.key_by("user").join(users.key_by("user"), name="named", how="left").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [(1, 'ann', 'NZ'), (2, 'bob', None)]
        >>> import rayelastic as rel
        >>> topology = rel.Topology("asof")
        >>> rows = rel.rows([("A", 1, 9.5), ("A", 5, 8.0)], {"key": str, "at": int, "price": float})
        >>> prices = topology.source(rows, name="prices")
        >>> rows = rel.rows([("A", 4, 2), ("A", 6, 1)], {"key": str, "at": int, "count": int})
        >>> orders = topology.source(rows, name="orders")
        >>> latest = prices.event_time("at", name="t1").key_by("key")
        >>> joined = orders.event_time("at", name="t2").key_by("key").join(latest, name="cost")
        >>> joined.sink(rel.list(), name="out")
        <sink out>
        >>> [(t.at, t.count, t.price) for t in rel.run(topology)["out"]]
        [(4, 2, 9.5), (6, 1, 8.0)]
        """
        other = right_of(self, name, right)
        inner = name if fn is None else f"{name}.joined"
        joined = join(self._upstream, inner, other, Matching(keep, within, window, how, by, symmetric, suffix, ttl))
        return self._declare_joined(name, joined, fn, schema, lane)

    @named
    def enrich(
        self,
        table: Mapping[Any, Any],
        *,
        name: str = "",
        how: Literal["inner", "left"] = "inner",
        schema: object = None,
        suffix: str = TABLE_SUFFIX,
    ) -> StreamT:
        """Add to each tuple what a table has for its key.

        The table is shipped with the operator; for what changes, join a stream. A key with a None is in no table.

        Args:
            table: {key: row}; a key is a tuple where there are several key fields; a row is a tuple, or a plain value.
            name: of the operator; by default 'enrich'.
            how: 'left': also emit tuples whose key isn't in the table, with None.
            schema: of the rows, see Schema.of; that of the first row by default, where it is a NamedTuple or plain.
            suffix: added to names of the rows' fields that the stream has, too.

        Returns:
            A stream of the fields of this one, then those of the rows, called `NAME_table` where this one has the name.

        Raises:
            GraphError: the name is taken or bad, no table, keys that never equal those of the stream, or nobody knows
                the schema of its rows.
            SchemaError: a record can't hold the rows.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("named")
        >>> trades = topology.source(rel.rows([("A", 9), ("B", 7)], schema={"symbol": str, "price": int}))
        >>> trades.key_by("symbol").enrich({"A": "Acme"}, name="named", how="left").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('A', 9, 'Acme'), ('B', 7, None)]
        """
        return self._declare(enrich(self._upstream, name, table, how, schema, suffix))


def right_of(left: StreamBase[Any], name: str, right: object) -> Upstream:
    """What a join gets as its other stream.

    Raises:
        GraphError: it is no stream, or one of another topology.
    """
    with NewOperator(name, left.topology.operators):
        if not isinstance(right, StreamBase):
            raise GraphError(f"a join needs a stream, not {shown(right)}", hint="Write left.join(right)")
        if right.topology is not left.topology:
            raise GraphError(
                f"a join with a stream of another topology, '{right.topology.name}'",
                hint=f"Declare both in '{left.topology.name}'",
            )
        return right._upstream
