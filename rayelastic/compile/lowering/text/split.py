"""split() of str and bytes: lazy, word after word, without a list.

`for w in t.line.split()` scans the text once; `parts[i]`, `len(parts)`, `a, b = parts` scan it as far as they need.
ASCII is scanned eight bytes at a time.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import RefType, iternext_impl, lower_builtin
from numba.core.types.common import SimpleIteratorType
from numba.core.typing.templates import signature
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import (
    MUTABLE,
    membership,
    overloads,
    overloads_method,
    primitive,
    stand_in,
    structure,
)
from rayelastic.compile.lowering.base.views import ViewType, byte_at, cut, search, size_of, trailing_zeros, word_at
from rayelastic.compile.lowering.base.whitespace import space_width
from rayelastic.compile.lowering.text.parts import left
from rayelastic.compile.reasons import packed


class SplitType(types.IterableType):
    """The result of split(): the text, the separator if there is one, the most splits."""

    def __init__(self, view: ViewType, *, by_space: bool) -> None:
        self.view, self.by_space = view, by_space
        super().__init__(name=f"{view}.split({'' if by_space else 'separator'})")

    @property
    def dtype(self) -> ViewType:
        """The type of an item."""
        return self.view

    @property
    def iterator_type(self) -> SplitIterator:
        """The type of iter()."""
        return SplitIterator(self)


class SplitIterator(SimpleIteratorType):
    """A position in a split."""

    def __init__(self, split: SplitType) -> None:
        self.split = split
        super().__init__(name=f"iter({split})", yield_type=split.view)


# Text, separator, number of splits.
structure(SplitType, lambda kind: [("text", kind.view), ("separator", kind.view), ("cuts", types.int64)])

# The split, the offset of the next item (-1: no more), and the splits left.
structure(SplitIterator, lambda kind: [("split", kind.split), ("at", MUTABLE), ("cuts", MUTABLE)])


@primitive
def _split_by_space(typingctx: Any, text: Any, cuts: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        split = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        split.text, split.separator, split.cuts = args[0], args[0], args[1]
        return split._getvalue()

    return SplitType(text, by_space=True)(text, types.int64), codegen


@primitive
def _split_by(typingctx: Any, text: Any, separator: Any, cuts: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        split = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        split.text, split.separator, split.cuts = args
        return split._getvalue()

    return SplitType(text, by_space=False)(text, separator, types.int64), codegen


@overloads_method(ViewType, "split")
def _split(text: Any, sep: Any = None, maxsplit: Any = -1) -> Any:
    if isinstance(sep, types.Omitted | types.NoneType) or sep is None:
        return lambda text, sep=None, maxsplit=-1: _split_by_space(text, maxsplit)
    if sep != text:
        raise TypingError(packed(what=f"split() of {text} by {sep}"))

    def split(text: Any, sep: Any = None, maxsplit: Any = -1) -> Any:
        if size_of(sep) == 0:
            raise ValueError("empty separator")
        return _split_by(text, sep, maxsplit)

    return split


# --- scanning: each step returns (start, stop, where to continue or -1); start -1: no more items --------------------


@register_jitable
def _word_end(text: Any, at: int) -> int:
    """Return the offset of the first white space from `at`, or the size."""
    size = size_of(text)
    while at < size:
        # Candidates: bytes up to 32 and from 128. The lowest flagged one is correct, because a borrow only runs upward.
        if size - at >= 8:
            word = word_at(text, at)
            flags = ((word - types.uint64(0x2121212121212121)) | word) & types.uint64(0x8080808080808080)
            if flags == types.uint64(0):
                at += 8
                continue
            at += trailing_zeros(flags) >> 3
        byte = byte_at(text, at)
        if (byte <= 32 or byte >= 128) and space_width(text, at) > 0:
            return at
        at += 1
    return size


@register_jitable
def _space_step(text: Any, at: int, cuts: int) -> tuple[int, int, int]:
    if at < 0:  # an exhausted iterator
        return -1, -1, -1
    start = left(text, at)
    size = size_of(text)
    if start >= size:
        return -1, -1, -1
    if cuts == 0:
        return start, size, size
    stop = _word_end(text, start)
    return start, stop, stop


@register_jitable
def _separator_step(text: Any, separator: Any, at: int, cuts: int) -> tuple[int, int, int]:
    if at < 0:
        return -1, -1, -1
    size = size_of(text)
    separator_at = -1
    if cuts != 0:
        separator_at = search(text, separator, at, size)
    if separator_at < 0:
        return at, size, -1
    return at, separator_at, separator_at + size_of(separator)


@primitive
def _text(typingctx: Any, split: Any) -> Any:
    return split.view(split), lambda context, builder, sig, args: builder.extract_value(args[0], 0)


@primitive
def _separator(typingctx: Any, split: Any) -> Any:
    return split.view(split), lambda context, builder, sig, args: builder.extract_value(args[0], 1)


@primitive
def _cuts(typingctx: Any, split: Any) -> Any:
    return types.int64(split), lambda context, builder, sig, args: builder.extract_value(args[0], 2)


@stand_in
def step(split: Any, at: Any, cuts: Any) -> Any:
    """Return the item at an offset: start, stop, where to continue."""
    if not isinstance(split, SplitType):
        return None
    if split.by_space:
        return lambda split, at, cuts: _space_step(_text(split), at, cuts)
    return lambda split, at, cuts: _separator_step(_text(split), _separator(split), at, cuts)


@lower_builtin("getiter", SplitType)
def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    iterator = context.make_helper(builder, sig.return_type)
    iterator.split = args[0]
    iterator.at = cgutils.alloca_once_value(builder, context.get_constant(types.int64, 0))
    iterator.cuts = cgutils.alloca_once_value(builder, builder.extract_value(args[0], 2))
    return iterator._getvalue()


@lower_builtin("iternext", SplitIterator)
@iternext_impl(RefType.UNTRACKED)
def _iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    split_type = sig.args[0].split
    iterator = context.make_helper(builder, sig.args[0], value=args[0])
    triple = types.UniTuple(types.int64, 3)
    at, cuts = builder.load(iterator.at), builder.load(iterator.cuts)

    def following(split: Any, at: Any, cuts: Any) -> Any:
        return step(split, at, cuts)

    found = context.compile_internal(
        builder, following, signature(triple, split_type, types.int64, types.int64), [iterator.split, at, cuts]
    )
    start, stop, after = (builder.extract_value(found, index) for index in range(3))
    result.set_valid(builder.icmp_signed(">=", start, start.type(0)))
    builder.store(after, iterator.at)
    builder.store(builder.sub(cuts, cuts.type(1)), iterator.cuts)
    view = cgutils.create_struct_proxy(split_type.view)(
        context, builder, value=builder.extract_value(iterator.split, 0)
    )
    view.data = builder.gep(view.data, [start])
    view.size = builder.sub(stop, start)
    result.yield_(view._getvalue())


# --- other operations of a list of parts ----------------------------------------------------------------------------


@overloads(len)
def _len(split: Any) -> Any:
    if not isinstance(split, SplitType):
        return None

    def count(split: Any) -> Any:
        items, at, cuts = 0, 0, _cuts(split)
        start, _, at = step(split, at, cuts)
        while start >= 0:
            items += 1
            cuts -= 1
            start, _, at = step(split, at, cuts)
        return items

    return count


@overloads(operator.getitem)
def _getitem(split: Any, index: Any) -> Any:
    if not isinstance(split, SplitType) or not isinstance(index, types.Integer):
        return None

    def item(split: Any, index: Any) -> Any:
        if index < 0:
            index += len(split)
        if index < 0:
            raise IndexError("list index out of range")
        at, cuts = 0, _cuts(split)
        start, stop, at = step(split, at, cuts)
        while start >= 0 and index > 0:
            index -= 1
            cuts -= 1
            start, stop, at = step(split, at, cuts)
        if start < 0:
            raise IndexError("list index out of range")
        return cut(_text(split), start, stop)

    return item


membership(lambda items, wanted: isinstance(items, SplitType) and wanted == items.view)
