"""Methods that join a stream with another one, or with a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.fluent.base import StreamBase, StreamT
from rayelastic.fluent.naming import named
from rayelastic.graph.operators.aligned import Aligned
from rayelastic.graph.operators.functions import function_operator
from rayelastic.graph.operators.joins.by_key import SUFFIX, Matching, cross_join, join
from rayelastic.graph.operators.joins.enrichment import TABLE_SUFFIX, enrich
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import Lifetime, Seconds
from rayelastic.graph.spec.declaration import LaneChoice, NewOperator
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.requests import FunctionKind
from rayelastic.graph.spec.upstream import Upstream

_Fields = str | Sequence[str]


class CrossMethods(StreamBase[StreamT]):
    """Joins that don't depend on the stream's keys."""

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
        """Join each tuple with the latest of every key of another stream: changing rules, or a table that is a stream.

        Every replica of the operator receives all tuples of the right, in order; a new replica copies the others' state
        (broadcast state). This stream is distributed by its keys; without keys, round-robin. If both streams have an
        event time, a tuple sees the right as of its own time. The result then doesn't depend on how the job runs.
        Without keys, such a join has one replica. Otherwise set by='arrival': a tuple sees the tuples that arrived
        before it, which depends on timing.

        Args:
            right: The other stream, of few tuples. With keys, the latest of each is kept, otherwise the latest of all.
                To withdraw a rule, add a field that says so and check it, or let it expire by ttl=.
            name: The operator's name; 'cross_join' by default.
            how: 'left': also emit tuples while the right is empty, with None in its fields.
            by: 'arrival': join with tuples that arrived before; required without event times.
            ttl: Seconds, or a timedelta, after the latest tuple of a key of the right at which the key expires. In
                event time if both streams have one, otherwise by the clock. None: never.
            suffix: Added to names of the right's fields that this stream has, too.
            fn: A function of one joined tuple; it maps the result, like ``map`` with schema and lane.
            schema: The schema of what fn returns.
            lane: The execution mode of fn.

        Returns:
            A stream of the fields of this one, then those of the right, named `NAME_right` if this one has the name.
            Each tuple is joined with all keys, always in the same order of keys.

        Raises:
            GraphError: Not a stream of this topology, event times of different units, or no event times without
                by='arrival'.

        Source: Broadcast state of Apache Flink, and its temporal joins.

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

    def join(
        self: Any, right: StreamT, on: _Fields | None = None, *, how: Any = "inner", name: str = "", **options: Any
    ) -> StreamT:
        """Join another stream on fields that both have: `.key_by(on).join(right.key_by(on), how=how)`.

        Args:
            right: the other stream.
            on: one field, or several.
            how: 'inner', 'left', 'right' or 'full'.
            name: of the operator; by default 'join'.
            options: of ``KeyedStream.join``.

        Raises:
            GraphError: no `on`; no such fields; both streams have an event time, and neither keep=, within= nor window=
                says which tuples match.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("named")
        >>> orders = topology.source(rel.rows([(1, "ann"), (2, "bob")], {"order": int, "user": str}))
        >>> users = topology.source(rel.rows([("ann", "NZ")], {"user": str, "country": str}))
        >>> orders.join(users, on="user", how="left").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [(1, 'ann', 'NZ'), (2, 'bob', None)]
        """
        keys = (on,) if isinstance(on, str) else tuple(on or ())
        other = right_of(self, name or "join", right)
        timed = self._upstream.event_time is not None and other.event_time is not None
        if not keys or (timed and not {"keep", "within", "window"} & options.keys()):
            what = "by which tuples match: both streams have an event time" if keys else "on which fields"
            raise GraphError(
                f"join doesn't know {what}",
                location=caller_location(),
                hint="Write .join(right, on='field'), with within=seconds where both have an event time",
            )
        left, matching = self.key_by(*keys), right.key_by(*keys)  # type: ignore[attr-defined]
        joined: StreamT = left.join(matching, how=how, **({"name": name} if name else {}), **options)
        return joined

    def _declare_joined(
        self, name: str, joined: OperatorSpec, fn: Callable[..., Any] | None, schema: object, lane: LaneChoice
    ) -> StreamT:
        if fn is None:
            return self._declare_timely(joined)
        behind = self._upstream.behind(joined)
        return self._declare(joined, function_operator(behind, FunctionKind.MAP, name, fn, schema=schema, lane=lane))


class JoinMethods(CrossMethods[StreamT]):
    """Joins by the keys of the stream."""

    __slots__ = ()

    @named
    def join(  # type: ignore[override]  # by the keys, so without on=
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
        """Join each tuple with the tuples of another stream that have its key, natively.

        If both streams have an event time, this is an *as-of* join with the latest tuple of the key at the tuple's
        time, inclusive. The arguments keep=, within= or window= change that. The result doesn't depend on how the job
        runs, as long as nothing is late. Which tuples are late for a join depends on how its two streams interleave.

        If one has no event time, set how=. The result is that of SQL, all pairs of a key, in any order of arrival. A
        bounded stream is read first, if the other one's sources can wait, and only it is kept; the right one if both
        are bounded. Otherwise both sides are kept. Tuples without a match are emitted once the other side has ended. Or
        set by='arrival': each tuple is joined with those that arrived before it, which depends on timing.

        A key with a None matches nothing, as in SQL.

        Args:
            right: The other stream, keyed by as many fields of the same types, or with the same key fields.
            name: The operator's name; 'join' by default.
            keep: Which tuples of the right are kept, by event time or by arrival: 'latest', the default; 'first'; or
                'all' without bound.
            within: Instead, match right tuples at most so many seconds earlier; (before, after) for both sides.
            window: Instead, match right tuples in the same tumbling window of so many seconds. A rel.Aligned sets where
                windows start, or windows of days.
            how: `'inner'` is the default. `'left'` also emits tuples without a match, with None in the right's fields.
                `'right'` also emits right tuples without a match, once nothing can match them any more. `'full'` does
                both. An as-of join has neither of the last two, and their result has no event time until you assign
                one. Required without event times.
            by: 'arrival': join with tuples that arrived before.
            symmetric: By arrival, right tuples are joined with the kept left ones, too; keep= applies to both sides.
            ttl: Seconds, or a timedelta, after the last tuple of a key on either side, at which its state is dropped.
                None: never. Not with within= or window=. A rel.Ttl(seconds, since="first") counts since the first kept
                tuple. In event time if both streams have one. Otherwise by the clock, which depends on timing; tuples
                without a match are emitted when their key expires.
            suffix: Added to names of the right's fields that this stream has, too.
            fn: A function of one joined tuple; it maps the result, like ``map`` with schema and lane.
            schema: The schema of what fn returns.
            lane: The execution mode of fn.

        Returns:
            A stream of the fields of this one, then those of the right but its keys, named `NAME_right` if this one has
            the name. Joins by time emit in the order of this one's times; `.late()` has the late tuples.

        Raises:
            GraphError: No such keys, or keys of other types. No event times and neither how= nor by=. Without event
                times, within= or window=; with them, by=. If tuples may match without end, how='right' or 'full'.

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
        """Add the fields of a table's row to each tuple of its key.

        The table is shipped with the operator. For changing data, join a stream. A key with a None is in no table.

        Args:
            table: {key: row}; a key is a tuple if there are several key fields; a row is a tuple, or a plain value.
            name: The operator's name; 'enrich' by default.
            how: 'left': also emit tuples whose key isn't in the table, with None.
            schema: The schema of the rows, see Schema.of; by default that of the first row, if it is a NamedTuple or
                plain.
            suffix: Added to names of the rows' fields that the stream has, too.

        Returns:
            A stream of the fields of this one, then those of the rows, named `NAME_table` if this one has the name.

        Raises:
            GraphError: The name is taken or invalid, no table, keys that never equal those of the stream, or an unknown
                schema of the rows.
            SchemaError: A record can't hold the rows.

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
    """Return the other stream of a join, checked.

    Raises:
        GraphError: It isn't a stream, or is one of another topology.
    """
    with NewOperator(name, left.topology.operators):
        if not isinstance(right, StreamBase):
            raise GraphError(
                f"a join needs a stream, not {shown(right)}", hint="Write left.join(right)", code=ErrorCode.NOT_A_STREAM
            )
        if right.topology is not left.topology:
            raise GraphError(
                f"a join with a stream of another topology, '{right.topology.name}'",
                hint=f"Declare both in '{left.topology.name}'",
                code=ErrorCode.OTHER_TOPOLOGY,
            )
        return right._upstream
