"""`event_time`: the operator from which on a stream has an event time; it gives the watermarks.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.graph.records.time_info import Seconds, TimeInfo, TimeUnit, time_of_field
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import OUT, OutputPort
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["EventTime", "event_time"]


@dataclass(frozen=True, slots=True)
class EventTime:
    """What an event_time operator does."""

    time: TimeInfo
    lateness: int  # ticks
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """What runs, in words."""
        return f"time is {self.time.field}, tuples may be {self.lateness} {self.time.unit} late"

    @property
    def output_time(self) -> TimeInfo:
        """The event time of what it gives."""
        return self.time


def event_time(up: Upstream, name: str, field: str, lateness: Seconds, unit: TimeUnit | None) -> OperatorSpec:
    """See ``Stream.event_time``."""
    with NewOperator(name, up.operators) as location:
        time = time_of_field(up.schema, field, unit)
        body = EventTime(time, time.ticks(lateness, "lateness", least=0))
        outputs = (OutputPort(OUT, up.schema),)
        return up.operator(name, OperatorKind.EVENT_TIME, StateKind.STATEFUL, body, location, outputs)
