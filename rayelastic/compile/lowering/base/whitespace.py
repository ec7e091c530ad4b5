"""The white space of str and bytes."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import stand_in
from rayelastic.compile.lowering.base.views import BYTES, byte_at


@register_jitable
def ascii_space(byte: int) -> bool:
    """Return str.isspace of an ASCII character."""
    return byte == 32 or (9 <= byte <= 13) or (28 <= byte <= 31)


@stand_in
def space_width(text: Any, at: Any) -> Any:
    """Return the bytes of the white-space character at an offset, 0 for any other."""
    if text == BYTES:

        def of_bytes(text: Any, at: Any) -> Any:
            byte = byte_at(text, at)
            return 1 if byte == 32 or (9 <= byte <= 13) else 0

        return of_bytes

    def of_text(text: Any, at: Any) -> Any:
        byte = byte_at(text, at)
        if byte < 128:
            return 1 if ascii_space(byte) else 0
        if byte == 0xC2:  # U+0085, U+00A0
            second = byte_at(text, at + 1)
            return 2 if second == 0x85 or second == 0xA0 else 0
        if byte < 0xE1 or byte > 0xE3:
            return 0
        second, third = byte_at(text, at + 1), byte_at(text, at + 2)
        if byte == 0xE1:  # U+1680
            return 3 if second == 0x9A and third == 0x80 else 0
        if byte == 0xE3:  # U+3000
            return 3 if second == 0x80 and third == 0x80 else 0
        if second == 0x80:  # U+2000..200A, U+2028, U+2029, U+202F
            return 3 if third <= 0x8A or 0xA8 <= third <= 0xA9 or third == 0xAF else 0
        return 3 if second == 0x81 and third == 0x9F else 0  # U+205F

    return of_text
