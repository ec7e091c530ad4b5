"""datetime.time: its parts, constants, and conversions from and to it."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import datetime as dt
from typing import Any

from numba.core.errors import TypingError
from numba.core.imputils import lower_constant
from numba.extending import box

from rayelastic.compile.lowering.base.declare import overloads_method, primitive, stand_in
from rayelastic.compile.lowering.base.moment_types import Known, MomentType, PointType
from rayelastic.compile.lowering.records.fields import I64, TimeOfDay
from rayelastic.compile.lowering.times.moments import (
    OF_DAY,
    day_number,
    declare_parts,
    microseconds,
    moment,
    out_of_range,
    units,
)
from rayelastic.compile.reasons import packed

_TIME = TimeOfDay("us")


@primitive
def _time(typingctx: Any, number: Any) -> Any:
    return _TIME(number), lambda context, builder, sig, args: args[0]


@stand_in
def _of_day(value: Any) -> Any:
    """Return the microseconds since midnight."""
    factor = {"s": 1_000_000, "ms": 1_000, "us": 1}.get(value.unit)
    if factor is None:
        raise TypingError(packed(what="a part of a time in nanoseconds"))
    return lambda value: units(value) * factor


declare_parts(TimeOfDay, _of_day, OF_DAY)


@overloads_method(MomentType, "time")
def _of_moment(value: Any) -> Any:
    return lambda value: _time(microseconds(value) % 86_400_000_000)


@stand_in
def combined(date: Any, time: Any) -> Any:
    """Stand in for datetime.combine."""
    if not isinstance(date, PointType) or not isinstance(time, TimeOfDay):
        return None
    return lambda date, time: moment(day_number(microseconds(date)) * 86_400_000_000 + _of_day(time))


@stand_in
def new_time(hour: Any = 0, minute: Any = 0, second: Any = 0, microsecond: Any = 0) -> Any:
    """Stand in for datetime.time."""

    def made(hour: Any = 0, minute: Any = 0, second: Any = 0, microsecond: Any = 0) -> Any:
        within = microsecond >= 0 and microsecond <= 999_999
        if not within or hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
            out_of_range(hour, minute, second, microsecond)
        return _time(((hour * 60 + minute) * 60 + second) * 1_000_000 + microsecond)

    return made


def constant(value: dt.time) -> Known | None:
    """Return a time of the user's for compiled code; None if it has a time zone."""
    if value.tzinfo is not None:
        return None
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return Known(_TIME, seconds * 1_000_000 + value.microsecond)


@lower_constant(TimeOfDay)
def _constant(context: Any, builder: Any, typ: TimeOfDay, value: Known) -> Any:
    return I64(value.number)


@box(TimeOfDay)
def _boxed(typ: TimeOfDay, value: Any, native: Any) -> Any:
    """Exist for exceptions that carry a value: Numba prepares boxing, but never calls it."""
    return native.pyapi.long_from_longlong(value)
