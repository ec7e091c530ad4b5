"""datetime, date and timedelta in compiled code: parts, differences, constants, construction.

A datetime is an integer in the unit of its field, a date one in days, a timedelta one in units (moment_types.py).
Derived values are in microseconds, as in Python; parts of a nanosecond field are rejected. Days from civil dates and
back: Howard Hinnant, "chrono-compatible low-level date algorithms".
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import overload_attribute_of, overloads_method, primitive, stand_in
from rayelastic.compile.lowering.base.moment_types import (
    DAY,
    MICROSECOND,
    SPAN,
    UTC,
    Known,
    MomentType,
    PointType,
    SpanType,
)
from rayelastic.compile.lowering.base.refusal import refuse_if
from rayelastic.compile.lowering.base.views import TextLiteral, new_view, put_byte
from rayelastic.compile.lowering.numbers.whole_numbers import added, divide, multiplied
from rayelastic.compile.lowering.text.format import put_number
from rayelastic.compile.reasons import packed
from rayelastic.graph.records.data_type import own_class

_DAY = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31


@primitive
def units(typingctx: Any, value: Any) -> Any:
    """Return the integer of a datetime, date or timedelta."""
    return types.int64(value), lambda context, builder, sig, args: args[0]


def _cast(kind: Any) -> Any:
    @primitive
    def cast(typingctx: Any, number: Any) -> Any:
        return kind(types.int64), lambda context, builder, sig, args: args[0]

    return cast


moment, date, span = _cast(MICROSECOND), _cast(DAY), _cast(SPAN)
_in_zone = {zone: _cast(MomentType("us", zone)) for zone in ("", *UTC)}


def of_zone(kind: Any) -> Any:
    """Return a function that makes a datetime of microseconds with the zone of another."""
    return _in_zone[kind.zone]


@stand_in
def microseconds(value: Any) -> Any:
    """Return the microseconds since 1970 of a datetime, or those of a timedelta."""
    if not isinstance(value, PointType | SpanType):
        return None
    factor = {"s": 1_000_000, "ms": 1_000, "us": 1, "D": _DAY}.get(value.unit)
    if factor is None:
        raise TypingError(packed(what=f"a part of a {value}"))
    most = (2**63 - 1) // factor

    def scaled(value: Any) -> Any:
        number = units(value)
        refuse_if(number > most or number < -most)
        return number * factor

    return scaled


@register_jitable
def check_moment(number: int) -> None:
    """Raise, as Python does, outside the years 1 to 9999."""
    day = number // _DAY
    if day < _FIRST_DAY or day > _LAST_DAY:
        raise OverflowError("date value out of range")


@register_jitable
def checked_date(day: int) -> Any:
    """Return a date of the years 1 to 9999."""
    if day < _FIRST_DAY or day > _LAST_DAY:
        raise OverflowError("date value out of range")
    return date(day)


# --- the calendar ---------------------------------------------------------------------------------------------------


@register_jitable
def civil(day: int) -> tuple[int, int, int]:
    """Return year, month and day of month of a day since 1970."""
    shifted = day + 719468
    era = shifted // 146097
    of_era = shifted - era * 146097
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day_of_month = of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (1 if month <= 2 else 0), month, day_of_month


_MOST = 2**31 - 1


@register_jitable
def out_of_range(*numbers: int) -> None:
    """Raise CPython's error for parts of an invalid date or time; its OverflowError beyond 32 bits is rejected."""
    for number in numbers:
        refuse_if(number > _MOST or number < -_MOST - 1)
    raise ValueError("out of range")


@register_jitable
def day_of(year: int, month: int, day: int) -> int:
    """Return the days since 1970 of a date; raise for an invalid one."""
    if year < 1 or year > 9999 or month < 1 or month > 12 or day < 1 or day > 31:
        out_of_range(year, month, day)
    shifted = year - 1 if month <= 2 else year
    era = shifted // 400
    year_of_era = shifted - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    days = era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + of_year - 719468
    parts = civil(days)
    if parts[1] != month or parts[2] != day:
        raise ValueError("day is out of range for month")
    return days


@register_jitable
def day_number(number: int) -> int:
    """Return the day of microseconds."""
    return number // _DAY


# --- parts ----------------------------------------------------------------------------------------------------------


def declare_parts(kind: Any, number: Callable[[Any], int], parts: Mapping[str, Callable[[int], int]]) -> None:
    """Declare attributes of a type, each by a function of the number that `number` returns of a value."""

    def declare(name: str, part: Callable[[int], int]) -> None:
        jitted = register_jitable(part)

        @overload_attribute_of(kind, name)
        def _attribute(value: Any) -> Any:
            if kind is PointType and value.unit == "D" and name not in ("year", "month", "day"):
                return None
            return lambda value: jitted(number(value))

    for name, part in parts.items():
        declare(name, part)


OF_DAY: dict[str, Callable[[int], int]] = {
    "hour": lambda n: n // 3_600_000_000 % 24,
    "minute": lambda n: n // 60_000_000 % 60,
    "second": lambda n: n // 1_000_000 % 60,
    "microsecond": lambda n: n % 1_000_000,
}
_OF_DATE: dict[str, Callable[[int], int]] = {
    "year": lambda n: civil(n // 86_400_000_000)[0],
    "month": lambda n: civil(n // 86_400_000_000)[1],
    "day": lambda n: civil(n // 86_400_000_000)[2],
}
_OF_SPAN: dict[str, Callable[[int], int]] = {
    "days": lambda n: n // 86_400_000_000,
    "seconds": lambda n: n // 1_000_000 % 86_400,
    "microseconds": lambda n: n % 1_000_000,
}
declare_parts(PointType, microseconds, _OF_DATE | OF_DAY)
declare_parts(SpanType, microseconds, _OF_SPAN)


_divided = register_jitable(divide)


@overloads_method(SpanType, "total_seconds")
def _total_seconds(value: Any) -> Any:
    def seconds(value: Any) -> Any:
        return _divided(microseconds(value), 1_000_000)

    return seconds


@overloads_method(PointType, "weekday")
def _weekday(value: Any) -> Any:
    return lambda value: (day_number(microseconds(value)) + 3) % 7


@overloads_method(PointType, "isoweekday")
def _isoweekday(value: Any) -> Any:
    return lambda value: (day_number(microseconds(value)) + 3) % 7 + 1


@overloads_method(PointType, "toordinal")
def _toordinal(value: Any) -> Any:
    return lambda value: day_number(microseconds(value)) + 719163


@overloads_method(PointType, "date")
def _date(value: Any) -> Any:
    return None if value.unit == "D" else lambda value: date(day_number(microseconds(value)))


@overloads_method(PointType, "replace")
def _replace(
    value: Any, year: Any = None, month: Any = None, day: Any = None, hour: Any = None, minute: Any = None,
    second: Any = None, microsecond: Any = None,
) -> Any:  # fmt: skip
    if value.unit == "D":
        return None
    back = of_zone(value)

    def replaced(
        value: Any, year: Any = None, month: Any = None, day: Any = None, hour: Any = None, minute: Any = None,
        second: Any = None, microsecond: Any = None,
    ) -> Any:  # fmt: skip
        number = microseconds(value)
        old_year, old_month, old_day = civil(day_number(number))
        h = number // 3_600_000_000 % 24 if hour is None else hour
        m = number // 60_000_000 % 60 if minute is None else minute
        s = number // 1_000_000 % 60 if second is None else second
        u = number % 1_000_000 if microsecond is None else microsecond
        return back(units(made(
            old_year if year is None else year, old_month if month is None else month,
            old_day if day is None else day, h, m, s, u,
        )))  # fmt: skip

    return replaced


@register_jitable
def made(year: int, month: int, day: int, hour: int, minute: int, second: int, microsecond: int) -> Any:
    """Make a datetime from its parts."""
    within = microsecond >= 0 and microsecond <= 999_999
    if not within or hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        out_of_range(year, month, day, hour, minute, second, microsecond)
    seconds = (day_of(year, month, day) * 24 + hour) * 3600 + minute * 60 + second
    return moment(seconds * 1_000_000 + microsecond)


@overloads_method(PointType, "isoformat")
def _isoformat(value: Any) -> Any:
    if value.unit == "D":
        return lambda value: _date_text(microseconds(value), 10)

    behind = 6 if value.zone else 0

    def text(value: Any) -> Any:
        number = microseconds(value)
        size = 19 if number % 1_000_000 == 0 else 26
        written = _date_text(number, size + behind)
        put_byte(written, 10, 84)
        put_number(written, 11, 2, number // 3_600_000_000 % 24)
        put_byte(written, 13, 58)
        put_number(written, 14, 2, number // 60_000_000 % 60)
        put_byte(written, 16, 58)
        put_number(written, 17, 2, number // 1_000_000 % 60)
        if number % 1_000_000 != 0:
            put_byte(written, 19, 46)
            put_number(written, 20, 6, number % 1_000_000)
        if behind > 0:  # +00:00
            put_byte(written, size, 43)
            put_number(written, size + 1, 2, 0)
            put_byte(written, size + 3, 58)
            put_number(written, size + 4, 2, 0)
        return written

    return text


_LIKE = TextLiteral("")


@register_jitable
def _date_text(number: int, size: int) -> Any:
    year, month, day = civil(day_number(number))
    written = new_view(_LIKE, size)
    put_number(written, 0, 4, year)
    put_byte(written, 4, 45)
    put_number(written, 5, 2, month)
    put_byte(written, 7, 45)
    put_number(written, 8, 2, day)
    return written


# --- constants and construction -------------------------------------------------------------------------------------


def constant(value: Any) -> Any:
    """Return a datetime, date or timedelta of the user's for compiled code; None if it has a time zone."""
    microsecond, first = dt.timedelta(microseconds=1), dt.date(1970, 1, 1)
    if isinstance(value, dt.datetime):
        return (
            None
            if value.tzinfo is not None
            else Known(MICROSECOND, (value - dt.datetime.combine(first, dt.time())) // microsecond)
        )
    if isinstance(value, dt.date):
        return Known(DAY, (value - first).days)
    number = value // microsecond
    return Known(SPAN, number) if -(2**63) < number < 2**63 else None


@stand_in
def new_datetime(
    year: Any, month: Any, day: Any, hour: Any = 0, minute: Any = 0, second: Any = 0, microsecond: Any = 0
) -> Any:
    """Stand in for datetime.datetime."""
    return lambda year, month, day, hour=0, minute=0, second=0, microsecond=0: made(
        year, month, day, hour, minute, second, microsecond
    )


@stand_in
def new_date(year: Any, month: Any, day: Any) -> Any:
    """Stand in for datetime.date."""
    return lambda year, month, day: date(day_of(year, month, day))


@register_jitable
def times(number: int, factor: int) -> int:
    """Return a product, rejected beyond 64 bits."""
    return multiplied(types.int64(number), types.int64(factor))


@stand_in
def new_timedelta(
    days: Any = 0, seconds: Any = 0, microseconds: Any = 0, milliseconds: Any = 0, minutes: Any = 0, hours: Any = 0,
    weeks: Any = 0,
) -> Any:  # fmt: skip
    """Stand in for datetime.timedelta."""
    arguments = (days, seconds, microseconds, milliseconds, minutes, hours, weeks)
    if any(
        isinstance(types.unliteral(argument), types.Float) for argument in arguments if isinstance(argument, types.Type)
    ):
        raise TypingError(packed(what="a timedelta of floats"))

    def spanned(
        days: Any = 0, seconds: Any = 0, microseconds: Any = 0, milliseconds: Any = 0, minutes: Any = 0, hours: Any = 0,
        weeks: Any = 0,
    ) -> Any:  # fmt: skip
        total = added(times(weeks, 7), types.int64(days))
        total = added(times(total, 24), types.int64(hours))
        total = added(times(total, 60), types.int64(minutes))
        total = added(times(total, 60), types.int64(seconds))
        total = added(times(total, 1_000), types.int64(milliseconds))
        return span(added(times(total, 1_000), types.int64(microseconds)))

    return spanned


CONSTRUCTORS: dict[Any, Any] = {
    own_class(dt.datetime): new_datetime,
    own_class(dt.date): new_date,
    dt.timedelta: new_timedelta,
}
