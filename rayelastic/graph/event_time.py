"""Event time: which field says when a tuple happened, in which unit, and how a stream comes by it.

A watermark goes with the tuples and says up to which time they have come. Operators pass it on, a union the least of
its inputs', and links carry it. Knows no threads, PEs or native code.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rayelastic.errors import GraphError, SchemaError
from rayelastic.graph.data_type import DataType, parsed_format
from rayelastic.graph.operator_spec import Lane, OperatorKind, OperatorSpec
from rayelastic.graph.ports import OUT, operator_of, port_of
from rayelastic.graph.schema import Field, Schema
from rayelastic.graph.shown import shown

__all__ = ["EventTime", "Seconds", "TimeInfo", "TimeUnit", "event_time_of", "seconds_of", "time_of_field"]

TimeUnit = Literal["s", "ms", "us", "ns"]
Seconds = float | dt.timedelta
TICKS_PER_SECOND: Mapping[str, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
LONGEST_SPAN = 2**60  # ticks of a window, gap or lateness, as time_field.hpp has it


@dataclass(frozen=True, slots=True)
class TimeInfo:
    """The event time of a stream.

    Args:
        field: of its tuples.
        unit: of the field's ticks; a float field holds seconds, and its ticks are microseconds.
        shift: ticks to be added to the field.
    """

    field: str
    unit: str
    shift: int = 0

    def ticks(self, span: object, what: str, *, least: int = 1) -> int:
        """Turn a length of time into ticks.

        Args:
            span: seconds, or a timedelta.
            what: it is, for messages.
            least: ticks that it must have.

        Raises:
            GraphError: no length of time, too short or too long, or no whole number of ticks.
        """
        exact = seconds_of(span, what) * TICKS_PER_SECOND[self.unit]
        ticks = round(exact)
        if not least <= ticks <= LONGEST_SPAN or not math.isclose(exact, ticks, rel_tol=1e-12):
            raise GraphError(
                f"{what}={shown(span)} is {exact:g} of field '{self.field}' in {self.unit}, and has to be whole, "
                f"{least} at least",
                way_out="Give whole ticks of the time field, or a field of a finer unit",
            )
        return ticks


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


def seconds_of(span: object, what: str) -> float:
    """Turn a length of time into seconds.

    Raises:
        GraphError: it is none, or one without end.
    """
    given = span.total_seconds() if isinstance(span, dt.timedelta) else span
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not abs(given) <= LONGEST_SPAN:
        raise GraphError(f"{what}={shown(span)} is no length of time", way_out="Give seconds, or a timedelta")
    return given


def time_of_field(schema: Schema, name: str, unit: str | None) -> TimeInfo:
    """Check that a field can be the event time.

    Args:
        schema: which has it.
        name: of the field.
        unit: of an integer field's ticks; None: seconds.

    Raises:
        SchemaError: there is none, it may be null, or holds no times.
        GraphError: a unit that there isn't, or one given where the field has its own.
    """
    field: Field = schema.field(name)
    if field.nullable:
        raise SchemaError(
            f"field '{name}' of {schema.name} may be null and can't be the event time",
            way_out="Declare it without None, or filter and map the nulls away first",
        )
    if unit is not None and (unit not in TICKS_PER_SECOND or not field.type.is_integer):
        raise GraphError(
            f"unit={shown(unit)} for field '{name}', which is {field.type.value}",
            way_out="Give 's', 'ms', 'us' or 'ns', and only where the field is an integer",
        )
    if field.type is DataType.TIMESTAMP:
        return TimeInfo(name, parsed_format(field.format)[2][0])
    if field.type.is_integer:
        return TimeInfo(name, unit or "s")
    if field.type.is_float:
        return TimeInfo(name, "us")
    raise SchemaError(
        f"field '{name}' of {schema.name} is {field.type.value} and holds no times",
        way_out="The event time has to be a datetime, an integer, or a float of seconds",
    )


def event_time_of(operators: Mapping[str, OperatorSpec], streams: tuple[str, ...]) -> TimeInfo | None:
    """Find the event time of united streams; None if one of them has none, or they differ.

    Operators that give no time of their own keep that of their first input, as long as they keep the field.
    """
    found = {_time_of_stream(operators, stream) for stream in streams}
    return found.pop() if len(found) == 1 else None


def _time_of_stream(operators: Mapping[str, OperatorSpec], stream: str) -> TimeInfo | None:
    schemas: list[Schema | None] = []  # of the streams on the way to where the time comes from
    while True:
        spec, port = operators[operator_of(stream)], port_of(stream, OUT)
        schemas.append(next(p.schema for p in spec.output_ports if p.name == port))
        own: TimeInfo | None = getattr(spec.body, "output_time", None)
        if own is not None and port == OUT:
            break
        if spec.kind in (OperatorKind.SOURCE, OperatorKind.AGGREGATE) or not spec.inputs:
            return None
        if len(spec.inputs) > 1:
            own = event_time_of(operators, spec.inputs)
            schemas.append(spec.input_schema)
            break
        stream = spec.inputs[0]
    if own is None:
        return None
    fields = [schema.find(own.field) if schema is not None else None for schema in schemas]
    kept = all(f is not None and not f.nullable for f in fields)
    return own if kept and len({f.format for f in fields if f is not None}) == 1 else None
