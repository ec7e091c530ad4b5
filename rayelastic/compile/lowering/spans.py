"""Arithmetic and comparison of datetime, date and timedelta as CPython has them, in place of NumPy's.

NumPy cuts off where CPython rounds half to even, wraps where CPython raises, and makes a datetime of a date and a
timedelta. So after types are known every operator on such a value is replaced by one below, or refused. The kinds: m is
a datetime, d a date, s a timedelta, i an int, f a float.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG002 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types
from numba.core.errors import UnsupportedError
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from rayelastic.compile.lowering import engine, whole_numbers
from rayelastic.compile.lowering.declare import primitive
from rayelastic.compile.lowering.moments import check_moment, microseconds, span, units
from rayelastic.compile.lowering.refusal import refuse, refuse_if

_UNITS = {"s", "ms", "us"}  # of a datetime and a timedelta; Python has no nanoseconds
_COMPARED = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_UNCHANGED = {(function, kinds) for function in _COMPARED for kinds in ("mm", "dd", "ss")}
_replacements: dict[
    tuple[Any, str], tuple[Any, bool]
] = {}  # the operator, and whether a timedelta has to be in microseconds


def kinds_of(operands: list[Any]) -> str:
    """A letter for each operand; '?' for what isn't one of the kinds above."""
    return "".join(_kind(types.unliteral(one)) for one in operands)


def _kind(kind: Any) -> str:
    if isinstance(kind, types.Optional):
        kind = kind.type
    if isinstance(kind, types.NPTimedelta):
        return "s" if kind.unit in _UNITS else "?"
    if isinstance(kind, types.NPDatetime):
        return "m" if kind.unit in _UNITS else "d" if kind.unit == "D" else "?"
    if isinstance(kind, types.Integer | types.Boolean):
        return "i"
    return "f" if isinstance(kind, types.Float) else "?"


def is_temporal(kind: Any) -> bool:
    """Whether an operand is a datetime, a date or a timedelta, or may be one."""
    kind = kind.type if isinstance(kind, types.Optional) else kind
    return isinstance(kind, types.NPDatetime | types.NPTimedelta)


def replacement(function: Any, operands: list[Any], loc: Any) -> Any:
    """The operator to call in place of one on dates and times; None: Numba's is right.

    Raises:
        UnsupportedError: neither is.
    """
    kinds = kinds_of(operands)
    if (function, kinds) in _UNCHANGED:
        return None
    ours, in_microseconds = _replacements.get((function, kinds), (None, False))
    odd = any(_kind(one) == "s" and _plain(one).unit != "us" for one in operands)
    if ours is None or (in_microseconds and odd):
        words = {
            "m": "a datetime",
            "d": "a date",
            "s": "a timedelta",
            "i": "an int",
            "f": "a float",
            "?": "something else",
        }
        shown = " and ".join(words[kind] for kind in kinds)
        raise UnsupportedError(f"'{function.__name__}' of {shown} isn't compiled", loc)
    return ours


def _plain(kind: Any) -> Any:
    return kind.type if isinstance(kind, types.Optional) else kind


def _declare(function: Any, kinds: str, result: Callable[..., Any], *, in_microseconds: bool = True) -> Any:
    """Declares an operator; the decorated function, written in Python, is compiled for the operands' types."""

    def declared(written: Any) -> Any:
        def stand_in(*operands: Any) -> Any:
            raise TypeError("only compiled")

        stand_in.__name__ = f"{function.__name__}_of_times_{kinds}"
        globals()[stand_in.__name__] = stand_in  # where Numba looks it up
        written.__annotations__ = {}

        @infer_global(stand_in)
        class Declared(AbstractTemplate):
            def generic(self, args: Any, kws: Any) -> Any:
                plain = [_plain(types.unliteral(one)) for one in args]
                return signature(result(*plain), *plain)

        @lower_builtin(stand_in, *[types.Any] * len(kinds))
        def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return context.compile_internal(builder, written, sig, args)

        _replacements[function, kinds] = stand_in, in_microseconds
        return written

    return declared


def _finer(a: Any, b: Any) -> Any:
    return max(a.unit, b.unit, key=("s", "ms", "us").index)


def _span_of(a: Any, b: Any) -> Any:
    return types.NPTimedelta(_finer(a, b))


def _moment_of(a: Any, b: Any) -> Any:
    return types.NPDatetime(_finer(a, b))


def _first(a: Any, b: Any = None) -> Any:
    return a


def _second(a: Any, b: Any) -> Any:
    return b


def _number(a: Any, b: Any) -> Any:
    return types.float64


# --- sums and differences -------------------------------------------------------------------------------------------


@_declare(operator.add, "ss", _span_of, in_microseconds=False)
def _span_plus(a: Any, b: Any) -> Any:
    whole_numbers.added(microseconds(a), microseconds(b))
    return a + b


@_declare(operator.sub, "ss", _span_of, in_microseconds=False)
def _span_minus(a: Any, b: Any) -> Any:
    whole_numbers.added(microseconds(a), -microseconds(b))
    return a - b


@_declare(operator.sub, "mm", _span_of, in_microseconds=False)
def _between(a: Any, b: Any) -> Any:
    return a - b


@_declare(operator.add, "ms", _moment_of, in_microseconds=False)
def _later(a: Any, b: Any) -> Any:
    check_moment(whole_numbers.added(microseconds(a), microseconds(b)))
    return a + b


@_declare(operator.add, "sm", _moment_of, in_microseconds=False)
def _later_turned(a: Any, b: Any) -> Any:
    check_moment(whole_numbers.added(microseconds(a), microseconds(b)))
    return a + b


@_declare(operator.sub, "ms", _moment_of, in_microseconds=False)
def _earlier(a: Any, b: Any) -> Any:
    check_moment(whole_numbers.added(microseconds(a), -microseconds(b)))
    return a - b


@_declare(operator.neg, "s", _first, in_microseconds=False)
def _turned(a: Any) -> Any:
    refuse_if(microseconds(a) == whole_numbers.LEAST)
    return -a


@_declare(operator.pos, "s", _first, in_microseconds=False)
def _same(a: Any) -> Any:
    return a


# --- by numbers -----------------------------------------------------------------------------------------------------


def _scaling(name: str, number: Any) -> Any:
    @primitive
    def scaled(typingctx: Any, microseconds: Any, by: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            result = cgutils.alloca_once(builder, engine.I64)
            there = engine.span_by(builder, name, args[0], args[1], result)
            with builder.if_then(builder.icmp_unsigned("==", there, engine.I64(0)), likely=False):
                refuse(builder)
            return builder.load(result)

        return types.int64(types.int64, number), codegen

    return scaled


_times, _over = _scaling("rel_span_times", types.float64), _scaling("rel_span_over", types.float64)
_shared = _scaling("rel_span_shared", types.int64)


@_declare(operator.mul, "si", _first)
def _span_times(a: Any, b: Any) -> Any:
    return span(whole_numbers.multiplied(units(a), types.int64(b)))


@_declare(operator.mul, "is", _second)
def _times_span(a: Any, b: Any) -> Any:
    return span(whole_numbers.multiplied(units(b), types.int64(a)))


@_declare(operator.mul, "sf", _first)
def _span_scaled(a: Any, b: Any) -> Any:
    return span(_times(units(a), b))


@_declare(operator.mul, "fs", _second)
def _scaled_span(a: Any, b: Any) -> Any:
    return span(_times(units(b), a))


@_declare(operator.truediv, "sf", _first)
def _span_over(a: Any, b: Any) -> Any:
    return span(_over(units(a), b))


@_declare(operator.truediv, "si", _first)
def _span_shared(a: Any, b: Any) -> Any:
    return span(_shared(units(a), types.int64(b)))


@_declare(operator.floordiv, "si", _first)
def _span_floored(a: Any, b: Any) -> Any:
    return span(whole_numbers.floor_divide(units(a), types.int64(b)))


@_declare(operator.truediv, "ss", _number)
def _ratio(a: Any, b: Any) -> Any:
    return whole_numbers.divide(units(a), units(b))
