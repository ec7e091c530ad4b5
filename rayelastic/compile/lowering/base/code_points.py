"""Offsets in bytes and indices in characters: code points for str, bytes for bytes."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import stand_in
from rayelastic.compile.lowering.base.views import BYTES, byte_at, size_of, word_at


@stand_in
def count_points(text: Any, start: Any, stop: Any) -> Any:
    """Count the characters between two offsets."""
    if text == BYTES:
        return lambda text, start, stop: stop - start

    def count(text: Any, start: Any, stop: Any) -> Any:
        points = 0
        for at in range(start, stop):
            points += (byte_at(text, at) & 0xC0) != 0x80
        return points

    return count


@stand_in
def offset_of(text: Any, index: Any) -> Any:
    """Return the offset of a character, counted from the end if negative; clipped to the text, as slices are."""
    if text == BYTES:

        def of_bytes(text: Any, index: Any) -> Any:
            size = size_of(text)
            return min(index, size) if index >= 0 else max(size + index, 0)

        return of_bytes

    def of_text(text: Any, index: Any) -> Any:
        size = size_of(text)
        if index >= 0:
            return size if index >= size else _forward(text, index)
        at = size
        while index < 0 and at > 0:
            at -= 1
            while at > 0 and (byte_at(text, at) & 0xC0) == 0x80:
                at -= 1
            index += 1
        return at

    return of_text


@register_jitable
def _forward(text: Any, index: int) -> int:
    size, at = size_of(text), 0
    while index >= 8 and size - at >= 8 and (word_at(text, at) & 0x8080808080808080) == 0:
        at += 8
        index -= 8
    while index > 0 and at < size:
        at += 1
        while at < size and (byte_at(text, at) & 0xC0) == 0x80:
            at += 1
        index -= 1
    return at


@register_jitable
def next_offset(text: Any, at: int) -> int:
    """Return the offset after the character at an offset of a str."""
    at += 1
    while at < size_of(text) and (byte_at(text, at) & 0xC0) == 0x80:
        at += 1
    return at


@register_jitable
def point_at(text: Any, at: int) -> int:
    """Return the code point at an offset of a str."""
    byte = byte_at(text, at)
    if byte < 0x80:
        return byte
    second = byte_at(text, at + 1) & 0x3F
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | second
    third = byte_at(text, at + 2) & 0x3F
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | second << 6 | third
    return (byte & 0x07) << 18 | second << 12 | third << 6 | (byte_at(text, at + 3) & 0x3F)
