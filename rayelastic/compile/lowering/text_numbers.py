"""int() and float() of text, as CPython reads them: white space, sign, underscores, digits of any script.

An int beyond 64 bits is refused; floats are exact: short ones by one exact
multiplication or division (Clinger 1990), others by strtod on the bare digits, which no locale changes.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005, SIM110

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import register_jitable

from rayelastic.compile.lowering import engine
from rayelastic.compile.lowering.code_points import next_offset, point_at
from rayelastic.compile.lowering.declare import overloads, primitive
from rayelastic.compile.lowering.refusal import refuse_if
from rayelastic.compile.lowering.text_parts import left, right
from rayelastic.compile.lowering.views import TEXT, ViewType, byte_at

# Code points of the zeroes beyond ASCII; the nine digits follow each.
_ZEROES = np.array([c for c in range(128, 0x110000) if unicodedata.decimal(chr(c), None) == 0], dtype=np.int64)
_ZEROES.flags.writeable = False
_POWERS = np.array([10.0**i for i in range(23)])
_POWERS.flags.writeable = False

_DIGITS = 800  # more than 767 never change which double is nearest (Bruce Dawson, "Double-precision 100 digits")
_BUFFER = _DIGITS + 32


@register_jitable
def _digit(text: Any, at: int) -> int:
    """The value of the decimal digit at an offset, or -1."""
    byte = byte_at(text, at)
    if byte < 128:
        return byte - 48 if 48 <= byte <= 57 else -1
    return _wide_digit(text, at)


def _wide_digit(text: Any, at: int) -> int:
    raise TypeError("only compiled")


@overloads(_wide_digit)
def _wide_digit_of(text: Any, at: Any) -> Any:
    if text != TEXT:
        return lambda text, at: -1

    def wide(text: Any, at: Any) -> Any:
        point = point_at(text, at)
        for zero in _ZEROES:
            if zero <= point < zero + 10:
                return point - zero
        return -1

    return wide


@register_jitable
def _sign(text: Any, at: int, stop: int) -> tuple[bool, int]:
    """Whether there is a minus, and where the number goes on behind its sign."""
    if at < stop and (byte_at(text, at) == 45 or byte_at(text, at) == 43):
        return byte_at(text, at) == 45, at + 1
    return False, at


@overloads(int)
def _int(text: Any) -> Any:
    if not isinstance(text, ViewType):
        return None

    def parsed(text: Any) -> Any:
        at = left(text)
        stop = right(text, at)
        negative, at = _sign(text, at, stop)
        value, digits, may_underscore = 0, 0, False
        while at < stop:
            if byte_at(text, at) == 95 and may_underscore:
                may_underscore = False
                at += 1
                continue
            digit = _digit(text, at)
            if digit < 0:
                raise ValueError("invalid literal for int()")
            refuse_if(value < -922337203685477580 or (value == -922337203685477580 and digit > 8))
            value = value * 10 - digit  # negative, because there is one more of those
            digits += 1
            may_underscore = True
            at = next_offset(text, at)
        if not may_underscore:
            raise ValueError("invalid literal for int()")
        if negative:
            return value
        refuse_if(value == -9223372036854775808)
        return -value

    return parsed


@primitive
def _buffer(typingctx: Any) -> Any:
    """Stack memory for strtod."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        block = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), _BUFFER))
        return builder.bitcast(block, ir.IntType(8).as_pointer())

    return types.voidptr(), codegen


@primitive
def _put(typingctx: Any, buffer: Any, at: Any, byte: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(builder.trunc(args[2], ir.IntType(8)), builder.gep(args[0], [args[1]]))
        return context.get_dummy_value()

    return types.void(types.voidptr, types.int64, types.int64), codegen


@primitive
def _strtod(typingctx: Any, buffer: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.DoubleType(), [pointer, pointer])
        function = cgutils.get_or_insert_function(builder.module, kind, engine.STRTOD)
        return builder.call(function, [args[0], ir.Constant(pointer, None)])

    return types.float64(types.voidptr), codegen


def _slow(text: Any, at: int, stop: int, exponent: int) -> Any:
    """The double of the digits at..stop (points and underscores skipped) times a power of ten."""
    buffer = _buffer()
    used = 0
    more = False
    while at < stop:
        byte = byte_at(text, at)
        if byte == 46 or byte == 95:
            at += 1
            continue
        digit = _digit(text, at)
        at = next_offset(text, at)
        if used == 0 and digit == 0:
            continue
        if used < _DIGITS:
            _put(buffer, used, 48 + digit)
            used += 1
        else:
            exponent += 1
            more = more or digit > 0
    if used == 0:
        return 0.0
    if more:  # whatever comes after the digits that were kept is above, never on, a tie
        _put(buffer, used, 49)
        used += 1
        exponent -= 1
    exponent = min(max(exponent, -99999), 99999)
    _put(buffer, used, 101)
    _put(buffer, used + 1, 45 if exponent < 0 else 43)
    rest = abs(exponent)
    for index in range(5):
        _put(buffer, used + 6 - index, 48 + rest % 10)
        rest //= 10
    _put(buffer, used + 7, 0)
    return _strtod(buffer)


_slow = register_jitable(_slow)


@register_jitable
def _is_word(text: Any, at: int, stop: int, word: tuple[int, ...]) -> bool:
    """Whether at..stop is an ASCII word, given in lower case, in any case."""
    if stop - at != len(word):
        return False
    for index in range(len(word)):
        if byte_at(text, at + index) | 32 != word[index]:
            return False
    return True


_INF, _INFINITY, _NAN = tuple(b"inf"), tuple(b"infinity"), tuple(b"nan")


@overloads(float)
def _float(text: Any) -> Any:
    if not isinstance(text, ViewType):
        return None

    def parsed(text: Any) -> Any:
        at = left(text)
        stop = right(text, at)
        negative, at = _sign(text, at, stop)
        if _is_word(text, at, stop, _INF) or _is_word(text, at, stop, _INFINITY):
            return -np.inf if negative else np.inf
        if _is_word(text, at, stop, _NAN):
            return np.nan
        first = at
        value, digits, fraction, seen_point, after_digit = 0, 0, 0, False, False
        while at < stop:
            byte = byte_at(text, at)
            if byte == 46 and not seen_point:
                if at > first and not after_digit:
                    raise ValueError("could not convert string to float")
                seen_point, after_digit = True, False
                at += 1
                continue
            if byte == 95 and after_digit:
                after_digit = False
                at += 1
                if at >= stop or _digit(text, at) < 0:
                    raise ValueError("could not convert string to float")
                continue
            digit = _digit(text, at)
            if digit < 0:
                break
            if value < 100000000000000000:
                value = value * 10 + digit
            else:
                value = 1000000000000000000
            digits += 1
            if seen_point:
                fraction += 1
            after_digit = True
            at = next_offset(text, at)
        if digits == 0:
            raise ValueError("could not convert string to float")
        last = at
        exponent = 0
        if at < stop and (byte_at(text, at) | 32) == 101:
            at += 1
            down = False
            if at < stop and (byte_at(text, at) == 45 or byte_at(text, at) == 43):
                down = byte_at(text, at) == 45
                at += 1
            after_digit = False
            while at < stop:
                if byte_at(text, at) == 95 and after_digit:
                    after_digit = False
                    at += 1
                    continue
                digit = _digit(text, at)
                if digit < 0:
                    break
                exponent = min(exponent * 10 + digit, 1000000000)
                after_digit = True
                at = next_offset(text, at)
            if not after_digit:
                raise ValueError("could not convert string to float")
            if down:
                exponent = -exponent
        if at != stop:
            raise ValueError("could not convert string to float")
        scale = exponent - fraction
        if value <= 9007199254740992 and -22 <= scale <= 22:
            number = float(value) / _POWERS[-scale] if scale < 0 else float(value) * _POWERS[scale]
        else:
            number = _slow(text, first, last, scale)
        return -number if negative else number

    return parsed
