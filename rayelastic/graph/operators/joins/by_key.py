"""Joins of two streams: by key, and of each tuple with all keys of the other stream.

What runs is native; see native_sched/include/rayelastic/operators/time/join.hpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rayelastic.errors import GraphError
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import Seconds, TimeInfo
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import LATE, OUT, InputPort, OutputPort
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["Join", "JoinKind", "cross_join", "join"]

RIGHT = "right"  # the port of the second stream, and what its fields are called where the first has the name already


class JoinKind(Enum):
    """Which right tuples a left one is joined with: of its key, or of each key."""

    LATEST = "latest"
    FIRST = "first"
    ALL = "all"
    INTERVAL = "interval"
    WINDOW = "window"
    CROSS = "cross"

    @property
    def is_bounded(self) -> bool:
        """Whether it is known when a right tuple can't be matched any more."""
        return self in (JoinKind.INTERVAL, JoinKind.WINDOW)


_KEPT = {JoinKind.LATEST: "the latest", JoinKind.FIRST: "the first", JoinKind.ALL: "all", JoinKind.CROSS: "the latest"}


class How(Enum):
    """Which tuples without a match are given, too."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"

    @property
    def of_left(self) -> bool:
        """Those of the left."""
        return self in (How.LEFT, How.FULL)

    @property
    def of_right(self) -> bool:
        """Those of the right."""
        return self in (How.RIGHT, How.FULL)


@dataclass(frozen=True, slots=True)
class Join:
    """What a join does.

    Args:
        kind: which right tuples match.
        right_keys: key fields of the right, in the order of those of the left; of a cross join, those by which the
            latest are told apart.
        right_fields: fields of the right that the output has, in order.
        left_time: event time of the left; None: by arrival.
        right_time: event time of the right.
        before: ticks, of an interval; the window's length.
        after: ticks, of an interval.
        how: which tuples without a match are given, too.
        symmetric: whether right tuples are joined with what is kept of the left, too; by arrival.
    """

    kind: JoinKind
    right_keys: tuple[str, ...]
    right_fields: tuple[str, ...]
    left_time: TimeInfo | None
    right_time: TimeInfo | None
    before: int = 0
    after: int = 0
    how: How = How.INNER
    symmetric: bool = False
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """What runs, in words."""
        if self.symmetric:
            return f"each with {_KEPT[self.kind]} of the other stream when it comes"
        whose = " of each key" if self.kind is JoinKind.CROSS else ""
        if self.left_time is None:
            there = "there are" if self.kind is JoinKind.ALL else "there is"
            return f"with {_KEPT[self.kind]} {there}{whose} when a tuple comes"
        unit = self.left_time.unit
        match self.kind:
            case JoinKind.WINDOW:
                return f"with those in the same window of {self.before} {unit}"
            case JoinKind.INTERVAL:
                return f"with those from {self.before} {unit} before to {self.after} {unit} after"
        return f"with {_KEPT[self.kind]}{whose} as of {self.left_time.field}"

    @property
    def output_time(self) -> TimeInfo | None:
        """The event time of what it gives: the left's, where each has one."""
        return None if self.how.of_right else self.left_time


def join(
    left: Upstream,
    name: str,
    right: Upstream,
    keep: str,
    within: Seconds | tuple[Seconds, Seconds] | None,
    window: Seconds | None,
    how: str,
    symmetric: object,
) -> OperatorSpec:
    """See ``KeyedStream.join``; without fn."""
    with NewOperator(name, left.operators) as location:
        outer = _how(how, How)
        if not isinstance(symmetric, bool):
            raise GraphError(f"symmetric={shown(symmetric)}", way_out="Give True or False")
        right_keys = right.keys or left.keys
        _check_keys(left, right, right_keys)
        times = _times(left, right)
        kind, before, after = _matching(keep, within, window, left.event_time)
        if kind.is_bounded and times == (None, None):
            raise GraphError(
                f"a join by {kind.value} needs the event time of both streams",
                way_out="Write .event_time(name, field) before, on both sides",
            )
        if symmetric and (kind.is_bounded or times != (None, None)):
            raise GraphError(
                "symmetric=True is of joins by arrival, and both streams have an event time",
                way_out="Leave it out and give within=(before, after), which looks at both sides alike",
            )
        if outer.of_right and not (kind.is_bounded or symmetric):
            raise GraphError(
                f"how='{how}' with keep='{keep}': nobody knows when the right is without a match",
                way_out="Give within= or window=, or symmetric=True for joins by arrival",
            )
        fields = tuple(f for f in right.schema.names if f not in right_keys)
        return _operator(
            left, name, right, Join(kind, right_keys, fields, *times, before, after, outer, symmetric), location
        )


def cross_join(left: Upstream, name: str, right: Upstream, how: str) -> OperatorSpec:
    """See ``Stream.cross_join``; without fn."""
    with NewOperator(name, left.operators) as location:
        outer = _how(how, (How.INNER, How.LEFT))
        body = Join(JoinKind.CROSS, right.keys, right.schema.names, *_times(left, right), how=outer)
        return _operator(left, name, right, body, location)


def _operator(left: Upstream, name: str, right: Upstream, body: Join, location: str) -> OperatorSpec:
    gives = _schema(name, left, right, body)
    late = (OutputPort(LATE, left.schema, optional=True),) if body.left_time is not None else ()
    by_key = () if body.kind is JoinKind.CROSS else body.right_keys  # else every replica gets all of the right
    return left.operator(
        name,
        OperatorKind.JOIN,
        StateKind.PARTITIONED if left.keys else StateKind.STATEFUL,
        body,
        location,
        (OutputPort(OUT, gives), *late),
        keys=left.keys,
        others=(InputPort(RIGHT, right.schema, right.inputs, by_key),),
    )


def _how(how: str, allowed: Sequence[How] | type[How]) -> How:
    values = [one.value for one in allowed]
    if how not in values:
        raise GraphError(f"how={shown(how)}", way_out=f"Choose {', '.join(values[:-1])} or {values[-1]}")
    return How(how)


def _times(left: Upstream, right: Upstream) -> tuple[TimeInfo | None, TimeInfo | None]:
    """The event times by which they are joined; none: by arrival."""
    one, other = left.event_time, right.event_time
    if one is None or other is None:
        return None, None
    if one.unit != other.unit:
        raise GraphError(
            f"the event times are in {one.unit} and in {other.unit}", way_out="Map one to the unit of the other"
        )
    return one, other


def _matching(
    keep: str, within: Seconds | tuple[Seconds, Seconds] | None, window: Seconds | None, time: TimeInfo | None
) -> tuple[JoinKind, int, int]:
    kept = {kind.value: kind for kind in (JoinKind.LATEST, JoinKind.FIRST, JoinKind.ALL)}
    if keep not in kept:
        raise GraphError(f"keep={shown(keep)}", way_out="Choose latest, first or all, or give within= or window=")
    if within is not None and window is not None:
        raise GraphError("a join has within or window, not both", way_out="Leave one of them out")
    if keep != "latest" and not (within is None and window is None):
        raise GraphError(
            f"keep='{keep}' with {'within' if window is None else 'window'}=, which keeps all",
            way_out="Leave keep= out",
        )
    time = time or TimeInfo("time", "s")
    if window is not None:
        return JoinKind.WINDOW, time.ticks(window, "window"), 0
    if within is None:
        return kept[keep], 0, 0
    before, after = within if isinstance(within, tuple) and len(within) == 2 else (within, 0)
    return JoinKind.INTERVAL, time.ticks(before, "within", least=0), time.ticks(after, "within", least=0)


def _check_keys(left: Upstream, right: Upstream, right_keys: tuple[str, ...]) -> None:
    if len(right_keys) != len(left.keys):
        raise GraphError(
            f"the left is keyed by {', '.join(left.keys)}, the right by {', '.join(right_keys)}",
            way_out="Key both by as many fields",
        )
    for one, other in zip(left.keys, right_keys, strict=True):
        here, there = left.schema.field(one), right.schema.field(other)
        if here.type is not there.type:
            raise GraphError(
                f"key '{one}' is {here.type.value}, but '{other}' of the right is {there.type.value}",
                way_out="Map one of them to the type of the other",
            )


def _schema(name: str, left: Upstream, right: Upstream, body: Join) -> Schema:
    columns = []
    for f in left.schema.fields:
        if f.name in left.keys:
            of_right = body.how.of_right and right.schema.field(body.right_keys[left.keys.index(f.name)]).nullable
            columns.append((f.name, f.format, f.nullable or of_right))
        else:
            columns.append((f.name, f.format, f.nullable or body.how.of_right))
    for f in map(right.schema.field, body.right_fields):
        called = f"{f.name}_{RIGHT}" if left.schema.find(f.name) is not None else f.name
        columns.append((called, f.format, f.nullable or body.how.of_left))
    return laid_out(name, columns)
