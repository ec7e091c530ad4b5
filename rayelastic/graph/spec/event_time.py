"""The event time of streams.

A watermark flows with the tuples and says up to which time they have arrived. Operators forward it, a union the least
of its inputs', and links transport it. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Mapping

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.time_info import TimeInfo
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.ports import OUT, operator_of, port_of


def event_time_of(operators: Mapping[str, OperatorSpec], streams: tuple[str, ...]) -> TimeInfo | None:
    """Find the event time of united streams; None if one of them has none, or they differ.

    Operators that assign no time keep that of their first input, as long as they keep the field.
    """
    times = {_time_of_stream(operators, stream) for stream in streams}
    return times.pop() if len(times) == 1 else None


def _time_of_stream(operators: Mapping[str, OperatorSpec], stream: str) -> TimeInfo | None:
    schemas: list[Schema | None] = []  # from the stream up to where its time is assigned
    while True:
        spec, port = operators[operator_of(stream)], port_of(stream, OUT)
        schemas.append(next(p.schema for p in spec.outputs if p.name == port))
        own = spec.body.output_time
        if own is not None and port == OUT:
            break
        first = spec.inputs[0].streams if spec.inputs else ()
        if spec.body.ends_time or not first:
            return None
        if len(first) > 1:
            own = event_time_of(operators, first)
            schemas.append(spec.input_schema)
            break
        stream = first[0]
    if own is None:
        return None
    fields = [schema.find(own.field) if schema is not None else None for schema in schemas]
    kept = all(f is not None and not f.nullable for f in fields)
    return own if kept and len({f.format for f in fields if f is not None}) == 1 else None


def time_units(operators: Mapping[str, OperatorSpec]) -> dict[str, str]:
    """Return the unit of the watermarks of each operator that has any, also where the time's field is gone.

    Args:
        operators: all of a topology, in topological order.
    """
    units: dict[str, str] = {}
    for name, spec in operators.items():
        found = {units.get(operator_of(stream)) for port in spec.inputs for stream in port.streams}
        own = spec.body.assigned_time
        unit = own.unit if own is not None else found.pop() if len(found) == 1 else None
        if unit is not None:
            units[name] = unit
    return units
