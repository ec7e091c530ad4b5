"""`event_time`: the operator from which on a stream has an event time; it gives the watermarks.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rayelastic.errors import GraphError
from rayelastic.graph.operators.splits_of_streams import by_split
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import Seconds, TimeInfo, TimeUnit, seconds_of, time_of_field
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import OUT, OutputPort
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["EventTime", "event_time"]

LONGEST_IDLE = 31_536_000  # seconds, a year
AHEAD = "ahead"  # port of tuples that are too far ahead of the clock


@dataclass(frozen=True, slots=True)
class EventTime:
    """What an event_time operator does.

    Args:
        time: that it gives.
        lateness: ticks.
        idle_after: seconds without a tuple; 0: it is never idle.
        by_clock: whether its time goes on with the clock then.
        splits: whether its stream tells of splits, each of which has a watermark of its own.
        ahead: seconds that tuples may be ahead of the clock; None: as many as they like.
        lane: how it runs.
    """

    time: TimeInfo
    lateness: int
    idle_after: float = 0.0
    by_clock: bool = False
    splits: bool = False
    ahead: float | None = None
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """What runs, in words."""
        idle = f", idle after {self.idle_after:g} s" if self.idle_after else ""
        clock = ", then by the clock" if self.by_clock else ""
        splits = ", a watermark for each file, partition or input" if self.splits else ""
        ahead = f", at most {self.ahead:g} s ahead of the clock" if self.ahead is not None else ""
        late = f"tuples may be {self.lateness} {self.time.unit} late"
        return f"time is {self.time.field}, {late}{idle}{clock}{splits}{ahead}"

    @property
    def output_time(self) -> TimeInfo:
        """The event time of what it gives."""
        return self.time


def event_time(
    up: Upstream,
    name: str,
    field: str,
    lateness: Seconds,
    unit: TimeUnit | None,
    idle_after: Seconds | None,
    by_clock: bool,
    ahead: Seconds | None,
) -> tuple[OperatorSpec, ...]:
    """See ``Stream.event_time``."""
    with NewOperator(name, up.operators) as location:
        time = time_of_field(up.schema, field, unit)
        idle = _idle_after(idle_after, by_clock)
        before, streams, splits = by_split(up.operators, name, up.inputs)
        body = EventTime(time, time.ticks(lateness, "lateness", least=0), idle, by_clock, splits, _ahead(ahead))
        beside = (OutputPort(AHEAD, up.schema, optional=True),) if ahead is not None else ()
        outputs = (OutputPort(OUT, up.schema), *beside)
        up = replace(up, inputs=streams)
        return *before, up.operator(name, OperatorKind.EVENT_TIME, StateKind.STATEFUL, body, location, outputs)


def _ahead(ahead: object) -> float | None:
    if ahead is None:
        return None
    seconds = seconds_of(ahead, "ahead")
    if not 0 <= seconds <= LONGEST_IDLE:
        raise GraphError(f"ahead={shown(ahead)}", way_out=f"Give seconds, 0 or more and {LONGEST_IDLE:,} at most")
    return float(seconds)


def _idle_after(idle_after: object, by_clock: object) -> float:
    if not isinstance(by_clock, bool):
        raise GraphError(f"by_clock={shown(by_clock)}", way_out="Give True or False")
    if idle_after is None:
        if by_clock:
            raise GraphError("by_clock=True without idle_after=", way_out="Say after how many seconds it is idle")
        return 0.0
    seconds = seconds_of(idle_after, "idle_after")
    if not 0 < seconds <= LONGEST_IDLE:
        raise GraphError(
            f"idle_after={shown(idle_after)}", way_out=f"Give seconds, more than 0 and {LONGEST_IDLE:,} at most"
        )
    return float(seconds)
