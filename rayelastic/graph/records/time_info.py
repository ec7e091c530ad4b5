"""Times as values: the field and unit of a stream's event time, and how long the state of a key is kept.

A time to live is as in Flink's StateTtlConfig; an expired key is dropped at its next lookup. Knows no operators and no
clock.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rayelastic.errors import ErrorCode, GraphError, SchemaError
from rayelastic.graph.records.data_type import DataType, parsed_format
from rayelastic.graph.records.schema import Field, Schema
from rayelastic.graph.records.shown import shown

TimeUnit = Literal["s", "ms", "us", "ns"]
Seconds = float | dt.timedelta
Since = Literal["last", "first", "change"]
TICKS_PER_SECOND: Mapping[str, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
LONGEST_SPAN = 2**60  # ticks of a window, gap or lateness, as time_field.hpp has it


@dataclass(frozen=True, slots=True)
class TimeInfo:
    """The event time of a stream.

    Args:
        field: A field of its tuples.
        unit: The unit of the field's ticks; a float field holds seconds, and its ticks are microseconds.
        shift: Ticks to add to the field.
    """

    field: str
    unit: str
    shift: int = 0

    def ticks(self, span: object, what: str, *, least: int = 1) -> int:
        """Convert a length of time into ticks.

        Args:
            span: Seconds, or a timedelta.
            what: Its name, for messages.
            least: The lowest number of ticks.

        Raises:
            GraphError: Not a length of time, too short or too long, or not a whole number of ticks.
        """
        exact = seconds_of(span, what) * TICKS_PER_SECOND[self.unit]
        ticks = round(exact)
        if not least <= ticks <= LONGEST_SPAN or not math.isclose(exact, ticks, rel_tol=1e-12):
            raise GraphError(
                f"{what}={shown(span)} is {exact:g} of field '{self.field}' in {self.unit}, and must be whole, "
                f"{least} at least",
                hint="Pass whole ticks of the time field, or a field of a finer unit",
                code=ErrorCode.OUT_OF_RANGE,
            )
        return ticks


@dataclass(frozen=True, slots=True)
class Ttl:
    """How long a key is kept, and since when; a value of `ttl=`, where plain seconds mean since='last'.

    Args:
        seconds: Seconds, or a timedelta.
        since: `'last'` counts since its latest tuple. `'first'` counts since its first tuple, so that it expires
            whatever arrives. `'change'`, of compiled functions with state=, counts since the latest tuple that changed
            its state.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("once")
    >>> rows = rel.rows([("a", 0), ("a", 40), ("a", 80), ("a", 120)], schema={"who": str, "at": int})
    >>> timed = topology.source(rows, name="seen").event_time("at", name="time").key_by("who")
    >>> timed.deduplicate(name="once", ttl=rel.Ttl(60, since="first")).sink(rel.list(), name="out")
    <sink out>
    >>> [t.at for t in rel.run(topology)["out"]]
    [0, 80]
    """

    seconds: Seconds
    since: Since = "last"


Lifetime = Seconds | Ttl


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """The time without a tuple after which a key is dropped.

    Args:
        ticks: Ticks of the event time, or nanoseconds.
        time: The event time; None: the clock of the key's PE.
        since: From when on they count, see Ttl.
        further: The event times of further input ports.
    """

    ticks: int
    time: TimeInfo | None
    since: Since = "last"
    further: tuple[TimeInfo, ...] = ()

    @property
    def described(self) -> tuple[int, str, int, str]:
        """Ticks, field of the event time ('' for the clock), ticks to add to it, and since when."""
        if self.time is None:
            return self.ticks, "", 0, self.since
        return self.ticks, self.time.field, self.time.shift, self.since

    @property
    def form(self) -> str:
        """A text for exported state, the same for every length."""
        return "touched by the clock" if self.time is None else f"touched at {self.time.field} in {self.time.unit}"


def seconds_of(span: object, what: str) -> float:
    """Convert a length of time into seconds.

    Raises:
        GraphError: It isn't one, or is infinite.
    """
    seconds = span.total_seconds() if isinstance(span, dt.timedelta) else span
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not abs(seconds) <= LONGEST_SPAN:
        raise GraphError(
            f"{what}={shown(span)} isn't a length of time",
            hint="Pass seconds, or a timedelta",
            code=ErrorCode.WRONG_TYPE,
        )
    return seconds


def time_of_field(schema: Schema, name: str, unit: str | None) -> TimeInfo:
    """Check that a field can be the event time.

    Args:
        schema: The stream's schema.
        name: The field's name.
        unit: The unit of an integer field's ticks; None: seconds.

    Raises:
        SchemaError: It doesn't exist, is nullable, or holds no times.
        GraphError: An unknown unit, or one for a field that has its own.
    """
    field: Field = schema.field(name)
    if field.nullable:
        raise SchemaError(
            f"field '{name}' of {schema.name} may be null and so can't be the event time",
            hint="Declare it without None, or filter and map the nulls away first",
            code=ErrorCode.BAD_EVENT_TIME,
        )
    if unit is not None and (unit not in TICKS_PER_SECOND or not field.type.is_integer):
        raise GraphError(
            f"unit={shown(unit)} for field '{name}', which is {field.type.value}",
            hint="Pass 's', 'ms', 'us' or 'ns', and only where the field is an integer",
            code=ErrorCode.UNKNOWN_CHOICE,
        )
    if field.type is DataType.TIMESTAMP:
        return TimeInfo(name, parsed_format(field.format)[2][0])
    if field.type.is_integer:
        return TimeInfo(name, unit or "s")
    if field.type.is_float:
        return TimeInfo(name, "us")
    raise SchemaError(
        f"field '{name}' of {schema.name} is {field.type.value} and can't be the event time",
        hint="Use a datetime, an integer, or a float of seconds",
        code=ErrorCode.BAD_EVENT_TIME,
    )
