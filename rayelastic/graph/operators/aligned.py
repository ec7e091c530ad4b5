"""Where windows of a length start: at multiples of it, from a given time on, or with the days of a zone.

Knows no threads, PEs, clocks or native code.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from rayelastic.errors import GraphError
from rayelastic.graph.records.data_type import DataType, parsed_format
from rayelastic.graph.records.days import DAY, checked_zone
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import LONGEST_SPAN, TICKS_PER_SECOND, Seconds, TimeInfo
from rayelastic.graph.records.time_values import CLOCK, TimeValues
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["Aligned", "Ticks", "ticks_of"]

_FIRST_DAY = dt.date(1970, 1, 1)
_MONDAY = dt.date(1970, 1, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """Windows of a length, and where they start; see ``Stream.window``, whose arguments these are.

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
    """The same in ticks of a stream: size, slide, offset from 1970; and in whose days they are counted, '' for none."""

    size: int
    slide: int
    offset: int
    zone: str


def ticks_of(
    up: Upstream, time: TimeInfo | None, wanted: Aligned, slide: object = None, what: str = "seconds"
) -> Ticks:
    """Check windows of seconds or days.

    Args:
        up: the stream.
        time: its event time; None: they go by the clock.
        wanted: the windows.
        slide: seconds or days from the start of one to that of the next; None: their length.
        what: their length is called, for messages.

    Raises:
        GraphError: there can't be such windows.
    """
    unit = time or CLOCK
    if (wanted.seconds is None) == (wanted.days is None):
        raise GraphError("a window has seconds or days", way_out="Give one of them")
    if wanted.days is None:
        if wanted.zone is not None:
            raise GraphError(f"zone={shown(wanted.zone)} without days=", way_out="Give days=, or leave zone= out")
        size = unit.ticks(wanted.seconds, what)
        every = size if slide is None else unit.ticks(slide, "slide")
        return Ticks(size, every, _start(up, time, wanted.align_to) % every, "")
    size = _whole(wanted.days, "days")
    every = size if slide is None else _whole(slide, "slide")
    first = _MONDAY if wanted.align_to is None else wanted.align_to
    if type(first) is not dt.date:
        raise GraphError(
            f"align_to={shown(first)} with days=", way_out="Give the date of a day on which a window starts"
        )
    day = DAY * TICKS_PER_SECOND[unit.unit]
    if max(size, every) * day > LONGEST_SPAN:
        raise GraphError(f"days={shown(wanted.days)} are too long", way_out="Give fewer")
    offset = (first - _FIRST_DAY).days % every * day
    return Ticks(size * day, every * day, offset, _zone(up, time, wanted.zone))


def _whole(days: object, what: str) -> int:
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        raise GraphError(f"{what}={shown(days)}", way_out="Give a number of days, 1 or more")
    return days


def _start(up: Upstream, time: TimeInfo | None, align_to: object) -> int:
    if align_to is None:
        return 0
    try:
        return TimeValues.of(time, up.schema).ticks(align_to) - (time or CLOCK).shift
    except (TypeError, ValueError, OverflowError) as error:
        raise GraphError(
            f"align_to={shown(align_to)}: {error}",
            way_out="Give a time at which a window starts, of the type of the event time",
        ) from None


def _zone(up: Upstream, time: TimeInfo | None, zone: object) -> str:
    """As said, or that of the event time."""
    if zone is None and time is not None and up.schema.field(time.field).type is DataType.TIMESTAMP:
        zone = next(iter(parsed_format(up.schema.field(time.field).format)[2][1:]), None)
    return "" if zone is None else checked_zone(zone)
