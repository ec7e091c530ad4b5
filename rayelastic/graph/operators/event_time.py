"""`event_time`: the operator that assigns event times to a stream and emits its watermarks.

A stream may have ordered parts, called splits: files, partitions, inputs of a union. Each has its own watermark. A
source announces in band which split the next tuples belong to. So does a union upstream of the operator, where streams
of different sources meet. Operators in between keep the order of tuples. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.shown import check_flag, invalid
from rayelastic.graph.records.time_info import TICKS_PER_SECOND, Seconds, TimeInfo, TimeUnit, seconds_of, time_of_field
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import OperatorBody, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import IN, OUT, InputPort, OutputPort, operator_of
from rayelastic.graph.spec.upstream import Upstream

LONGEST_IDLE = 31_536_000  # seconds, a year
AHEAD = "ahead"  # the port of tuples that are too far ahead of the clock


@dataclass(frozen=True, slots=True)
class EventTime(OperatorBody):
    """What an event_time operator does.

    Args:
        time: The event time that it assigns.
        lateness: Ticks by which tuples may be out of order.
        idle_after: Seconds without a tuple after which a source is idle; 0: never.
        by_clock: Whether an idle source's time follows the clock.
        splits: Whether its stream announces splits, each of which has its own watermark.
        ahead: Seconds that tuples may be ahead of the clock; None: any number.
    """

    time: TimeInfo
    lateness: int
    idle_after: float = 0.0
    by_clock: bool = False
    splits: bool = False
    ahead: float | None = None
    operator_kind = "event_time"

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        idle = f", idle after {self.idle_after:g} s" if self.idle_after else ""
        clock = ", then by the clock" if self.by_clock else ""
        splits = ", a watermark for each file, partition or input" if self.splits else ""
        ahead = f", at most {self.ahead:g} s ahead of the clock" if self.ahead is not None else ""
        seconds = self.lateness / TICKS_PER_SECOND[self.time.unit]
        late = f", tuples up to {seconds:g} s late" if self.lateness else ""
        return f"event time is the field '{self.time.field}'{late}{idle}{clock}{splits}{ahead}"

    @property
    def output_time(self) -> TimeInfo:
        """The event time of its output."""
        return self.time

    assigned_time = output_time

    @property
    def uses_clock(self) -> bool:
        """Whether the clock ends its waiting for an idle source."""
        return self.idle_after > 0

    def reads(self, spec: OperatorSpec, port: int) -> tuple[str]:  # noqa: ARG002
        """Return the field of the event time."""
        return (self.time.field,)

    def passes(self, spec: OperatorSpec) -> tuple[str, ...]:
        """Return all its output ports."""
        return tuple(port.name for port in spec.outputs)

    def kept_form(self, spec: OperatorSpec) -> str:  # noqa: ARG002
        """Describe its state."""
        return f"the latest {self.time.field} in {self.time.unit}{' of each split' if self.splits else ''}"


@dataclass(frozen=True, slots=True)
class Union(OperatorBody):
    """Merges streams upstream of an event time, so that each has its own watermark.

    Args:
        announces: For each input port, whether its stream announces which split its tuples belong to.
    """

    announces: tuple[bool, ...]
    operator_kind = "union"
    has_splits = True
    reason = "each input has a watermark of its own"

    def reads(self, spec: OperatorSpec, port: int) -> tuple[()]:  # noqa: ARG002
        """Return no field."""
        return ()

    def passes(self, spec: OperatorSpec) -> tuple[str]:  # noqa: ARG002
        """Return its output port."""
        return (OUT,)


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
        before, streams, splits = _by_split(up.operators, name, up.inputs)
        body = EventTime(time, time.ticks(lateness, "lateness", least=0), idle, by_clock, splits, _ahead(ahead))
        beside = (OutputPort(AHEAD, up.schema, optional=True),) if ahead is not None else ()
        outputs = (OutputPort(OUT, up.schema), *beside)
        up = replace(up, inputs=streams)
        return *before, up.operator(name, body, location, outputs)


def _ahead(ahead: object) -> float | None:
    if ahead is None:
        return None
    seconds = seconds_of(ahead, "ahead")
    if not 0 <= seconds <= LONGEST_IDLE:
        raise invalid("ahead", ahead, f"Pass seconds, 0 or more and {LONGEST_IDLE:,} at most")
    return float(seconds)


def _idle_after(idle_after: object, by_clock: object) -> float:
    check_flag("by_clock", by_clock)
    if idle_after is None:
        if by_clock:
            raise GraphError(
                "by_clock=True without idle_after=",
                hint="Say after how many seconds it is idle",
                code=ErrorCode.MISSING_ARGUMENT,
            )
        return 0.0
    seconds = seconds_of(idle_after, "idle_after")
    if not 0 < seconds <= LONGEST_IDLE:
        raise invalid("idle_after", idle_after, f"Pass seconds, more than 0 and {LONGEST_IDLE:,} at most")
    return float(seconds)


def _by_split(
    operators: Mapping[str, OperatorSpec], name: str, streams: tuple[str, ...]
) -> tuple[tuple[OperatorSpec, ...], tuple[str, ...], bool]:
    """Find the splits of the streams that feed an event_time operator.

    Args:
        operators: The operators declared so far.
        name: The name of the event_time operator.
        streams: Its input streams.

    Returns:
        Operators to declare or replace, the operator's new input streams, and whether there are splits.
    """
    new: dict[str, OperatorSpec] = {}

    def told(streams: tuple[str, ...], reader: str) -> tuple[tuple[str, ...], bool]:
        """Return the streams that an operator receives now, and whether they announce splits."""
        if len(streams) == 1:
            return streams, tells(streams[0])
        sources = [source for stream in streams for source in _sources(operators, operator_of(stream))]
        if len(set(sources)) < len(sources):
            return streams, False  # branches of one source, such as channels: one of them may be idle for ever
        union = _union(operators, f"{reader}.union", streams, tuple(tells(stream) for stream in streams))
        new[union.name] = union
        return union.streams[:1], True

    def tells(stream: str) -> bool:
        spec = new.get(operator_of(stream)) or operators[operator_of(stream)]
        if spec.body.has_splits or not spec.body.keeps_splits(spec):
            return spec.body.has_splits
        taken, has_splits = told(spec.inputs[0].streams, spec.name)
        if taken != spec.inputs[0].streams:
            new[spec.name] = replace(spec, inputs=(replace(spec.inputs[0], streams=taken), *spec.inputs[1:]))
        return has_splits

    if any(operator_of(stream) not in operators for stream in streams):
        return (), streams, False  # a cycle: its splits aren't known
    taken, has_splits = told(streams, name)
    return tuple(new.values()), taken, has_splits


def _sources(operators: Mapping[str, OperatorSpec], name: str) -> set[str]:
    """Find the sources upstream of an operator."""
    sources, looked, left = set(), set(), [name]
    while left:
        spec = operators[left.pop()]
        if spec.name in looked:
            continue
        looked.add(spec.name)
        left += spec.upstream
        if spec.is_source:
            sources.add(spec.name)
    return sources


def _union(
    operators: Mapping[str, OperatorSpec], name: str, streams: tuple[str, ...], tells: tuple[bool, ...]
) -> OperatorSpec:
    first = operators[operator_of(streams[0])]
    schema = next(
        port.schema for port, stream in zip(first.outputs, first.streams, strict=True) if stream == streams[0]
    )
    ports = tuple(
        InputPort(IN if number == 1 else f"in{number}", schema, (stream,)) for number, stream in enumerate(streams, 1)
    )
    outputs = (OutputPort(OUT, schema),)
    location = caller_location()
    return OperatorSpec(name, ports, outputs, StateKind.STATEFUL, Union(tells), location)
