"""len, indexing, slices, iteration, strip, partition and concatenation of str and bytes."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, SIM113

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import RefType, iternext_impl, lower_builtin
from numba.core.typing.templates import signature
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.code_points import count_points, next_offset, offset_of, point_at
from rayelastic.compile.lowering.base.declare import overloads, overloads_method, primitive
from rayelastic.compile.lowering.base.services import service
from rayelastic.compile.lowering.base.views import (
    BYTES,
    TEXT,
    ViewIterator,
    ViewType,
    byte_at,
    cut,
    new_view,
    put_view,
    search,
    size_of,
)
from rayelastic.compile.lowering.base.whitespace import space_width


@overloads(len)
def _len(text: Any) -> Any:
    if isinstance(text, ViewType):
        return lambda text: count_points(text, 0, size_of(text))
    return None


@overloads(operator.getitem)
def _getitem(text: Any, index: Any) -> Any:
    if not isinstance(text, ViewType):
        return None
    if isinstance(index, types.Integer):
        return _byte_item if text == BYTES else _text_item
    if isinstance(index, types.SliceType) and not index.has_step:
        return _slice
    return None


def _text_item(text: Any, index: Any) -> Any:
    at = offset_of(text, index)
    size = size_of(text)
    if at >= size or (index < 0 and at == 0 and count_points(text, 0, size) + index < 0):
        raise IndexError("string index out of range")
    return cut(text, at, next_offset(text, at))


def _byte_item(text: Any, index: Any) -> Any:
    size = size_of(text)
    at = index + size if index < 0 else index
    if at < 0 or at >= size:
        raise IndexError("index out of range")
    return byte_at(text, at)


def _slice(text: Any, index: Any) -> Any:
    start = offset_of(text, index.start)
    stop = offset_of(text, index.stop)
    return cut(text, start, max(start, stop))


for _implementation in (_text_item, _byte_item, _slice):
    _implementation.__annotations__ = {}


# --- characters -----------------------------------------------------------------------------------------------------


@overloads(ord)
def _ord(character: Any) -> Any:
    if character == BYTES:

        def byte(character: Any) -> Any:
            if size_of(character) != 1:
                raise TypeError("ord() expected a character")
            return byte_at(character, 0)

        return byte
    if character != TEXT:
        return None

    def code_point(character: Any) -> Any:
        if size_of(character) == 0 or next_offset(character, 0) != size_of(character):
            raise TypeError("ord() expected a character")
        return point_at(character, 0)

    return code_point


@lower_builtin("getiter", ViewType)
def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    iterator = context.make_helper(builder, sig.return_type)
    iterator.view = args[0]
    iterator.at = cgutils.alloca_once_value(builder, context.get_constant(types.int64, 0))
    return iterator._getvalue()


@lower_builtin("iternext", ViewIterator)
@iternext_impl(RefType.UNTRACKED)
def _iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    view = sig.args[0].view
    iterator = context.make_helper(builder, sig.args[0], value=args[0])
    at = builder.load(iterator.at)
    more = builder.icmp_signed("<", at, builder.extract_value(iterator.view, 1))
    result.set_valid(more)
    with builder.if_then(more):
        if view == BYTES:
            item = context.compile_internal(
                builder, _following_byte, signature(types.int64, view, types.int64), [iterator.view, at]
            )
            builder.store(builder.add(at, at.type(1)), iterator.at)
        else:
            item = context.compile_internal(
                builder, _following_text, signature(view, view, types.int64), [iterator.view, at]
            )
            builder.store(builder.add(at, builder.extract_value(item, 1)), iterator.at)
        result.yield_(item)


def _following_text(text: Any, at: Any) -> Any:
    return cut(text, at, next_offset(text, at))


def _following_byte(text: Any, at: Any) -> Any:
    return byte_at(text, at)


# --- strip ----------------------------------------------------------------------------------------------------------


@register_jitable
def left(text: Any, at: int = 0) -> int:
    """Return the offset of the first character from `at` that isn't white space."""
    size = size_of(text)
    while at < size:
        width = space_width(text, at)
        if width == 0:
            break
        at += width
    return at


@register_jitable
def right(text: Any, start: int) -> int:
    """Return the offset after the last character that isn't white space, from `start`."""
    stop = size_of(text)
    while stop > start:
        at = offset_of(cut(text, 0, stop), -1)
        if space_width(text, at) == 0:
            break
        stop = at
    return stop


@register_jitable
def _left_of(text: Any, characters: Any) -> int:
    at, size = 0, size_of(text)
    while at < size:
        stop = at + offset_of(cut(text, at, size), 1)
        if search(characters, cut(text, at, stop), 0, size_of(characters)) < 0:
            break
        at = stop
    return at


@register_jitable
def _right_of(text: Any, characters: Any, start: int) -> int:
    stop = size_of(text)
    while stop > start:
        at = offset_of(cut(text, 0, stop), -1)
        if search(characters, cut(text, at, stop), 0, size_of(characters)) < 0:
            break
        stop = at
    return stop


def _declare_strip(name: str, *, from_left: bool, from_right: bool) -> None:
    @overloads_method(ViewType, name)
    def _method(text: Any, chars: Any = None) -> Any:
        if chars is None or isinstance(chars, types.Omitted | types.NoneType):

            def white(text: Any, chars: Any = None) -> Any:
                start = left(text) if from_left else 0
                return cut(text, start, right(text, start) if from_right else size_of(text))

            return white
        if chars != text:
            return None

        def of(text: Any, chars: Any = None) -> Any:
            start = _left_of(text, chars) if from_left else 0
            return cut(text, start, _right_of(text, chars, start) if from_right else size_of(text))

        return of


_declare_strip("strip", from_left=True, from_right=True)
_declare_strip("lstrip", from_left=True, from_right=False)
_declare_strip("rstrip", from_left=False, from_right=True)


@overloads_method(ViewType, "partition")
def _partition(text: Any, sep: Any) -> Any:
    if text != sep:
        return None

    def partition(text: Any, sep: Any) -> Any:
        size = size_of(text)
        if size_of(sep) == 0:
            raise ValueError("empty separator")
        at = search(text, sep, 0, size)
        if at < 0:
            return text, cut(text, size, size), cut(text, size, size)
        return cut(text, 0, at), sep, cut(text, at + size_of(sep), size)

    return partition


@primitive
def _last(typingctx: Any, text: Any, part: Any) -> Any:
    """Return the offset of the last place of a part, or -1."""
    return service("rel_text_last", types.int64(text, part))


@overloads_method(ViewType, "rpartition")
def _rpartition(text: Any, sep: Any) -> Any:
    if text != sep:
        return None

    def rpartition(text: Any, sep: Any) -> Any:
        if size_of(sep) == 0:
            raise ValueError("empty separator")
        at = _last(text, sep)
        if at < 0:
            return cut(text, 0, 0), cut(text, 0, 0), text
        return cut(text, 0, at), sep, cut(text, at + size_of(sep), size_of(text))

    return rpartition


# --- concatenation --------------------------------------------------------------------------------------------------


@overloads(operator.iadd)
@overloads(operator.add)
def _add(a: Any, b: Any) -> Any:
    if not isinstance(a, ViewType) or a != b:
        return None

    def joined(a: Any, b: Any) -> Any:
        if size_of(a) == 0:
            return b
        if size_of(b) == 0:
            return a
        view = new_view(a, size_of(a) + size_of(b))
        put_view(view, 0, a)
        put_view(view, size_of(a), b)
        return view

    return joined


@overloads(operator.mul)
def _mul(a: Any, b: Any) -> Any:
    if not isinstance(a, ViewType) or not isinstance(b, types.Integer):
        return None

    def repeated(a: Any, b: Any) -> Any:
        times = max(b, 0)
        view = new_view(a, size_of(a) * times)
        for index in range(times):
            put_view(view, index * size_of(a), a)
        return view

    return repeated


def _joined_once(text: Any, parts: Any) -> Any:
    """Join parts that can be iterated only once, such as a generator or map()."""
    size, room, count = 0, 64, 0
    view = new_view(text, room)
    for part in parts:
        needed = size + size_of(text) + size_of(part)
        if needed > room:
            room = 2 * needed
            grown = new_view(text, room)
            put_view(grown, 0, cut(view, 0, size))
            view = grown
        if count > 0:
            put_view(view, size, text)
            size += size_of(text)
        put_view(view, size, part)
        size += size_of(part)
        count += 1
    return cut(view, 0, size)


_joined_once.__annotations__ = {}


@overloads_method(ViewType, "join")
def _join(text: Any, parts: Any) -> Any:
    if not isinstance(parts, types.IterableType) or parts.iterator_type.yield_type != text:
        return None
    if isinstance(parts, types.IteratorType):
        return _joined_once

    def joined(text: Any, parts: Any) -> Any:
        size, count = 0, 0
        for part in parts:
            size += size_of(part)
            count += 1
        view = new_view(text, size + max(count - 1, 0) * size_of(text))
        at, count = 0, 0
        for part in parts:
            if count > 0:
                put_view(view, at, text)
                at += size_of(text)
            put_view(view, at, part)
            at += size_of(part)
            count += 1
        return view

    return joined
