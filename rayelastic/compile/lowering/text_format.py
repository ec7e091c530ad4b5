"""str(x) of compiled code, and with it f-strings."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.errors import TypingError

from rayelastic.compile.lowering.declare import overloads
from rayelastic.compile.lowering.views import TEXT, TextLiteral, new_view, put_byte

_TRUE, _FALSE, _NONE = TextLiteral("True"), TextLiteral("False"), TextLiteral("None")
_LEAST = TextLiteral("-9223372036854775808")


def text_of(value: Any) -> str:
    """Stands for `str` in rewritten user code."""
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
        return _decimal
    raise TypingError(f"str() of {value} isn't compiled")


def _decimal(value: int) -> Any:
    if value == -9223372036854775808:
        return _LEAST
    digits = 1
    rest = abs(value)
    while rest >= 10:
        rest //= 10
        digits += 1
    size = digits + 1 if value < 0 else digits
    made = new_view(_NONE, size)
    rest = abs(value)
    for at in range(size - 1, size - digits - 1, -1):
        put_byte(made, at, 48 + rest % 10)
        rest //= 10
    if value < 0:
        put_byte(made, 0, 45)
    return made
