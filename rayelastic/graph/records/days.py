"""Days of a zone: when each begins, whatever its clocks do, and times counted in such days.

What is computed natively with them is in native_sched/src/record/days.hpp. Knows no operators, and no clock.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rayelastic.errors import GraphError
from rayelastic.graph.records.shown import shown

__all__ = ["DAY", "Days", "checked_zone", "runs_of", "zone_of"]

DAY = 86_400  # seconds, as clocks have them on most days
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EARLIEST = -62_091  # days since 1970: 1800-01-01, when no zone had changed its clocks
_LATEST = 171_664  # 2440-01-01; from 2040 on everything comes again after 400 years
_CYCLE = 146_097  # days of 400 years


def zone_of(name: str) -> dt.tzinfo:
    """Make a zone of its name, or of an offset such as +02:00.

    Raises:
        ZoneInfoNotFoundError, ValueError, OSError: there is none.
    """
    if name[:1] in ("+", "-"):
        offset = dt.datetime.strptime(name, "%z").utcoffset()
        assert offset is not None
        return dt.timezone(offset)
    return ZoneInfo(name)


def checked_zone(zone: object) -> str:
    """Check the name of a zone: '' for UTC, whose days are all alike.

    Raises:
        GraphError: there is no such zone.
    """
    name = zone.key if isinstance(zone, ZoneInfo) else zone
    try:
        if not isinstance(name, str) or not name:
            raise ZoneInfoNotFoundError
        zone_of(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise GraphError(f"zone={shown(zone)} is no time zone", way_out="Give one such as 'Europe/Berlin'") from None
    return "" if name == "UTC" else name


@cache
def runs_of(zone: str) -> tuple[tuple[int, int], ...]:
    """Find the days from which on days are of 24 hours, until the next: (day since 1970, second when it begins).

    >>> [run for run in runs_of("Europe/Berlin") if run[0] > 20_400][:2]
    [(20542, 1774825200), (20753, 1792882800)]
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
    """The second in which a day begins: the first whose clock shows the day, or a later one."""
    midnight = _EPOCH + dt.timedelta(day)
    local = day * DAY
    first, second = (_seconds(midnight.replace(tzinfo=info, fold=fold).utcoffset()) for fold in (0, 1))
    start = local - first
    low = local - second
    if low >= start or _shown(info, start) == local:
        return start
    while start - low > 1:  # clocks are put forward over midnight
        middle = (low + start) // 2
        low, start = (low, middle) if _shown(info, middle) >= local else (middle, start)
    return start


def _shown(info: dt.tzinfo, second: int) -> int:
    """What a clock shows, in seconds since 1970 of that clock."""
    return second + _seconds((_EPOCH + dt.timedelta(0, second)).astimezone(info).utcoffset())


def _seconds(offset: dt.timedelta | None) -> int:
    assert offset is not None
    return offset // dt.timedelta(0, 1)


@dataclass(frozen=True, slots=True)
class Days:
    """Times counted in days of a zone, each of as many ticks as 24 hours have.

    So what is done by such times is done by days, though a day has 23 or 25 hours: of a longer one all that is behind
    24 hours is its last tick. Of days before 1800 and behind 2440 what is there, and repeats, then.

    Args:
        zone: its name.
        ticks_per_second: of the times.
    """

    zone: str
    ticks_per_second: int

    @property
    def ticks(self) -> int:
        """Of a day."""
        return DAY * self.ticks_per_second

    def counted(self, at: int) -> int:
        """Count a time in days."""
        runs, second = runs_of(self.zone), at // self.ticks_per_second
        cycles = max(0, (second - _LATEST * DAY) // (_CYCLE * DAY) + 1)
        number = max(0, bisect_right(runs, second - cycles * _CYCLE * DAY, key=lambda run: run[1]) - 1)
        first, start = runs[number]
        day = first + (second - cycles * _CYCLE * DAY - start) // DAY
        if number + 1 < len(runs):
            day = min(day, runs[number + 1][0] - 1)
        day += cycles * _CYCLE
        return day * self.ticks + min(at - self._start(day), self.ticks - 1)

    def time(self, counted: int) -> int:
        """Say when a day begins, given as `counted` has it."""
        return self._start(counted // self.ticks)

    def _start(self, day: int) -> int:
        cycles = max(0, (day - _LATEST) // _CYCLE + 1)
        runs = runs_of(self.zone)
        first, start = runs[max(0, bisect_right(runs, day - cycles * _CYCLE, key=lambda run: run[0]) - 1)]
        return (start + (day - first) * DAY) * self.ticks_per_second
