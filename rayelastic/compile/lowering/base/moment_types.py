"""The types of datetime, date and timedelta in compiled code: 64-bit integers, with their unit in the type.

Arithmetic on a datetime of UTC equals that on one without a zone, and the two never mix. One of another zone is only
copied: CPython calculates with its local time, which jumps at clock changes.

These aren't NumPy's types, which Numba supports, because their semantics differ from Python's. There a date and a
timedelta make a datetime, and leaving the years 1 to 9999 is no error.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.imputils import lower_constant
from numba.extending import box, register_model, typeof_impl

I64 = ir.IntType(64)


class PointType(types.Type):
    """A datetime or a date."""

    def __init__(self, shown: str, unit: str) -> None:
        self.unit = unit
        super().__init__(name=shown if unit in ("us", "D") else f"{shown}[{unit}]")


class MomentType(PointType):
    """datetime.datetime without a time zone, or of UTC by one of its names: units since 1970."""

    def __init__(self, unit: str, zone: str = "") -> None:
        self.zone = zone
        super().__init__(f"datetime[{zone}]" if zone else "datetime", unit)


class ZonedType(types.Type):
    """datetime.datetime of another zone: only its instant is known, in units since 1970."""

    def __init__(self, unit: str, zone: str) -> None:
        self.unit, self.zone = unit, zone
        super().__init__(name=f"datetime[{unit},{zone}]")


UTC = ("UTC", "Etc/UTC", "+00:00", "Z")  # the names of a field's zone that mean datetime.UTC


def moment_type(unit: str, zone: str) -> types.Type:
    """Return the type of a field's datetime."""
    return ZonedType(unit, zone) if zone and zone not in UTC else MomentType(unit, zone)


class DateType(PointType):
    """datetime.date: days since 1970."""

    def __init__(self) -> None:
        super().__init__("date", "D")


class SpanType(types.Type):
    """datetime.timedelta: units."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        super().__init__(name="timedelta" if unit == "us" else f"timedelta[{unit}]")


@register_model(MomentType)
@register_model(ZonedType)
@register_model(DateType)
@register_model(SpanType)
class IntegerModel(models.PrimitiveModel):
    """A 64-bit integer."""

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, I64)


MICROSECOND, DAY, SPAN = MomentType("us"), DateType(), SpanType("us")


@box(MomentType)
@box(ZonedType)
@box(DateType)
@box(SpanType)
def _boxed(typ: Any, value: Any, native: Any) -> Any:
    """Exist for exceptions that carry a value: Numba prepares boxing, but never calls it."""
    return native.pyapi.long_from_longlong(value)


class Known:
    """A constant of the user's: its type and its integer."""

    def __init__(self, kind: Any, number: int) -> None:
        self.kind, self.number = kind, number


@typeof_impl.register(Known)
def _typeof(value: Known, context: Any) -> Any:
    return value.kind


@lower_constant(MomentType)
@lower_constant(DateType)
@lower_constant(SpanType)
def _constant(context: Any, builder: Any, typ: Any, value: Known) -> Any:
    return I64(value.number)
