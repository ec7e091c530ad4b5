"""in, find, rfind, index, count, startswith, endswith, replace, removeprefix, removesuffix of str and bytes.

Found by bytes: UTF-8 of whole characters is found only where a character begins. Offsets become code points at the end.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005, SIM110

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.extending import register_jitable

from rayelastic.compile.lowering.code_points import count_points, offset_of
from rayelastic.compile.lowering.declare import overloads, overloads_method
from rayelastic.compile.lowering.views import (
    BYTES,
    ViewType,
    byte_at,
    compare_bytes,
    cut,
    new_view,
    put_view,
    search,
    size_of,
)


def _both(text: Any, wanted: Any) -> bool:
    return isinstance(text, ViewType) and text == wanted


@overloads(operator.contains)
def _contains(text: Any, wanted: Any) -> Any:
    if _both(text, wanted):
        return lambda text, wanted: search(text, wanted, 0, size_of(text)) >= 0
    if text == BYTES and isinstance(wanted, types.Integer):

        def contains(text: Any, wanted: Any) -> Any:
            if wanted < 0 or wanted > 255:
                raise ValueError("byte must be in range(0, 256)")
            return any_byte(text, wanted)

        return contains
    return None


@register_jitable
def any_byte(text: Any, wanted: int) -> bool:
    """Whether a byte occurs."""
    for at in range(size_of(text)):
        if byte_at(text, at) == wanted:
            return True
    return False


@register_jitable
def _bounds(text: Any, start: int, end: int) -> tuple[int, int]:
    """Offsets of text[start:end]; -1 as start where start lies behind the end of the text."""
    begin = offset_of(text, start)
    if start > 0 and begin == size_of(text) and count_points(text, 0, begin) < start:
        return -1, 0
    return begin, offset_of(text, end)


@register_jitable
def _find(text: Any, wanted: Any, start: int, end: int) -> int:
    begin, stop = _bounds(text, start, end)
    if begin < 0 or stop < begin:
        return -1
    found = search(text, wanted, begin, stop)
    return found if found < 0 else count_points(text, 0, found)


@register_jitable
def _rfind(text: Any, wanted: Any, start: int, end: int) -> int:
    begin, stop = _bounds(text, start, end)
    if begin < 0:
        return -1
    size = size_of(wanted)
    at = stop - size
    while at >= begin:
        if compare_bytes(cut(text, at, at + size), wanted, size) == 0 and _is_boundary(text, at):
            return count_points(text, 0, at)
        at -= 1
    return -1


def _is_boundary(text: Any, at: int) -> bool:
    raise TypeError("only compiled")


@overloads(_is_boundary)
def _is_boundary_of(text: Any, at: Any) -> Any:
    if text == BYTES:
        return lambda text, at: True
    return lambda text, at: at >= size_of(text) or (byte_at(text, at) & 0xC0) != 0x80


@overloads_method(ViewType, "find")
def _find_method(text: Any, sub: Any, start: Any = 0, end: Any = 9223372036854775807) -> Any:
    if _both(text, sub):
        return lambda text, sub, start=0, end=9223372036854775807: _find(text, sub, start, end)
    return None


@overloads_method(ViewType, "rfind")
def _rfind_method(text: Any, sub: Any, start: Any = 0, end: Any = 9223372036854775807) -> Any:
    if _both(text, sub):
        return lambda text, sub, start=0, end=9223372036854775807: _rfind(text, sub, start, end)
    return None


@overloads_method(ViewType, "index")
def _index_method(text: Any, sub: Any, start: Any = 0, end: Any = 9223372036854775807) -> Any:
    if not _both(text, sub):
        return None

    def index(text: Any, sub: Any, start: Any = 0, end: Any = 9223372036854775807) -> Any:
        found = _find(text, sub, start, end)
        if found < 0:
            raise ValueError("substring not found")
        return found

    return index


@overloads_method(ViewType, "count")
def _count_method(text: Any, sub: Any) -> Any:
    if not _both(text, sub):
        return None

    def count(text: Any, sub: Any) -> Any:
        size = size_of(text)
        if size_of(sub) == 0:
            return count_points(text, 0, size) + 1
        times, at = 0, search(text, sub, 0, size)
        while at >= 0:
            times += 1
            at = search(text, sub, at + size_of(sub), size)
        return times

    return count


@register_jitable
def starts(text: Any, prefix: Any) -> bool:
    """Whether the text begins with a view."""
    return size_of(prefix) <= size_of(text) and compare_bytes(text, prefix, size_of(prefix)) == 0


@register_jitable
def ends(text: Any, suffix: Any) -> bool:
    """Whether the text ends with a view."""
    rest = size_of(text) - size_of(suffix)
    return rest >= 0 and compare_bytes(cut(text, rest, size_of(text)), suffix, size_of(suffix)) == 0


def _declare_ends(name: str, test: Any) -> None:
    @overloads_method(ViewType, name)
    def _method(text: Any, wanted: Any) -> Any:
        if _both(text, wanted):
            return lambda text, wanted: test(text, wanted)
        if isinstance(wanted, types.UniTuple) and wanted.dtype == text:

            def any_of(text: Any, wanted: Any) -> Any:
                for one in wanted:
                    if test(text, one):
                        return True
                return False

            return any_of
        return None


_declare_ends("startswith", starts)
_declare_ends("endswith", ends)


@overloads_method(ViewType, "removeprefix")
def _removeprefix(text: Any, prefix: Any) -> Any:
    if _both(text, prefix):
        return lambda text, prefix: cut(text, size_of(prefix), size_of(text)) if starts(text, prefix) else text
    return None


@overloads_method(ViewType, "removesuffix")
def _removesuffix(text: Any, suffix: Any) -> Any:
    if not _both(text, suffix):
        return None

    def removed(text: Any, suffix: Any) -> Any:
        return cut(text, 0, size_of(text) - size_of(suffix)) if size_of(suffix) > 0 and ends(text, suffix) else text

    return removed


@overloads_method(ViewType, "replace")
def _replace(text: Any, old: Any, new: Any) -> Any:
    if not (_both(text, old) and _both(text, new)):
        return None

    def replaced(text: Any, old: Any, new: Any) -> Any:
        if size_of(old) == 0:
            return _between_all(text, new)
        size = size_of(text)
        times, at = 0, search(text, old, 0, size)
        while at >= 0:
            times += 1
            at = search(text, old, at + size_of(old), size)
        if times == 0:
            return text
        made = new_view(text, size + times * (size_of(new) - size_of(old)))
        to, done = 0, 0
        at = search(text, old, 0, size)
        while at >= 0:
            put_view(made, to, cut(text, done, at))
            to += at - done
            put_view(made, to, new)
            to += size_of(new)
            done = at + size_of(old)
            at = search(text, old, done, size)
        put_view(made, to, cut(text, done, size))
        return made

    return replaced


@register_jitable
def _between_all(text: Any, new: Any) -> Any:
    """text.replace('', new)."""
    size = size_of(text)
    made = new_view(text, size + (count_points(text, 0, size) + 1) * size_of(new))
    to = 0
    for at in range(size):
        if _is_boundary(text, at):
            put_view(made, to, new)
            to += size_of(new)
        put_view(made, to, cut(text, at, at + 1))
        to += 1
    put_view(made, to, new)
    return made
