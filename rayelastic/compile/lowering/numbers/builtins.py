"""Builtins and functions of `math` over numbers: CPython's exceptions are raised, results beyond 64 bits rejected.

If the result of a float function isn't finite though its argument is, CPython raises. The class of that exception and
its text come from the Python function, which is run again for that tuple.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import register_jitable

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.declare import overloads, primitive
from rayelastic.compile.lowering.base.moment_types import SpanType
from rayelastic.compile.lowering.base.refusal import refuse_if
from rayelastic.compile.lowering.base.views import ViewType
from rayelastic.compile.lowering.numbers.whole_numbers import LEAST, TOO_BIG, added, float_power, multiplied, power
from rayelastic.compile.lowering.text.numbers import int_of_text

REPLACED: dict[Any, Any] = {}
# Not libm's but CPython's own, or different choices: another last digit.
DIFFERENT = (math.gamma, math.lgamma, math.hypot, math.dist, math.fsum)


def stands_for(original: Any) -> Callable[[Any], Any]:
    """Declare the meaning of `original` in user code, as a function of its argument types."""

    def declared(typing: Any) -> Any:
        count = typing.__code__.co_argcount
        names = typing.__code__.co_varnames[:count]
        defaults = typing.__defaults__ or ()
        shown = [
            name if at < count - len(defaults) else f"{name}={defaults[at - count + len(defaults)]!r}"
            for at, name in enumerate(names)
        ]
        space: dict[str, Any] = {}
        exec(f"def {original.__name__}({', '.join(shown)}): raise TypeError('only compiled')", space)
        stand_in = space[original.__name__]
        stand_in.__module__ = __name__
        overloads(stand_in)(typing)
        REPLACED[original] = stand_in
        return typing

    return declared


def _is_whole(kind: Any) -> bool:
    return isinstance(kind, types.Integer | types.Boolean)


def _is_number(kind: Any) -> bool:
    return _is_whole(kind) or isinstance(kind, types.Float)


# --- to integers ----------------------------------------------------------------------------------------------------


@register_jitable
def _whole(x: float) -> int:
    """Return the int of a float that has no fraction."""
    refuse_if(math.isinf(x))  # OverflowError, but callers expect ValueError
    if math.isnan(x):
        raise ValueError("cannot convert float to integer")
    refuse_if(x >= TOO_BIG or x < -TOO_BIG)
    return int(x)


@stands_for(int)
def _int(x: Any = 0, base: Any = None) -> Any:
    if base is not None and not isinstance(base, types.Omitted):
        if not isinstance(x, ViewType) or not _is_whole(base):
            return None
        return lambda x=0, base=None: int_of_text(x, base)
    if _is_whole(x):
        return lambda x=0, base=None: int(x)
    if isinstance(x, types.Float):
        return lambda x=0, base=None: _whole(x)
    if isinstance(x, ViewType):
        return lambda x=0, base=None: int_of_text(x, 10)
    return None


def _declare_rounding(original: Any, function: Any) -> None:
    def typing(x: Any) -> Any:
        if _is_whole(x):
            return lambda x: int(x)
        if isinstance(x, types.Float):
            return lambda x: _whole(function(x))
        return None

    stands_for(original)(typing)


for _original, _function in ((math.floor, np.floor), (math.ceil, np.ceil), (math.trunc, np.trunc)):
    _declare_rounding(_original, _function)


@stands_for(round)
def _round(number: Any, ndigits: Any = None) -> Any:
    if ndigits is not None and not isinstance(ndigits, types.Omitted | types.NoneType):
        if not _is_whole(ndigits) or not _is_number(number):
            return None
        if _is_whole(number):
            return lambda number, ndigits=None: _whole_to_digits(int(number), ndigits)
        return lambda number, ndigits=None: _to_digits(number, ndigits)
    if _is_whole(number):
        return lambda number, ndigits=None: int(number)
    if isinstance(number, types.Float):
        return lambda number, ndigits=None: _whole(np.rint(number))
    return None


@primitive
def _rounded(typingctx: Any, number: Any, digits: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return engine.rounded(builder, args[0], args[1])

    return types.float64(types.float64, types.int64), codegen


_POWERS = np.array([10.0**i for i in range(23)])  # exact
_POWERS.flags.writeable = False
_FAR = 2.0**50  # below, a product's error is less than its distance from a tie
_TIE = 2.0**-3


@register_jitable
def _to_digits(number: float, digits: int) -> float:
    """Return round(number, digits): the decimal nearest to the float, ties to even, then the float nearest to that."""
    if 0 <= digits < 23:
        scaled = number * _POWERS[digits]
        if -_FAR < scaled < _FAR:
            whole = np.rint(scaled)
            if abs(abs(scaled - whole) - 0.5) > _TIE:
                return math.copysign(whole / _POWERS[digits], number)
    return _rounded(number, digits)


@register_jitable
def _whole_to_digits(number: int, digits: int) -> int:
    if digits >= 0:
        return number
    refuse_if(digits < -18)
    unit = 10 ** types.int64(-digits)
    count, rest = number // unit, number % unit
    if rest > unit - rest or (rest == unit - rest and count % 2 == 1):
        count += 1
    return multiplied(count, unit)


@stands_for(abs)
def _abs(x: Any) -> Any:
    if _is_whole(x):

        def whole(x: Any) -> Any:
            refuse_if(x == LEAST)
            return abs(int(x))

        return whole
    if isinstance(x, types.Float | SpanType):
        return lambda x: abs(x)
    return None


@stands_for(divmod)
def _divmod(a: Any, b: Any) -> Any:
    if _is_whole(a) and _is_whole(b):

        def whole(a: Any, b: Any) -> Any:
            refuse_if(a == LEAST and b == -1)
            return divmod(int(a), int(b))

        return whole
    if _is_number(a) and _is_number(b):
        return lambda a, b: divmod(float(a), float(b))
    if isinstance(a, SpanType) and isinstance(b, SpanType):
        return lambda a, b: divmod(a, b)
    return None


@stands_for(pow)
def _pow(base: Any, exp: Any) -> Any:
    if _is_whole(base) and _is_whole(exp):
        return lambda base, exp: power(int(base), int(exp))
    if _is_number(base) and _is_number(exp):
        return lambda base, exp: float_power(base, exp)
    return None


@stands_for(math.gcd)
def _gcd(a: Any, b: Any) -> Any:
    if _is_whole(a) and _is_whole(b):

        def divisor(a: Any, b: Any) -> Any:
            refuse_if(a == LEAST or b == LEAST)
            return math.gcd(int(a), int(b))

        return divisor
    return None


# --- several numbers ------------------------------------------------------------------------------------------------


@stands_for(sum)
def _sum(iterable: Any, start: Any = 0) -> Any:
    if isinstance(iterable, types.UniTuple):
        item = iterable.dtype
    elif isinstance(iterable, types.IterableType):
        item = iterable.iterator_type.yield_type
    else:
        return None
    whole_start = _is_whole(start) or isinstance(start, int | types.Omitted)
    if _is_whole(item) and whole_start:

        def of_whole(iterable: Any, start: Any = 0) -> Any:
            total = int(start)
            for value in iterable:
                total = added(total, int(value))
            return total

        return of_whole
    if isinstance(item, types.Float) and sys.version_info < (3, 12):  # 3.12 adds more exactly

        def of_floats(iterable: Any, start: Any = 0) -> Any:
            total = float(start)
            for value in iterable:
                total += value
            return total

        return of_floats
    return None


# --- math -----------------------------------------------------------------------------------------------------------


def _declare_checked(original: Any) -> None:
    """Declare math_1 of CPython's Modules/mathmodule.c."""

    def typing(x: Any) -> Any:
        if not _is_number(x):
            return None

        def checked(x: Any) -> Any:
            y = float(x)
            result = original(y)
            if math.isnan(result) and not math.isnan(y):
                raise ValueError("math domain error")
            if math.isinf(result) and math.isfinite(y):
                raise OverflowError("math range error")
            return result

        return checked

    stands_for(original)(typing)


for _name in (
    "sqrt", "exp", "expm1", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "sinh", "cosh",
    "asinh", "acosh", "atanh",
):  # fmt: skip
    _declare_checked(getattr(math, _name))


@register_jitable
def _log(x: float) -> float:
    if not x > 0.0 and not math.isnan(x):
        raise ValueError("math domain error")
    return math.log(x)


@stands_for(math.log)
def _logarithm(x: Any, base: Any = None) -> Any:
    if not _is_number(x):
        return None
    if base is None or isinstance(base, types.Omitted):
        return lambda x, base=None: _log(float(x))
    if not _is_number(base):
        return None

    def of_base(x: Any, base: Any = None) -> Any:
        above, below = _log(float(x)), _log(float(base))
        if below == 0.0:
            raise ZeroDivisionError("float division by zero")
        return above / below

    return of_base


@stands_for(math.pow)
def _math_pow(x: Any, y: Any) -> Any:
    if not _is_number(x) or not _is_number(y):
        return None

    def raised(x: Any, y: Any) -> Any:
        if float(x) < 0.0 and math.isfinite(float(x)) and math.isfinite(float(y)) and y != math.floor(y):
            raise ValueError("math domain error")
        return float_power(float(x), float(y))

    return raised


@stands_for(math.fmod)
def _fmod(x: Any, y: Any) -> Any:
    if not _is_number(x) or not _is_number(y):
        return None

    def rest(x: Any, y: Any) -> Any:
        a, b = float(x), float(y)
        if math.isnan(a) or math.isnan(b):
            return a + b
        if math.isinf(a) or b == 0.0:
            raise ValueError("math domain error")
        return np.fmod(a, b)

    return rest


@stands_for(math.ldexp)
def _ldexp(x: Any, i: Any) -> Any:
    if not _is_number(x) or not _is_whole(i):
        return None

    def scaled(x: Any, i: Any) -> Any:
        y = float(x)
        exponent: Any = types.int32(min(max(int(i), -5000), 5000))
        result = math.ldexp(y, exponent)
        if math.isinf(result) and math.isfinite(y):
            raise OverflowError("math range error")
        return result

    return scaled
