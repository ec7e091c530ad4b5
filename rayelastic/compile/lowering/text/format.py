"""str(x), format(x, spec) and f-strings in compiled code.

A format spec has to be a constant. The engine writes floats (number_text.h), this module the rest.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import re
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import register_jitable

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.code_points import count_points
from rayelastic.compile.lowering.base.declare import overloads, primitive, stand_in
from rayelastic.compile.lowering.base.optional import present
from rayelastic.compile.lowering.base.views import (
    TEXT,
    TextLiteral,
    byte_at,
    cut,
    make_view,
    new_view,
    put_byte,
    put_view,
    size_of,
)
from rayelastic.compile.reasons import packed

_TRUE, _FALSE, _NONE = TextLiteral("True"), TextLiteral("False"), TextLiteral("None")
_LEAST = TextLiteral("-9223372036854775808")
_REPR = ord("r")
_FLOAT_BYTES = 512  # REL_FLOAT_TEXT_BYTES
_PRECISION = 100  # REL_FLOAT_PRECISION

# The supported part of Python's format specification mini-language; '#', 'z', '_' and 'n' aren't.
_SPEC = re.compile(r"(?:(?P<fill>.)?(?P<align>[<>^=]))?(?P<sign>[+\- ]?)(?P<zero>0?)(?P<width>\d*)"
                   r"(?P<comma>,?)(?:\.(?P<precision>\d+))?(?P<kind>[sdfFeEgGxXob%]?)", re.DOTALL)  # fmt: skip


def text_of(value: Any) -> str:
    """Stand in for `str` in rewritten user code."""
    return str(value)


@overloads(text_of)
def _text_of(value: Any) -> Any:
    if value == TEXT:
        return lambda value: value
    if isinstance(value, types.Boolean):
        return lambda value: _TRUE if value else _FALSE
    if isinstance(value, types.NoneType):
        return lambda value: _NONE
    if isinstance(value, types.Integer):
        return decimal
    if isinstance(value, types.Float):
        return lambda value: _float_text(float(value), _REPR, 0)
    if isinstance(value, types.Optional):
        return lambda value: _NONE if value is None else text_of(present(value))
    raise TypingError(packed(what=f"str() of {value}"))


def _decimal(value: int) -> Any:
    if value == -9223372036854775808:
        return _LEAST
    digits = 1
    rest = abs(value)
    while rest >= 10:
        rest //= 10
        digits += 1
    size = digits + 1 if value < 0 else digits
    view = new_view(_NONE, size)
    rest = abs(value)
    for at in range(size - 1, size - digits - 1, -1):
        put_byte(view, at, 48 + rest % 10)
        rest //= 10
    if value < 0:
        put_byte(view, 0, 45)
    return view


_decimal.__annotations__ = {}
decimal = register_jitable(_decimal)


@primitive
def _float_text(typingctx: Any, value: Any, kind: Any, precision: Any) -> Any:
    """Call rel_text_of_float; return a view of fresh memory."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        room = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), _FLOAT_BYTES))
        room = builder.bitcast(room, ir.IntType(8).as_pointer())
        size = engine.text_of_float(builder, args[0], builder.trunc(args[1], ir.IntType(32)), args[2], room)
        data = engine.allocate(builder, engine.current_context(builder), size)
        with builder.if_then(cgutils.is_null(builder, data), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ())
        cgutils.raw_memcpy(builder, data, room, size, 1)
        return make_view(context, builder, TEXT, data, size)

    return TEXT(types.float64, types.int64, types.int64), codegen


@register_jitable
def put_number(text: Any, at: int, digits: int, value: int) -> None:
    """Write so many digits of a number into a text from `new_view`."""
    for place in range(at + digits - 1, at - 1, -1):
        put_byte(text, place, 48 + value % 10)
        value //= 10


# --- format specs ---------------------------------------------------------------------------------------------------


@stand_in
def formatted(value: Any, spec: Any) -> Any:
    """Stand in for format(value, ..) in rewritten user code; the spec is an int from format_strings.encoded."""
    number = getattr(spec, "literal_value", 0)
    written = number.to_bytes(8, "little").rstrip(b"\0").decode()
    parts = _SPEC.fullmatch(written)
    if parts is None or not written:
        raise TypingError(packed(what=f"the format spec {written!r}"))
    kind, precision = parts["kind"], parts["precision"]
    width, zero = int(parts["width"] or 0), bool(parts["zero"])
    fill = TextLiteral(parts["fill"] or ("0" if zero else " "))
    align = parts["align"] or ("=" if zero else "<" if value == TEXT else ">")
    plus = TextLiteral(parts["sign"]) if parts["sign"] in ("+", " ") else TextLiteral("")
    comma = bool(parts["comma"])
    bad = packed(what=f"the format spec {written!r} of {value}")
    if comma and align == "=":  # the zeroes would need commas as well
        raise TypingError(bad)
    if value == TEXT:
        if kind not in ("", "s") or parts["sign"] or comma or align == "=":
            raise TypingError(bad)
        cut_at = -1 if precision is None else int(precision)
        return lambda value, spec: _aligned(_first(value, cut_at), 0, fill, align, width)
    if isinstance(value, types.Boolean) and not kind:
        raise TypingError(bad)
    if isinstance(value, types.Integer | types.Boolean) and kind in ("", "d") and precision is None:
        return lambda value, spec: _numeral(decimal(int(value)), plus, comma, fill, align, width)
    if isinstance(value, types.Integer | types.Boolean) and kind in ("x", "X", "o", "b") and precision is None:
        if comma:
            raise TypingError(bad)
        shift, letters = {"x": (4, 87), "X": (4, 55), "o": (3, 87), "b": (1, 87)}[kind]
        return lambda value, spec: _numeral(_digits_of(int(value), shift, letters), plus, False, fill, align, width)
    if isinstance(value, types.Float | types.Integer | types.Boolean) and kind in ("f", "F", "e", "g"):
        places = 6 if precision is None else int(precision)
        if places > _PRECISION or (kind == "F") or (comma and kind != "f"):
            raise TypingError(bad)
        letter = ord(kind)
        return lambda value, spec: _numeral(_float_text(float(value), letter, places), plus, comma, fill, align, width)
    if isinstance(value, types.Float) and kind == "%" and not comma:
        places = 6 if precision is None else int(precision)
        if places > _PRECISION:
            raise TypingError(bad)
        return lambda value, spec: _numeral(
            _float_text(value * 100.0, 102, places) + _PERCENT, plus, False, fill, align, width
        )
    if isinstance(value, types.Float) and not kind and precision is None and not comma:
        return lambda value, spec: _numeral(text_of(value), plus, False, fill, align, width)
    raise TypingError(bad)


_PERCENT = TextLiteral("%")


@register_jitable
def _first(text: Any, count: int) -> Any:
    return text if count < 0 else text[:count]


@register_jitable
def _digits_of(value: int, shift: int, letters: int) -> Any:
    """Return the digits of an int in base 2 ** shift."""
    sign = 1 if value < 0 else 0
    rest = types.uint64(0) - types.uint64(value) if value < 0 else types.uint64(value)
    digits, left = 1, rest >> types.uint64(shift)
    while left > types.uint64(0):
        digits += 1
        left >>= types.uint64(shift)
    view = new_view(_NONE, digits + sign)
    for at in range(digits + sign - 1, sign - 1, -1):
        digit = types.int64(rest & ((types.uint64(1) << types.uint64(shift)) - types.uint64(1)))
        put_byte(view, at, 48 + digit if digit < 10 else letters + digit)
        rest >>= types.uint64(shift)
    if sign == 1:
        put_byte(view, 0, 45)
    return view


@register_jitable
def _numeral(digits: Any, plus: Any, comma: bool, fill: Any, align: str, width: int) -> Any:
    """Return a number with its sign, thousands and padding."""
    negative = size_of(digits) > 0 and byte_at(digits, 0) == 45
    if not negative and size_of(plus) > 0:
        digits = plus + digits
    signs = 1 if negative or size_of(plus) > 0 else 0
    is_finite = size_of(digits) > signs and byte_at(digits, signs) <= 57
    if comma and is_finite:
        digits = _thousands(digits, signs)
    return _aligned(digits, signs, fill, align, width)


@register_jitable
def _thousands(digits: Any, signs: int) -> Any:
    stop = signs
    while stop < size_of(digits) and 48 <= byte_at(digits, stop) <= 57:
        stop += 1
    commas = (stop - signs - 1) // 3
    view = new_view(digits, size_of(digits) + commas)
    to = 0
    for at in range(size_of(digits)):
        if signs < at < stop and (stop - at) % 3 == 0:
            put_byte(view, to, 44)
            to += 1
        put_byte(view, to, byte_at(digits, at))
        to += 1
    return view


@register_jitable
def _aligned(text: Any, signs: int, fill: Any, align: str, width: int) -> Any:
    missing = width - count_points(text, 0, size_of(text))
    if missing <= 0:
        return text
    before = missing if align == ">" else missing // 2 if align == "^" else 0
    inside = missing if align == "=" else 0
    view = new_view(text, size_of(text) + missing * size_of(fill))
    to = 0
    for _ in range(before):
        put_view(view, to, fill)
        to += size_of(fill)
    put_view(view, to, cut(text, 0, signs))
    to += signs
    for _ in range(inside):
        put_view(view, to, fill)
        to += size_of(fill)
    put_view(view, to, cut(text, signs, size_of(text)))
    to += size_of(text) - signs
    for _ in range(missing - before - inside):
        put_view(view, to, fill)
        to += size_of(fill)
    return view
