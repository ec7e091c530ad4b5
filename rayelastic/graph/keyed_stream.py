"""Streams with keys: the operators that keep state by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rayelastic.graph.declaration import LaneChoice
from rayelastic.graph.library import KeyedLibraryOperators
from rayelastic.graph.operator_spec import OperatorKind
from rayelastic.graph.schema import Schema
from rayelastic.graph.stream import NO_SIDES, ErrorChoice, Stream

if TYPE_CHECKING:
    from rayelastic.graph.event_time import Seconds
    from rayelastic.graph.topology import Topology


class _Seen(NamedTuple):
    """Whether a key has come."""

    seen: bool = False


def _is_first(_tuple: Any, state: Any) -> bool:
    if state.seen:
        return False
    state.seen = True
    return True


class KeyedStream(Stream, KeyedLibraryOperators):
    """A stream with the fields by which the next operator keeps its state.

    Attributes:
        keys: names of the key fields.
    """

    __slots__ = ("keys",)

    def __init__(self, topology: Topology, inputs: tuple[str, ...], schema: Schema, keys: tuple[str, ...]) -> None:
        super().__init__(topology, inputs, schema)
        self.keys = keys

    def map(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        state: Callable[[], Any] | None = None,
        ttl: Seconds | None = None,
        schema: object = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        sides: Mapping[str, object] = NO_SIDES,
    ) -> Stream:
        """Give one tuple for each; with state= by a function of the tuple and the state of its key.

        Args:
            name: of the operator.
            fn: `fn(t)`, or `fn(t, s)` with state=.
            state: NamedTuple class with defaults, whose fields fn sets (fixed layout, can be compiled), or any callable
                without arguments that makes a key's first state (python lane).
            ttl: seconds, or a timedelta, without a tuple of a key after which its state is forgotten, so that its next
                tuple finds the first state again; None: never. See below.
            schema: of what it gives, see Schema.of; found out by default.
            lane: 'auto', 'compiled', 'vectorised' or 'python'.
            on_error: as of Stream.map.
            sides: as of Stream.map.

        Where the stream has an event time, ttl is of that time: a key is forgotten for a tuple whose time, or the
        watermark, is more than ttl after the latest tuple of the key. What comes out then depends on the tuples alone,
        as long as none is late. Else it goes by the clock, read once for each run of tuples; while a job is stopped
        into a snapshot that clock stands still. The memory of keys that don't come again is freed bit by bit, as
        others come.

        Source: StateTtlConfig of Apache Flink, as with OnReadAndWrite and NeverReturnExpired.

        >>> import rayelastic as rel
        >>> class Count(NamedTuple):
        ...     n: int = 0
        >>> def count(t, s):
        ...     s.n += 1
        ...     return s.n
        >>> topology = rel.Topology("visits")
        >>> rows = rel.rows([("a", 0), ("b", 40), ("a", 60), ("a", 200)], schema={"who": str, "at": int})
        >>> timed = topology.source("visits", rows).event_time("time", "at")
        >>> timed.key_by("who").map("count", count, state=Count, schema=int, ttl=100).sink("out", rel.list())
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [1, 1, 2, 1]
        """
        keys = self._keys_of(state)
        return self._operator(OperatorKind.MAP, name, fn, state, schema, lane, keys, on_error, sides, ttl)

    def filter(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        state: Callable[[], Any] | None = None,
        ttl: Seconds | None = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
    ) -> Stream:
        """Keep the tuples for which fn is true. Arguments as for ``map``."""
        return self._operator(OperatorKind.FILTER, name, fn, state, None, lane, self._keys_of(state), on_error, ttl=ttl)

    def flat_map(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        state: Callable[[], Any] | None = None,
        ttl: Seconds | None = None,
        schema: object = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        sides: Mapping[str, object] = NO_SIDES,
    ) -> Stream:
        """Give any number of tuples for each: fn yields them. Arguments as for ``map``."""
        keys = self._keys_of(state)
        return self._operator(OperatorKind.FLAT_MAP, name, fn, state, schema, lane, keys, on_error, sides, ttl)

    def join(
        self,
        name: str,
        right: Stream,
        *,
        keep: Literal["latest"] = "latest",
        within: Seconds | tuple[Seconds, Seconds] | None = None,
        window: Seconds | None = None,
        how: Literal["inner", "left"] = "inner",
        fn: Callable[..., Any] | None = None,
        schema: object = None,
        lane: LaneChoice = "auto",
    ) -> Stream:
        """Join each tuple with what another stream has for its key, natively.

        By default with the latest tuple of the key: where both streams have an event time, the latest as of the tuple's
        own (right ones of the same time included), so that the result doesn't depend on how the job runs as long as
        nothing is late; what is late for a join depends on how its two streams interleave. Else the latest that there
        is when the tuple comes.

        Args:
            name: of the operator.
            right: the other stream, keyed by as many fields of the same types, or having the same key fields.
            keep: 'latest'.
            within: instead: with all right tuples at most so many seconds before; (before, after) for both sides.
            window: instead: with all right tuples in the same tumbling window of so many seconds.
            how: 'left': also give tuples without a match, the right's fields being None.
            fn: of one joined tuple; maps what is joined, like ``map`` with schema and lane.
            schema: of what fn gives.
            lane: of fn.

        Returns:
            A stream of the fields of this one, then those of the right but its keys; called `NAME_right` where this one
            has the name. Joins by time give it in the order of this one's times; `.late()` has what came too late.

        Raises:
            GraphError: no such keys, or of other types; within or window without event times.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("asof")
        >>> rows = rel.rows([("A", 1, 9.5), ("A", 5, 8.0)], {"key": str, "at": int, "price": float})
        >>> prices = topology.source("prices", rows)
        >>> rows = rel.rows([("A", 4, 2), ("A", 6, 1)], {"key": str, "at": int, "count": int})
        >>> orders = topology.source("orders", rows)
        >>> latest = prices.event_time("t1", "at").key_by("key")
        >>> joined = orders.event_time("t2", "at").key_by("key").join("cost", latest)
        >>> joined.sink("out", rel.list())
        <sink out>
        >>> [(t.at, t.count, t.price) for t in rel.run(topology)["out"]]
        [(4, 2, 9.5), (6, 1, 8.0)]
        """
        from rayelastic.graph.joins import join

        joined = join(self, name if fn is None else f"{name}.joined", right, keep, within, window, how)
        return joined if fn is None else joined.map(name, fn, schema=schema, lane=lane)

    def deduplicate(self, name: str, *, ttl: Seconds | None = None) -> Stream:
        """Keep the first tuple of each key.

        The state holds every key; with ttl= those that came within so many seconds, as for ``map``. A key passes again
        when it hasn't come for longer. Errors as for ``filter``.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("once")
        >>> words = topology.source("words", rel.rows([("a",), ("b",), ("a",)], schema={"word": str}))
        >>> words.key_by("word").deduplicate("once").sink("out", rel.list())
        <sink out>
        >>> [t.word for t in rel.run(topology)["out"]]
        ['a', 'b']
        """
        return self.filter(name, _is_first, state=_Seen, ttl=ttl)

    def _keys_of(self, state: object) -> tuple[str, ...]:
        """Drop the keys where there is no state: such a function doesn't depend on them."""
        return () if state is None else self.keys
