"""Which ordered parts, called splits, a stream has where it gets its event time: files, partitions, inputs of a union.

Each has a watermark of its own. A source says in band whose tuples follow, and so does a union in front of the operator
where streams of different sources meet. Operators in between keep the order of tuples. Knows no threads, PEs or native
code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import IN, OUT, InputPort, OutputPort, operator_of

__all__ = ["Union", "by_split"]

_ORDERED = (OperatorKind.MAP, OperatorKind.FILTER, OperatorKind.FLAT_MAP, OperatorKind.SPLIT)


@dataclass(frozen=True, slots=True)
class Union:
    """Unites streams in front of an event time, so that each has a watermark of its own.

    Args:
        tells: by input port, whether its stream says in order which split its tuples are of.
        lane: how it runs.
    """

    tells: tuple[bool, ...]
    lane: Lane = Lane.BUILT_IN
    reason: str = "each input has a watermark of its own"


def by_split(
    operators: Mapping[str, OperatorSpec], name: str, streams: tuple[str, ...]
) -> tuple[tuple[OperatorSpec, ...], tuple[str, ...], bool]:
    """Find the splits of what an event_time operator takes.

    Args:
        operators: declared so far.
        name: of the event_time operator.
        streams: that it takes.

    Returns:
        Operators to be declared anew or again; the streams that the operator takes then; whether there are splits.
    """
    new: dict[str, OperatorSpec] = {}

    def told(streams: tuple[str, ...], reader: str) -> tuple[tuple[str, ...], bool]:
        """The streams that an operator takes now, and whether they tell of splits."""
        if len(streams) == 1:
            return streams, tells(streams[0])
        sources = [source for stream in streams for source in _sources(operators, operator_of(stream))]
        if len(set(sources)) < len(sources):
            return streams, False  # branches of one source, such as channels: one of them may be silent for ever
        union = _union(operators, f"{reader}.union", streams, tuple(tells(stream) for stream in streams))
        new[union.name] = union
        return union.streams[:1], True

    def tells(stream: str) -> bool:
        spec = new.get(operator_of(stream)) or operators[operator_of(stream)]
        if spec.kind is OperatorKind.UNION:
            return True
        if spec.kind is OperatorKind.SOURCE:
            return bool(getattr(spec.body, "has_splits", len(getattr(spec.body, "paths", ())) > 1))
        if not _keeps_order(spec):
            return False
        taken, has_splits = told(spec.inputs[0].streams, spec.name)
        if taken != spec.inputs[0].streams:
            new[spec.name] = replace(spec, inputs=(replace(spec.inputs[0], streams=taken), *spec.inputs[1:]))
        return has_splits

    if any(operator_of(stream) not in operators for stream in streams):
        return (), streams, False  # one comes back: nobody knows what it is
    taken, has_splits = told(streams, name)
    return tuple(new.values()), taken, has_splits


def _keeps_order(spec: OperatorSpec) -> bool:
    plain = spec.kind in _ORDERED and spec.state_kind is StateKind.STATELESS
    plain = plain and getattr(spec.body, "concurrent", None) is None and not spec.loop_edges
    return plain or spec.kind is OperatorKind.THROTTLE


def _sources(operators: Mapping[str, OperatorSpec], name: str) -> set[str]:
    """The sources upstream of an operator."""
    found, looked, left = set(), set(), [name]
    while left:
        spec = operators[left.pop()]
        if spec.name in looked:
            continue
        looked.add(spec.name)
        left += spec.upstream
        if spec.kind is OperatorKind.SOURCE:
            found.add(spec.name)
    return found


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
    return OperatorSpec(name, OperatorKind.UNION, ports, outputs, StateKind.STATEFUL, Union(tells), location)
