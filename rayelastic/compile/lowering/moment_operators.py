"""Comparison and arithmetic of datetime, date and timedelta, as CPython's: what leaves its ranges is its OverflowError.

A timedelta beyond 64 bits of microseconds is refused. A datetime beside a date isn't compiled, nor is a timedelta by a
float.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.core.imputils import lower_cast
from numba.core.typing.templates import signature
from numba.extending import register_jitable

from rayelastic.compile.lowering.declare import overloads, overloads_method
from rayelastic.compile.lowering.moment_types import DateType, MomentType, PointType, SpanType
from rayelastic.compile.lowering.moments import checked_date, checked_moment, microseconds, span, units
from rayelastic.compile.lowering.refusal import refuse_if
from rayelastic.compile.lowering.whole_numbers import divide

_DAY = 86_400_000_000
_MOST = 2**63 - 1
_divided = register_jitable(divide)


def _described(kind: Any) -> str:
    return str(types.unliteral(kind)).partition("[")[0]


# --- comparison -----------------------------------------------------------------------------------------------------


def _declare_comparison(function: Any) -> None:
    compare = register_jitable(lambda a, b: function(a, b))

    @overloads(function)
    def _compared(a: Any, b: Any) -> Any:
        ours = PointType | SpanType
        if not (isinstance(a, ours) and isinstance(b, ours)):
            return None
        if isinstance(a, SpanType) != isinstance(b, SpanType) or isinstance(a, DateType) != isinstance(b, DateType):
            raise TypingError(f"comparing a {_described(a)} with a {_described(b)} isn't compiled")
        if a == b:
            return lambda a, b: compare(units(a), units(b))
        return lambda a, b: compare(microseconds(a), microseconds(b))


for _function in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
    _declare_comparison(_function)


def _declare_hash(kind: Any) -> None:
    @overloads_method(kind, "__hash__")
    def _hash(value: Any) -> Any:
        return lambda value: hash(units(value))


for _kind in (MomentType, DateType, SpanType):
    _declare_hash(_kind)


def _declare_extreme(function: Any, is_better: Any) -> None:
    better = register_jitable(is_better)

    @overloads(function)
    def _extreme(a: Any, b: Any) -> Any:
        if not isinstance(a, PointType | SpanType) or a != b:
            return None
        return lambda a, b: b if better(units(b), units(a)) else a


_declare_extreme(min, lambda a, b: a < b)
_declare_extreme(max, lambda a, b: a > b)


@overloads(bool)
def _bool(value: Any) -> Any:
    return (lambda value: units(value) != 0) if isinstance(value, SpanType) else None


@overloads(operator.not_)
def _not(value: Any) -> Any:
    return (lambda value: units(value) == 0) if isinstance(value, SpanType) else None


# --- sums -----------------------------------------------------------------------------------------------------------


@register_jitable
def _sum_of_spans(a: int, b: int) -> Any:
    refuse_if((b > 0 and a > _MOST - b) or (b < 0 and a < -_MOST - b))
    return span(a + b)


@register_jitable
def _moved(number: int, by: int) -> Any:
    """A datetime and microseconds; a sum beyond 64 bits comes out below any date."""
    refuse_if(by > 2**62 or by < -(2**62))
    return checked_moment(number + by)


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, SpanType) and isinstance(b, PointType):
        return lambda a, b: b + a
    if isinstance(a, MomentType) and isinstance(b, SpanType):
        return lambda a, b: _moved(microseconds(a), microseconds(b))
    if isinstance(a, DateType) and isinstance(b, SpanType):
        return lambda a, b: checked_date(units(a) + microseconds(b) // _DAY)
    if isinstance(a, SpanType) and isinstance(b, SpanType):
        return lambda a, b: _sum_of_spans(microseconds(a), microseconds(b))
    return None


def _difference(a: Any, b: Any) -> Any:
    if isinstance(a, MomentType) and isinstance(b, SpanType):
        return lambda a, b: _moved(microseconds(a), -microseconds(b))
    if isinstance(a, DateType) and isinstance(b, SpanType):
        return lambda a, b: checked_date(units(a) - microseconds(b) // _DAY)
    if isinstance(a, MomentType) and isinstance(b, MomentType):
        return lambda a, b: _sum_of_spans(microseconds(a), -microseconds(b))
    if isinstance(a, DateType) and isinstance(b, DateType):
        return lambda a, b: span((units(a) - units(b)) * _DAY)
    if isinstance(a, SpanType) and isinstance(b, SpanType):
        return lambda a, b: _sum_of_spans(microseconds(a), -microseconds(b))
    return None


# --- multiples and quotients ----------------------------------------------------------------------------------------


@register_jitable
def _multiple(number: int, times: int) -> Any:
    refuse_if(times < -_MOST or abs(number) > _MOST // max(1, abs(times)))
    return span(number * times)


@register_jitable
def _nearest(number: int, by: int) -> Any:
    """A timedelta by an int: to the nearest microsecond, ties to even."""
    if by == 0:
        raise ZeroDivisionError("division by zero")
    refuse_if(by < -(2**61) or by > 2**61)
    quotient, rest = number // by, number % by
    twice, size = 2 * abs(rest), abs(by)
    if twice > size or (twice == size and quotient % 2 == 1):
        quotient += 1
    return span(quotient)


@register_jitable
def _floor(number: int, by: int) -> int:
    if by == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    return number // by


def _refuse_float(a: Any, b: Any) -> None:
    if isinstance(types.unliteral(a), types.Float) or isinstance(types.unliteral(b), types.Float):
        raise TypingError("a timedelta times or by a float isn't compiled")


def _is_whole(kind: Any) -> bool:
    return isinstance(types.unliteral(kind), types.Integer | types.Boolean)


def _product(a: Any, b: Any) -> Any:
    if isinstance(a, SpanType) or isinstance(b, SpanType):
        _refuse_float(a, b)
    if isinstance(a, SpanType) and _is_whole(b):
        return lambda a, b: _multiple(microseconds(a), b)
    if isinstance(b, SpanType) and _is_whole(a):
        return lambda a, b: _multiple(microseconds(b), a)
    return None


def _quotient(a: Any, b: Any) -> Any:
    if not isinstance(a, SpanType):
        return None
    _refuse_float(a, b)
    if isinstance(b, SpanType):
        return lambda a, b: _divided(microseconds(a), microseconds(b))
    return (lambda a, b: _nearest(microseconds(a), b)) if _is_whole(b) else None


def _floor_quotient(a: Any, b: Any) -> Any:
    if isinstance(a, SpanType) and isinstance(b, SpanType):
        return lambda a, b: _floor(microseconds(a), microseconds(b))
    if isinstance(a, SpanType) and _is_whole(b):
        return lambda a, b: span(_floor(microseconds(a), b))
    return None


def _rest(a: Any, b: Any) -> Any:
    if not (isinstance(a, SpanType) and isinstance(b, SpanType)):
        return None

    def rest(a: Any, b: Any) -> Any:
        number, by = microseconds(a), microseconds(b)
        return span(number - _floor(number, by) * by)

    return rest


for _functions, _typing in (
    ((operator.add, operator.iadd), _sum),
    ((operator.sub, operator.isub), _difference),
    ((operator.mul, operator.imul), _product),
    ((operator.truediv, operator.itruediv), _quotient),
    ((operator.floordiv, operator.ifloordiv), _floor_quotient),
    ((operator.mod, operator.imod), _rest),
):
    for _function in _functions:
        overloads(_function)(_typing)


@overloads(divmod)
def _divmod(a: Any, b: Any) -> Any:
    if not (isinstance(a, SpanType) and isinstance(b, SpanType)):
        return None
    return lambda a, b: (a // b, a % b)


@overloads(operator.neg)
def _negative(value: Any) -> Any:
    return (lambda value: _multiple(microseconds(value), -1)) if isinstance(value, SpanType) else None


@overloads(operator.pos)
def _positive(value: Any) -> Any:
    return (lambda value: value) if isinstance(value, SpanType) else None


@overloads(abs)
def _absolute(value: Any) -> Any:
    if not isinstance(value, SpanType):
        return None
    return lambda value: _multiple(microseconds(value), -1 if units(value) < 0 else 1)


# --- to the unit of a field -----------------------------------------------------------------------------------------


@lower_cast(SpanType, SpanType)
def _cast(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    if source == target:
        return value
    factor = {"s": 1_000_000, "ms": 1_000, "us": 1}.get(target.unit)

    def cast(value: Any) -> Any:
        number = microseconds(value)
        if factor is None:
            refuse_if(abs(number) > _MOST // 1000)
            return number * 1000
        refuse_if(number % factor != 0)
        return number // factor

    return context.compile_internal(builder, cast, signature(types.int64, source), [value])
