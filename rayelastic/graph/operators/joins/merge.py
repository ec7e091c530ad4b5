"""The merge of several streams by time.

It runs natively; see native_sched/include/rayelastic/operators/time/join.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.time_info import TimeInfo
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import OperatorBody, OperatorSpec, fields_form
from rayelastic.graph.spec.ports import LATE, OUT, InputPort, OutputPort
from rayelastic.graph.spec.upstream import Upstream


@dataclass(frozen=True, slots=True)
class Merge(OperatorBody):
    """What a merge by time does."""

    time: TimeInfo
    operator_kind = "merge_by_time"
    reason = "in the order of their times"

    @property
    def output_time(self) -> TimeInfo:
        """The event time of its output."""
        return self.time

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe its state."""
        return f"{len(spec.inputs)} streams of ({fields_form(spec.inputs[0].schema)}) by {self.time.field}"


def merge_by_time(name: str, streams: tuple[Upstream, ...]) -> OperatorSpec:
    """See ``Stream.merge_by_time``."""
    first = streams[0]
    with NewOperator(name, first.operators) as location:
        times = {stream.event_time for stream in streams}
        time = times.pop()
        if times or time is None:
            raise GraphError(
                "a merge by time needs one event time for all streams",
                hint="Write .event_time(field) of the same field on each of them",
                code=ErrorCode.NO_EVENT_TIME,
            )
        return first.operator(
            name,
            Merge(time),
            location,
            (OutputPort(OUT, first.schema), OutputPort(LATE, first.schema, optional=True)),
            others=tuple(
                InputPort(f"in{number}", other.schema, other.inputs) for number, other in enumerate(streams[1:], 2)
            ),
        )
