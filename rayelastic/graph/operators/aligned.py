"""Where time windows start: at multiples of their length, from an offset on, or with the days of a time zone.

The standard library finds when the days of a zone begin, across changes of its clocks. The native computation is in
native_sched/include/rayelastic/record/days.hpp. Knows no threads, PEs, clocks or native code.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.data_type import DataType, parsed_format
from rayelastic.graph.records.shown import conflict, invalid, shown
from rayelastic.graph.records.time_info import LONGEST_SPAN, TICKS_PER_SECOND, Seconds, TimeInfo
from rayelastic.graph.records.time_values import CLOCK, TimeValues, zone_of
from rayelastic.graph.spec.upstream import Upstream

_FIRST_DAY = dt.date(1970, 1, 1)
_MONDAY = dt.date(1970, 1, 5)
DAY = 86_400  # seconds of a day without a clock change
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EARLIEST = -62_091  # days since 1970: 1800-01-01, when no zone had changed its clocks
_LATEST = 171_664  # 2440-01-01; from 2040 on, the calendar repeats every 400 years


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """The length and alignment of windows; see ``Stream.window``, whose arguments these are.

    >>> import rayelastic as rel
    >>> rel.Aligned(days=7, zone="Europe/Berlin")
    Aligned(seconds=None, days=7, align_to=None, zone='Europe/Berlin')
    """

    seconds: Seconds | None = None
    days: int | None = None
    align_to: object = None
    zone: object = None


@dataclass(frozen=True, slots=True)
class Ticks:
    """The same in ticks of a stream: size, slide, offset from 1970, and the zone of the days; '' for none."""

    size: int
    slide: int
    offset: int
    zone: str


def ticks_of(
    up: Upstream, time: TimeInfo | None, wanted: Aligned, slide: object = None, what: str = "seconds"
) -> Ticks:
    """Convert windows of seconds or days into ticks.

    Args:
        up: The stream.
        time: Its event time; None: processing time.
        wanted: The windows.
        slide: Seconds or days between the starts of two windows; None: their length.
        what: The argument's name, for messages.

    Raises:
        GraphError: The windows are invalid.
    """
    unit = time or CLOCK
    if (wanted.seconds is None) == (wanted.days is None):
        raise conflict("a window has seconds or days", "Leave one of them out")
    if wanted.days is None:
        if wanted.zone is not None:
            raise GraphError(
                f"zone={shown(wanted.zone)} without days=",
                hint="Pass days=, or leave zone= out",
                code=ErrorCode.MISSING_ARGUMENT,
            )
        size = unit.ticks(wanted.seconds, what)
        every = size if slide is None else unit.ticks(slide, "slide")
        return Ticks(size, every, _offset(up, time, wanted.align_to) % every, "")
    size = _whole(wanted.days, "days")
    every = size if slide is None else _whole(slide, "slide")
    first = _MONDAY if wanted.align_to is None else wanted.align_to
    if type(first) is not dt.date:
        raise GraphError(
            f"align_to={shown(first)} with days=",
            hint="Pass the date of a day on which a window starts",
            code=ErrorCode.WRONG_TYPE,
        )
    day = DAY * TICKS_PER_SECOND[unit.unit]
    if max(size, every) * day > LONGEST_SPAN:
        raise GraphError(f"days={shown(wanted.days)} is too long", hint="Pass fewer days", code=ErrorCode.OUT_OF_RANGE)
    offset = (first - _FIRST_DAY).days % every * day
    return Ticks(size * day, every * day, offset, _zone(up, time, wanted.zone))


def _whole(days: object, what: str) -> int:
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        raise invalid(what, days, "Pass a number of days, 1 or more")
    return days


def _offset(up: Upstream, time: TimeInfo | None, align_to: object) -> int:
    if align_to is None:
        return 0
    try:
        return TimeValues.of(time, up.schema).ticks(align_to) - (time or CLOCK).shift
    except (TypeError, ValueError, OverflowError) as error:
        raise GraphError(
            f"align_to={shown(align_to)}: {error}",
            hint="Pass a time at which a window starts, of the type of the event time",
            code=ErrorCode.WRONG_TYPE,
        ) from None


def _zone(up: Upstream, time: TimeInfo | None, zone: object) -> str:
    """Return the zone that the user set, or that of the event time."""
    if zone is None and time is not None and up.schema.field(time.field).type is DataType.TIMESTAMP:
        zone = next(iter(parsed_format(up.schema.field(time.field).format)[2][1:]), None)
    return "" if zone is None else checked_zone(zone)


# --- days of a zone ---------------------------------------------------------------------------------------------------


def checked_zone(zone: object) -> str:
    """Check the name of a zone; '' stands for UTC, whose days all have 24 hours.

    Raises:
        GraphError: The zone doesn't exist.
    """
    name = zone.key if isinstance(zone, ZoneInfo) else zone
    try:
        if not isinstance(name, str) or not name:
            raise ZoneInfoNotFoundError
        zone_of(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise GraphError(
            f"zone={shown(zone)} isn't a time zone",
            hint="Pass a name such as 'Europe/Berlin'",
            code=ErrorCode.UNKNOWN_TIME_ZONE,
        ) from None
    return "" if name == "UTC" else name


@cache
def runs_of(zone: str) -> tuple[tuple[int, int], ...]:
    """Find the days from which each day has 24 hours until the next: (day since 1970, second in which it begins).

    >>> [run for run in runs_of("Europe/Berlin") if run[0] > 20_400][:2]
    [(20542, 1774821600), (20752, 1792969200)]
    """
    info = zone_of(zone)
    runs = [(_EARLIEST, _start(info, _EARLIEST))]
    midnight, week = (_EPOCH + dt.timedelta(_EARLIEST)).replace(tzinfo=info), dt.timedelta(7)
    offset = midnight.utcoffset()
    for day in range(_EARLIEST, _LATEST, 7):
        midnight += week
        before, offset = offset, midnight.utcoffset()
        if offset != before:
            starts = [_start(info, each) for each in range(day, day + 8)]
            runs += [(day + n, starts[n]) for n in range(1, 8) if starts[n] != starts[n - 1] + DAY]
    return tuple(runs)


def _start(info: dt.tzinfo, day: int) -> int:
    """Return the second in which a day begins: the first one whose local time is in that day, or a later day."""
    midnight = _EPOCH + dt.timedelta(day)
    local = day * DAY
    first, second = (_seconds(midnight.replace(tzinfo=info, fold=fold).utcoffset()) for fold in (0, 1))
    start = local - first
    low = local - second
    if low >= start or _shown(info, start) == local:
        return start
    while start - low > 1:  # the clocks are put forward over midnight
        middle = (low + start) // 2
        low, start = (low, middle) if _shown(info, middle) >= local else (middle, start)
    return start


def _shown(info: dt.tzinfo, second: int) -> int:
    """Return the local time in a second, in seconds since 1970 of that clock."""
    return second + _seconds((_EPOCH + dt.timedelta(0, second)).astimezone(info).utcoffset())


def _seconds(offset: dt.timedelta | None) -> int:
    assert offset is not None
    return offset // dt.timedelta(0, 1)


def length_of(length: object, seconds: object) -> dt.timedelta:
    """Return a window's length that was passed by position.

    Raises:
        GraphError: It isn't a timedelta, so that it may mean tuples or seconds; or seconds= was passed, too.
    """
    if not isinstance(length, dt.timedelta) or seconds is not None:
        hint = "Write .window(count=..), .window(seconds=..), or pass one timedelta"
        raise GraphError(f"window({shown(length)}) may be tuples or seconds", hint=hint, code=ErrorCode.WRONG_TYPE)
    return length
