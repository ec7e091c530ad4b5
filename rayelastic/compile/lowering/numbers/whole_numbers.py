"""CPython's operations on integers and floats, written in Python for Numba; exact.py inserts them.

Integers beyond 64 bits are rejected. Float powers call libm's pow as CPython does: x * x isn't always pow(x, 2).
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import register_jitable

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.declare import primitive
from rayelastic.compile.lowering.base.refusal import refuse, refuse_if

LEAST = -(2**63)
EXACT = 2**53  # integers up to here are exact as floats
TOO_BIG = 2.0**63


def _within_64_bits(operation: str) -> Any:
    """Return the signature and the code of an LLVM instruction that reports overflow."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pair = getattr(builder, operation)(*args)
        with builder.if_then(builder.extract_value(pair, 1), likely=False):
            refuse(builder)
        return builder.extract_value(pair, 0)

    return types.int64(types.int64, types.int64), codegen


@primitive
def multiplied(typingctx: Any, a: Any, b: Any) -> Any:
    """Return a * b, rejected beyond 64 bits."""
    return _within_64_bits("smul_with_overflow")


@primitive
def added(typingctx: Any, a: Any, b: Any) -> Any:
    """Return a + b, rejected beyond 64 bits."""
    return _within_64_bits("sadd_with_overflow")


@primitive
def _pow(typingctx: Any, a: Any, b: Any) -> Any:
    """Call libm's pow, which LLVM would replace by an approximation."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        double = ir.DoubleType()
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(double, [double, double]), engine.POW)
        return builder.call(function, args)

    return types.float64(types.float64, types.float64), codegen


# --- integers -------------------------------------------------------------------------------------------------------


def negative(a: int) -> int:
    """Return -a."""
    refuse_if(a == LEAST)
    return -a


@register_jitable
def floor_divide(a: int, b: int) -> int:
    """Return a // b."""
    refuse_if(a == LEAST and b == -1)
    return a // b


def modulo(a: int, b: int) -> int:
    """Return a % b."""
    return a % b


@register_jitable
def power(a: int, b: int) -> int:
    """Return a ** b; for a negative b CPython returns a float."""
    refuse_if(b < 0)
    result = 1
    while b > 0:
        if b & 1:
            result = multiplied(result, a)
        b >>= 1
        if b > 0:
            a = multiplied(a, a)
    return result


def shift_left(a: int, b: int) -> int:
    """Return a << b."""
    if b < 0:
        raise ValueError("negative shift count")
    if a == 0:
        return 0
    refuse_if(b > 62)
    result = a << b
    refuse_if(result >> b != a)
    return result


def shift_right(a: int, b: int) -> int:
    """Return a >> b."""
    if b < 0:
        raise ValueError("negative shift count")
    return a >> min(b, 63)


def divide(a: int, b: int) -> float:
    """Return a / b, rounded once."""
    if b == 0:
        raise ZeroDivisionError("division by zero")
    if -EXACT <= a <= EXACT and -EXACT <= b <= EXACT:
        return float(a) / float(b)
    return _long_division(a, b)


@register_jitable
def _long_division(a: int, b: int) -> float:
    unit, nothing = types.uint64(1), types.uint64(0)
    over, under = _magnitude(a), _magnitude(b)
    quotient, rest, exponent = over // under, over % under, 0
    while quotient >> types.uint64(55) == nothing and rest > nothing:
        carry = rest >> types.uint64(63)
        rest <<= unit
        quotient <<= unit
        if carry > nothing or rest >= under:
            rest -= under
            quotient |= unit
        exponent -= 1
    if rest > nothing:
        quotient |= unit  # sticky bit for all lower ones
    drop = 0
    while quotient >> types.uint64(53 + drop) > nothing:
        drop += 1
    kept = quotient >> types.uint64(drop)
    lost, half = quotient & ((unit << types.uint64(drop)) - unit), (unit << types.uint64(drop)) >> unit
    if drop > 0 and (lost > half or (lost == half and kept & unit == unit)):
        kept += unit
    result = math.ldexp(float(kept), exponent + drop)
    return -result if (a < 0) != (b < 0) else result


@register_jitable
def check_range(start: int, stop: int, step: int = 1) -> None:
    """Reject a range whose items can't be counted in 64 bits, or may be near that."""
    refuse_if(max(start, stop, step) > 2**61 or min(start, stop, step) < -(2**61))


@register_jitable
def _magnitude(a: int) -> Any:
    return types.uint64(0) - types.uint64(a) if a < 0 else types.uint64(a)


# --- floats ---------------------------------------------------------------------------------------------------------


def as_float(a: int) -> float:
    """Return an int as a float, because another branch returns one; reject it if it isn't the same number."""
    result = float(a)
    refuse_if(result >= TOO_BIG or int(result) != a)
    return result


@register_jitable
def float_power(a: float, b: float) -> float:
    """Return a ** b where one is a float: float_pow in CPython's Objects/floatobject.c."""
    x, y = float(a), float(b)
    if x == 0.0 and y < 0.0 and math.isfinite(y):
        raise ZeroDivisionError("0.0 cannot be raised to a negative power")
    if x < 0.0 and math.isfinite(x) and math.isfinite(y):
        refuse_if(y != math.floor(y))  # a complex number
    result = _pow(x, y)
    if math.isinf(result) and math.isfinite(x) and math.isfinite(y):
        raise OverflowError("Numerical result out of range")
    return result


@register_jitable
def _order(a: int, b: float) -> int:
    """Return -1, 0 or 1 for a below, at or above b, which isn't NaN."""
    if b >= TOO_BIG:
        return -1
    if b < -TOO_BIG:
        return 1
    whole = int(b)
    if a != whole:
        return -1 if a < whole else 1
    part = b - float(whole)
    return (part < 0.0) - (part > 0.0)


def comparison(function: Callable[[Any, Any], Any], kinds: str) -> Callable[[Any, Any], bool]:
    """Return an exact comparison of an int and a float."""
    unordered = function is operator.ne

    def int_first(a: Any, b: Any) -> Any:
        if math.isnan(b):
            return unordered
        return function(_order(a, b), 0)

    def float_first(a: Any, b: Any) -> Any:
        if math.isnan(a):
            return unordered
        return function(0, _order(b, a))

    comparison_of = int_first if kinds == "if" else float_first
    comparison_of.__annotations__ = {}
    return comparison_of


for _function in (negative, floor_divide, modulo, shift_left, shift_right, divide, as_float):
    _function.__annotations__ = {}
