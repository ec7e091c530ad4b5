"""Joins of two streams by key, and the merge of several by time.

What runs is native; see native_sched/include/rayelastic/operators/time/join.hpp.
"""

from __future__ import annotations

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

__all__ = ["Join", "JoinKind", "Merge", "join", "merge_by_time"]

RIGHT = "right"  # the port of the second stream, and what its fields are called where the first has the name already


class JoinKind(Enum):
    """Which right tuples of a key a left one is joined with."""

    LATEST = "latest"
    INTERVAL = "interval"
    WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Join:
    """What a join does.

    Args:
        kind: which right tuples match.
        right_keys: key fields of the right, in the order of those of the left.
        right_fields: fields of the right that the output has, in order.
        left_time: event time of the left; None: by arrival.
        right_time: event time of the right.
        before: ticks, of an interval; the window's length.
        after: ticks, of an interval.
        outer: whether left tuples without a match are given, too.
    """

    kind: JoinKind
    right_keys: tuple[str, ...]
    right_fields: tuple[str, ...]
    left_time: TimeInfo | None
    right_time: TimeInfo | None
    before: int = 0
    after: int = 0
    outer: bool = False
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """What runs, in words."""
        if self.left_time is None:
            return "with the latest there is when a tuple comes"
        if self.kind is JoinKind.LATEST:
            return f"with the latest as of {self.left_time.field}"
        unit = self.left_time.unit
        if self.kind is JoinKind.WINDOW:
            return f"with those in the same window of {self.before} {unit}"
        return f"with those from {self.before} {unit} before to {self.after} {unit} after"

    @property
    def output_time(self) -> TimeInfo | None:
        """The event time of what it gives: the left's."""
        return self.left_time


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge by time does."""

    time: TimeInfo
    lane: Lane = Lane.BUILT_IN
    reason: str = "in the order of their times"

    @property
    def output_time(self) -> TimeInfo:
        """The event time of what it gives."""
        return self.time


def join(
    left: Upstream,
    name: str,
    right: Upstream,
    keep: str,
    within: Seconds | tuple[Seconds, Seconds] | None,
    window: Seconds | None,
    how: str,
) -> OperatorSpec:
    """See ``KeyedStream.join``; without fn."""
    with NewOperator(name, left.operators) as location:
        if how not in ("inner", "left"):
            raise GraphError(f"how={shown(how)}", way_out="Choose 'inner' or 'left'")
        right_keys = right.keys or left.keys
        _check_keys(left, right, right_keys)
        times = left.event_time, right.event_time
        kind, before, after = _matching(keep, within, window, times[0])
        timed = times[0] is not None and times[1] is not None
        if timed and times[0] is not None and times[1] is not None and times[0].unit != times[1].unit:
            raise GraphError(
                f"the event times are in {times[0].unit} and in {times[1].unit}",
                way_out="Map one to the unit of the other",
            )
        if kind is not JoinKind.LATEST and not timed:
            raise GraphError(
                f"a join by {kind.value} needs the event time of both streams",
                way_out="Write .event_time(name, field) before, on both sides",
            )
        fields = tuple(f for f in right.schema.names if f not in right_keys)
        body = Join(
            kind,
            right_keys,
            fields,
            times[0] if timed else None,
            times[1] if timed else None,
            before,
            after,
            how == "left",
        )
        gives = _schema(name, left.schema, right.schema, fields, body.outer)
        late = (OutputPort(LATE, left.schema, optional=True),) if timed else ()
        return left.operator(
            name,
            OperatorKind.JOIN,
            StateKind.PARTITIONED,
            body,
            location,
            (OutputPort(OUT, gives), *late),
            keys=left.keys,
            others=(InputPort(RIGHT, right.schema, right.inputs, right_keys),),
        )


def _matching(
    keep: str, within: Seconds | tuple[Seconds, Seconds] | None, window: Seconds | None, time: TimeInfo | None
) -> tuple[JoinKind, int, int]:
    if keep != "latest":
        raise GraphError(f"keep={shown(keep)}", way_out="Choose 'latest', or give within= or window=")
    if within is not None and window is not None:
        raise GraphError("a join has within or window, not both", way_out="Leave one of them out")
    time = time or TimeInfo("time", "s")
    if window is not None:
        return JoinKind.WINDOW, time.ticks(window, "window"), 0
    if within is None:
        return JoinKind.LATEST, 0, 0
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


def _schema(name: str, left: Schema, right: Schema, fields: tuple[str, ...], outer: bool) -> Schema:
    columns = [(f.name, f.format, f.nullable) for f in left.fields]
    for field in map(right.field, fields):
        called = f"{field.name}_{RIGHT}" if left.find(field.name) is not None else field.name
        columns.append((called, field.format, field.nullable or outer))
    return laid_out(name, columns)


def merge_by_time(name: str, streams: tuple[Upstream, ...]) -> OperatorSpec:
    """See ``Stream.merge_by_time``."""
    first = streams[0]
    with NewOperator(name, first.operators) as location:
        times = {stream.event_time for stream in streams}
        time = times.pop()
        if times or time is None:
            raise GraphError(
                "a merge by time needs one event time for all streams",
                way_out="Write .event_time(name, field) of the same field on each of them",
            )
        return first.operator(
            name,
            OperatorKind.MERGE,
            StateKind.STATEFUL,
            Merge(time),
            location,
            (OutputPort(OUT, first.schema), OutputPort(LATE, first.schema, optional=True)),
            others=tuple(
                InputPort(f"in{number}", other.schema, other.inputs) for number, other in enumerate(streams[1:], 2)
            ),
        )
