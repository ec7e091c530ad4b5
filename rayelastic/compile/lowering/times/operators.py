"""Comparison and arithmetic of datetime, date and timedelta, as in CPython: out of range is its OverflowError.

A timedelta beyond 64 bits of microseconds is rejected. A datetime beside a date isn't compiled.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import lower_cast
from numba.core.typing.templates import signature
from numba.extending import register_jitable

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.declare import overloads, overloads_method, primitive, truth
from rayelastic.compile.lowering.base.moment_types import DateType, MomentType, PointType, SpanType
from rayelastic.compile.lowering.base.refusal import refuse, refuse_if
from rayelastic.compile.lowering.numbers.whole_numbers import divide
from rayelastic.compile.lowering.times.moments import check_moment, checked_date, microseconds, of_zone, span, units
from rayelastic.compile.reasons import packed

_DAY = 86_400_000_000
_MOST = 2**63 - 1
_divided = register_jitable(divide)


def _described(kind: Any) -> str:
    return str(types.unliteral(kind)).partition("[")[0]


@primitive
def _present(typingctx: Any, value: Any) -> Any:
    """Return the value of an Optional; None raises, as an operator on it does in Python."""
    inner = value.type if isinstance(value, types.Optional) else value

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.cast(builder, args[0], sig.args[0], inner)

    return inner(value), codegen


def _of_present(typing: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Extend an operator to values that may be None."""

    def declared(a: Any, b: Any) -> Any:
        kinds = [kind.type if isinstance(kind, types.Optional) else kind for kind in (a, b)]
        if not any(isinstance(kind, PointType | SpanType) for kind in kinds):
            return None
        written = typing(*kinds)
        if written is None or (kinds[0] is a and kinds[1] is b):
            return written
        inner = register_jitable(written)
        return lambda a, b: inner(_present(a), _present(b))

    return declared


def _check_zones(a: Any, b: Any, what: str) -> None:
    """Reject a datetime with a zone beside one without: they are never equal, and have no order and no difference."""
    if isinstance(a, MomentType) and isinstance(b, MomentType) and bool(a.zone) != bool(b.zone):
        raise TypingError(packed(what=f"{what} a datetime with a time zone and one without"))


# --- comparison -----------------------------------------------------------------------------------------------------


def _declare_comparison(function: Any) -> None:
    compare = register_jitable(lambda a, b: function(a, b))

    def _compared(a: Any, b: Any) -> Any:
        ours = PointType | SpanType
        if not (isinstance(a, ours) and isinstance(b, ours)):
            return None
        if isinstance(a, SpanType) != isinstance(b, SpanType) or isinstance(a, DateType) != isinstance(b, DateType):
            raise TypingError(packed(what=f"comparing a {_described(a)} with a {_described(b)}"))
        _check_zones(a, b, "comparing")
        if a == b:
            return lambda a, b: compare(units(a), units(b))
        return lambda a, b: compare(microseconds(a), microseconds(b))

    is_equality = function in (operator.eq, operator.ne)  # of what may be None: exact.py
    overloads(function)(_compared if is_equality else _of_present(_compared))


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


truth(SpanType, lambda value: units(value) != 0, lambda value: units(value) == 0)


# --- sums -----------------------------------------------------------------------------------------------------------


@register_jitable
def _sum_of_spans(a: int, b: int) -> Any:
    refuse_if((b > 0 and a > _MOST - b) or (b < 0 and a < -_MOST - b))
    return span(a + b)


@register_jitable
def _moved(number: int, by: int) -> int:
    """Add microseconds to those of a datetime; a sum beyond 64 bits comes out below any date."""
    refuse_if(by > 2**62 or by < -(2**62))
    check_moment(number + by)
    return number + by


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, SpanType) and isinstance(b, PointType):
        return lambda a, b: b + a
    if isinstance(a, MomentType) and isinstance(b, SpanType):
        back = of_zone(a)
        return lambda a, b: back(_moved(microseconds(a), microseconds(b)))
    if isinstance(a, DateType) and isinstance(b, SpanType):
        return lambda a, b: checked_date(units(a) + microseconds(b) // _DAY)
    if isinstance(a, SpanType) and isinstance(b, SpanType):
        return lambda a, b: _sum_of_spans(microseconds(a), microseconds(b))
    return None


def _difference(a: Any, b: Any) -> Any:
    if isinstance(a, MomentType) and isinstance(b, SpanType):
        back = of_zone(a)
        return lambda a, b: back(_moved(microseconds(a), -microseconds(b)))
    if isinstance(a, DateType) and isinstance(b, SpanType):
        return lambda a, b: checked_date(units(a) - microseconds(b) // _DAY)
    if isinstance(a, MomentType) and isinstance(b, MomentType):
        _check_zones(a, b, "the difference of")
        return lambda a, b: _sum_of_spans(microseconds(a), -microseconds(b))
    if isinstance(a, DateType) and isinstance(b, DateType):
        return lambda a, b: span((units(a) - units(b)) * _DAY)
    if isinstance(a, SpanType) and isinstance(b, SpanType):
        return lambda a, b: _sum_of_spans(microseconds(a), -microseconds(b))
    return None


# --- multiples and quotients ----------------------------------------------------------------------------------------


@register_jitable
def _multiple(number: Any, times: Any) -> Any:
    refuse_if(times < -_MOST or abs(number) > _MOST // max(1, abs(times)))
    return span(number * times)


def _scaling(name: str, number: Any) -> Any:
    """Return a service that multiplies or divides microseconds, rounding half to even."""

    @primitive
    def scaled(typingctx: Any, microseconds: Any, by: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            result = cgutils.alloca_once(builder, engine.I64)
            has_result = engine.span_by(builder, name, args[0], args[1], result)
            with builder.if_then(builder.icmp_unsigned("==", has_result, engine.I64(0)), likely=False):
                refuse(builder)
            return builder.load(result)

        return types.int64(types.int64, number), codegen

    return scaled


_times, _over = _scaling("rel_span_times", types.float64), _scaling("rel_span_over", types.float64)
_shared = _scaling("rel_span_shared", types.int64)


@register_jitable
def _floor(number: Any, by: Any) -> Any:
    if by == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    return number // by


@register_jitable
def _divisor(by: Any) -> Any:
    if by == 0:
        raise ZeroDivisionError("division by zero")
    return by


def _is_float(kind: Any) -> bool:
    return isinstance(types.unliteral(kind), types.Float)


def _is_whole(kind: Any) -> bool:
    return isinstance(types.unliteral(kind), types.Integer | types.Boolean)


def _product(a: Any, b: Any) -> Any:
    if isinstance(b, SpanType) and not isinstance(a, SpanType):
        return lambda a, b: b * a
    if isinstance(a, SpanType) and _is_whole(b):
        return lambda a, b: _multiple(microseconds(a), types.int64(b))
    return (lambda a, b: span(_times(microseconds(a), b))) if isinstance(a, SpanType) and _is_float(b) else None


def _quotient(a: Any, b: Any) -> Any:
    if not isinstance(a, SpanType):
        return None
    if isinstance(b, SpanType):
        return lambda a, b: _divided(microseconds(a), microseconds(b))
    if _is_float(b):
        return lambda a, b: span(_over(microseconds(a), _divisor(b)))
    return (lambda a, b: span(_shared(microseconds(a), _divisor(types.int64(b))))) if _is_whole(b) else None


def _floor_quotient(a: Any, b: Any) -> Any:
    if isinstance(a, SpanType) and isinstance(b, SpanType):
        return lambda a, b: _floor(microseconds(a), microseconds(b))
    if isinstance(a, SpanType) and _is_whole(b):
        return lambda a, b: span(_floor(microseconds(a), types.int64(b)))
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
        overloads(_function)(_of_present(_typing))


@overloads(divmod)
def _divmod(a: Any, b: Any) -> Any:
    if not (isinstance(a, SpanType) and isinstance(b, SpanType)):
        return None
    return lambda a, b: (a // b, a % b)


@overloads(operator.neg)
def _negative(value: Any) -> Any:
    return (lambda value: span(-microseconds(value))) if isinstance(value, SpanType) else None


@overloads(operator.pos)
def _positive(value: Any) -> Any:
    return (lambda value: value) if isinstance(value, SpanType) else None


@overloads(abs)
def _absolute(value: Any) -> Any:
    return (lambda value: span(abs(microseconds(value)))) if isinstance(value, SpanType) else None


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
