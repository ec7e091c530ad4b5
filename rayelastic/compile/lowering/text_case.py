"""lower, upper and the questions isdigit, isalpha, ... of text, exact for all of Unicode.

ASCII by arithmetic; the rest from tables made of the running Python's own str, so that both agree. Made when first
needed: about a tenth of a second, and the tables that are used become part of the compiled code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from rayelastic.compile.lowering.code_points import next_offset, point_at
from rayelastic.compile.lowering.declare import overloads_method
from rayelastic.compile.lowering.views import BYTES, TEXT, ViewType, byte_at, cut, new_view, put_byte, put_view, size_of

_SIGMA = 0x3A3
_SURROGATES = range(0xD800, 0xE000)


def _characters() -> list[int]:
    return [c for c in range(128, 0x110000) if c not in _SURROGATES]


@functools.cache
def _mapping(name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Code points beyond ASCII that a method changes; their results' UTF-8 bytes as a number; how many bytes."""
    method = getattr(str, name)
    changed = [(c, method(chr(c)).encode()) for c in _characters() if method(chr(c)) != chr(c)]
    assert all(len(raw) <= 8 for _, raw in changed)
    columns = (
        np.array([c for c, _ in changed], dtype=np.int64),
        np.array([int.from_bytes(raw, "little") for _, raw in changed], dtype=np.uint64).astype(np.int64),
        np.array([len(raw) for _, raw in changed], dtype=np.int64),
    )
    for column in columns:
        column.flags.writeable = False
    return columns


def _ranges(test: Callable[[str], bool]) -> np.ndarray[Any, Any]:
    """Sorted borders: a code point has the property if an odd number of borders lies at or below it."""
    borders, inside = [], False
    for c in range(0x110000):
        has = c not in _SURROGATES and test(chr(c))
        if has != inside:
            borders.append(c)
            inside = has
    table = np.array([*borders, 0x110000], dtype=np.int64)
    table.flags.writeable = False
    return table


@functools.cache
def _question(name: str) -> np.ndarray[Any, Any]:
    return _ranges(getattr(str, name))


@functools.cache
def _sigma_context() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Unicode's Final_Sigma, asked of Python: characters that are skipped, and cased ones that aren't."""
    ignorable = _ranges(lambda c: ("A" + c + "\u03a3").lower()[-1] == "\u03c2" and (c + "\u03a3").lower()[-1] == "\u03c3")
    cased = _ranges(lambda c: (c + "\u03a3").lower()[-1] == "\u03c2")
    return ignorable, cased


@register_jitable
def _inside(borders: Any, point: int) -> bool:
    return bool(np.searchsorted(borders, point, side="right") & 1)


@register_jitable
def _is_final_sigma(text: Any, at: int, ignorable: Any, cased: Any) -> bool:
    """Whether the capital sigma at an offset ends a word: lower() makes another letter of it."""
    before, found = at, False
    while before > 0:
        before -= 1
        while (byte_at(text, before) & 0xC0) == 0x80:
            before -= 1
        point = point_at(text, before)
        if not _inside(ignorable, point):
            found = _inside(cased, point)
            break
    if not found:
        return False
    after = next_offset(text, at)
    while after < size_of(text):
        point = point_at(text, after)
        if not _inside(ignorable, point):
            return not _inside(cased, point)
        after = next_offset(text, after)
    return True


def _declare_case(name: str, low: int, high: int, *, sigma: bool) -> None:
    """Letters low..high of ASCII change by 32."""

    @register_jitable
    def ascii_only(text: Any) -> bool:
        bits = 0
        for at in range(size_of(text)):
            bits |= byte_at(text, at)
        return bits < 128

    @register_jitable
    def ascii_case(text: Any) -> Any:
        made = new_view(text, size_of(text))
        for at in range(size_of(text)):
            byte = byte_at(text, at)
            put_byte(made, at, byte ^ 32 if low <= byte <= high else byte)
        return made

    @overloads_method(ViewType, name)
    def _method(text: Any) -> Any:
        if text == BYTES:
            return lambda text: ascii_case(text)
        points, results, sizes = _mapping(name)
        ignorable, cased = _sigma_context() if sigma else (points, points)

        def wide(text: Any) -> Any:
            if ascii_only(text):
                return ascii_case(text)
            made = new_view(text, 3 * size_of(text))  # 2 bytes become 6 at most
            at, to = 0, 0
            while at < size_of(text):
                byte = byte_at(text, at)
                if byte < 128:
                    put_byte(made, to, byte ^ 32 if low <= byte <= high else byte)
                    at += 1
                    to += 1
                    continue
                point, after = point_at(text, at), next_offset(text, at)
                index = np.searchsorted(points, point)
                if index < len(points) and points[index] == point:
                    packed, count = results[index], sizes[index]
                    if sigma and point == _SIGMA and _is_final_sigma(text, at, ignorable, cased):
                        packed = 0x82CF
                    for _ in range(count):
                        put_byte(made, to, packed & 255)
                        packed >>= 8
                        to += 1
                else:
                    put_view(made, to, cut(text, at, after))
                    to += after - at
                at = after
            return cut(made, 0, to)

        return wide


_declare_case("lower", 65, 90, sigma=True)
_declare_case("upper", 97, 122, sigma=False)


def _declare_question(name: str) -> None:
    @overloads_method(ViewType, name)
    def _method(text: Any) -> Any:
        if text != TEXT:
            return None
        borders = _question(name)

        def all_of(text: Any) -> Any:
            at = 0
            while at < size_of(text):
                if not _inside(borders, point_at(text, at)):
                    return False
                at = next_offset(text, at)
            return at > 0

        return all_of


for _name in ("isalpha", "isdigit", "isalnum", "isspace", "isdecimal", "isnumeric"):
    _declare_question(_name)
