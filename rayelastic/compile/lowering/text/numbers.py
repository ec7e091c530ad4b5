"""int() and float() of text, int.from_bytes, chr, hex, oct and bin, computed by the engine as in CPython (text.h)."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: A002, A006, ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.errors import TypingError

from rayelastic.compile.lowering.base.declare import overloads, primitive, stand_in
from rayelastic.compile.lowering.base.services import is_bytes, service
from rayelastic.compile.lowering.base.views import BYTES, TEXT, TextLiteral, ViewType
from rayelastic.compile.lowering.text.methods import in_words
from rayelastic.compile.reasons import packed


@primitive
def int_of_text(typingctx: Any, text: Any, base: Any) -> Any:
    """Return int(text, base), rejected beyond 64 bits."""
    return service("rel_text_to_int", types.int64(text, types.int64), is_bytes(text), raises=(ValueError,))


@primitive
def float_of_text(typingctx: Any, text: Any) -> Any:
    """Return float(text)."""
    return service("rel_text_to_float", types.float64(text), is_bytes(text), raises=(ValueError,))


@overloads(float)
def _float(text: Any) -> Any:
    return (lambda text: float_of_text(text)) if isinstance(text, ViewType) else None


REPLACED: dict[Any, Any] = {}  # {builtin: its replacement in user code}


def _declare_base(original: Any, base: int) -> None:
    @primitive
    def text_in_base(typingctx: Any, number: Any) -> Any:
        if not isinstance(number, types.Integer | types.Boolean):
            raise TypingError(packed(what=f"{original.__name__}({in_words(number)})"))
        return service("rel_text_of_int", TEXT(types.int64), base)

    REPLACED[original] = text_in_base


for _original, _base in ((hex, 16), (oct, 8), (bin, 2)):
    _declare_base(_original, _base)


@primitive
def _character(typingctx: Any, i: Any) -> Any:
    """Return chr(i)."""
    if not isinstance(i, types.Integer | types.Boolean):
        raise TypingError(packed(what=f"chr({in_words(i)})"))
    return service("rel_text_of_point", TEXT(types.int64), raises=(ValueError, OverflowError))


@primitive
def _int_of_bytes(typingctx: Any, raw: Any, is_signed: Any, is_little: Any) -> Any:
    return service("rel_text_bytes_to_int", types.int64(raw, types.int64, types.int64))


_BIG, _LITTLE = TextLiteral("big"), TextLiteral("little")


@stand_in
def _from_bytes(bytes: Any, byteorder: Any = "big", signed: Any = False) -> Any:
    """Stand in for int.from_bytes in rewritten user code."""
    if bytes != BYTES or not isinstance(signed, types.Boolean | types.Omitted | bool):
        return None
    if byteorder == "big" or isinstance(byteorder, types.Omitted):
        return lambda bytes, byteorder="big", signed=False: _int_of_bytes(bytes, bool(signed), 0)
    if byteorder != TEXT:
        return None

    def of_bytes(bytes: Any, byteorder: Any = "big", signed: Any = False) -> Any:
        is_little = byteorder == _LITTLE
        if not is_little and byteorder != _BIG:
            raise ValueError("byteorder must be either 'little' or 'big'")
        return _int_of_bytes(bytes, bool(signed), is_little)

    return of_bytes


REPLACED |= {chr: _character, int.from_bytes: _from_bytes}
