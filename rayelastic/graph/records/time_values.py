"""Times as users write them, and as ticks: of the field of the event time, or of the clock.

Knows no operators, and no clock.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from rayelastic.graph.records.data_type import DataType, own_class, parsed_format
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.time_info import TICKS_PER_SECOND, TimeInfo

CLOCK = TimeInfo("", "us")  # of times by the clock: floats, seconds since 1970
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class TimeValues:
    """How times of a stream are represented.

    Args:
        time: The stream's event time.
        kind: int, float (seconds) or datetime.
        zone: The zone of datetimes; None: they have none.
    """

    time: TimeInfo
    kind: type
    zone: dt.tzinfo | None = None

    @classmethod
    def of(cls, time: TimeInfo | None, schema: Schema) -> TimeValues:
        """Return the representation of a field of the schema, or of the clock.

        >>> times = TimeValues.of(TimeInfo("at", "ms"), Schema.of({"at": int}))
        >>> times.ticks(5000), times.value(5000), times.span(1.5)
        (5000, 5000, 1500)
        """
        if time is None:
            return cls(CLOCK, float)
        field = schema.field(time.field)
        if field.type is not DataType.TIMESTAMP:
            return cls(time, float if field.type.is_float else int)
        _, *zone = parsed_format(field.format)[2]
        return cls(time, own_class(dt.datetime), zone_of(zone[0]) if zone else None)

    @property
    def _has_dates(self) -> bool:
        return self.kind not in (int, float)

    @property
    def unshifted(self) -> TimeValues:
        """Return the same form of times without a shift, as bounds of windows have it."""
        return replace(self, time=replace(self.time, shift=0))

    @property
    def ticks_per_second(self) -> int:
        """Ticks per second of its unit."""
        return TICKS_PER_SECOND[self.time.unit]

    def ticks(self, value: Any) -> int:
        """Convert a time into ticks.

        Raises:
            TypeError: It isn't of the type of this stream's times.
        """
        fits = isinstance(value, (int, float) if self.kind is float else self.kind) and not isinstance(value, bool)
        if not fits or (self._has_dates and (value.tzinfo is None) != (self.zone is None)):
            zoned = " with a zone" if self.zone is not None else ""
            raise TypeError(f"{value!r} is no time here: times are of type {self.kind.__name__}{zoned}")
        if self._has_dates:
            since = value - (_EPOCH if self.zone is not None else _EPOCH.replace(tzinfo=None))
            ticks = since // _MICROSECOND * TICKS_PER_SECOND[self.time.unit] // 1_000_000
        elif self.kind is float:
            ticks = _floor(value, TICKS_PER_SECOND[self.time.unit])
        else:
            ticks = value
        return int(ticks) + self.time.shift

    def value(self, ticks: int) -> Any:
        """Convert ticks into a time.

        Raises:
            ValueError: It is out of a datetime's range.
        """
        at = ticks - self.time.shift
        if self.kind is int:
            return at
        if self.kind is float:
            return at / TICKS_PER_SECOND[self.time.unit]
        micros, rest = divmod(at * 1_000_000, TICKS_PER_SECOND[self.time.unit])
        if rest:
            raise ValueError(f"{at} ns since 1970 are no datetime: one has microseconds. Give the event time in us")
        try:
            moment = _EPOCH + micros * _MICROSECOND
            return moment.replace(tzinfo=None) if self.zone is None else moment.astimezone(self.zone)
        except OverflowError:
            raise ValueError(
                f"{at} {self.time.unit} since 1970 are no datetime, which has years 1 to 9999: "
                "pass the event time as a number"
            ) from None

    def span(self, seconds: Any) -> int:
        """Convert a length of time, seconds or a timedelta, into ticks, rounded up.

        Raises:
            ValueError: It isn't more than 0.
        """
        length = seconds.total_seconds() if isinstance(seconds, dt.timedelta) else seconds
        if not length > 0:
            raise ValueError(f"{seconds!r} is no time to wait: pass seconds, more than 0")
        exact = length * TICKS_PER_SECOND[self.time.unit]
        nearest = round(exact)
        return nearest if math.isclose(exact, nearest, rel_tol=1e-12) else math.ceil(exact)


def _floor(seconds: float, per_second: int) -> int:
    """Convert seconds into ticks, rounded down: the most that aren't more seconds (as in time_field.hpp)."""
    ticks = math.floor(seconds * per_second)
    if (ticks + 1) / per_second <= seconds:
        return ticks + 1
    return ticks - 1 if ticks / per_second > seconds else ticks


def zone_of(name: str) -> dt.tzinfo:
    """Make a zone from its name, or from an offset such as +02:00.

    Raises:
        ZoneInfoNotFoundError, ValueError, OSError: It doesn't exist.
    """
    if name[:1] in ("+", "-"):
        offset = dt.datetime.strptime(name, "%z").utcoffset()
        assert offset is not None
        return dt.timezone(offset)
    return ZoneInfo(name)
