"""lower, upper and the questions isdigit, isalpha, ... of text, exact for all of Unicode.

ASCII by arithmetic; the rest from tables made of the running Python's own str, so that both agree. Made when first
needed: about a tenth of a second, and the tables that are used become part of the compiled code.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from rayelastic.compile.lowering.code_points import next_offset, point_at
from rayelastic.compile.lowering.declare import overloads_method
from rayelastic.compile.lowering.views import BYTES, TEXT, ViewType, byte_at, cut, new_view, put_byte, put_view, size_of

Table = np.ndarray[Any, Any]

_SIGMA = 0x3A3
_BLOCK = 256  # characters that are looked at together: most blocks have nothing in them
# Where cased and case-ignorable characters are (Unicode 16 and earlier): not among ideographs and private use.
_SCRIPTS = (range(0x3100), range(0xA000, 0xD800), range(0xF900, 0x20000), range(0xE0000, 0xE0200))


def _changed(method: Callable[[str], str]) -> list[tuple[int, bytes]]:
    """Code points beyond ASCII that a method changes, with the UTF-8 of what it makes of them."""
    found = []
    for start in range(128, 0x110000, _BLOCK // 2):
        characters = [chr(c) for c in range(start, start + _BLOCK // 2) if not 0xD800 <= c < 0xE000]
        block = "".join(characters)
        if method(block) != block:
            found += [(ord(c), method(c).encode()) for c in characters if method(c) != c]
    return found


@functools.cache
def _mapping(name: str) -> tuple[Table, Table, Table]:
    """Code points that `str.lower` or `str.upper` changes; their results' UTF-8 bytes as a number; how many bytes."""
    changed = _changed(getattr(str, name))
    return (
        _table([c for c, _ in changed]),
        _table([int.from_bytes(raw, "little") for _, raw in changed]),
        _table([len(raw) for _, raw in changed]),
    )


def _table(values: list[int]) -> Table:
    table = np.array(values, dtype=np.int64)
    table.flags.writeable = False  # Numba takes it as a constant
    return table


def _borders(test: Callable[[str], bool], where: Iterable[range] = (range(0xD800), range(0xE000, 0x110000))) -> Table:
    """Sorted borders: a code point has the property if an odd number of borders lies at or below it."""
    borders, inside = [], False
    for part in where:
        for c in part:
            if test(chr(c)) != inside:
                borders.append(c)
                inside = not inside
        if inside:
            borders.append(part.stop)
            inside = False
    return _table([*borders, 0x110000])


@functools.cache
def _question(name: str) -> Table:
    return _borders(getattr(str, name))


@functools.cache
def _sigma_context() -> tuple[Table, Table]:
    """Unicode's Final_Sigma, asked of Python: characters that are skipped, and cased ones that aren't."""
    small, final = "\u03c3", "\u03c2"
    cased = _borders(lambda c: (c + "\u03a3").lower()[-1] == final, _SCRIPTS)
    ignorable = _borders(
        lambda c: ("A" + c + "\u03a3").lower()[-1] == final and (c + "\u03a3").lower()[-1] == small, _SCRIPTS
    )
    return ignorable, cased


@register_jitable
def _position(table: Any, wanted: int) -> int:
    """How many entries of a sorted table are at most `wanted`."""
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) >> 1
        if table[middle] <= wanted:
            low = middle + 1
        else:
            high = middle
    return low


@register_jitable
def _inside(borders: Any, point: int) -> bool:
    return (_position(borders, point) & 1) == 1


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
                index = _position(points, point) - 1
                if index >= 0 and points[index] == point:
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
