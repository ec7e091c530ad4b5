"""==, <, hash and truth of str and bytes. UTF-8 sorts like its code points, so bytes are compared."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.core.imputils import lower_cast
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import overloads, overloads_method
from rayelastic.compile.lowering.base.views import ViewType, byte_at, compare_bytes, size_of, word_at


@register_jitable
def equal(a: Any, b: Any) -> bool:
    """Return whether two views of one type have the same bytes."""
    return size_of(a) == size_of(b) and compare_bytes(a, b, size_of(a)) == 0


@register_jitable
def order(a: Any, b: Any) -> int:
    """Return a negative number, zero or a positive one if a sorts before, with or after b."""
    result = compare_bytes(a, b, min(size_of(a), size_of(b)))
    return result if result != 0 else size_of(a) - size_of(b)


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, ViewType) and a == b


@overloads(operator.eq)
def _eq(a: Any, b: Any) -> Any:
    if _same(a, b):
        return lambda a, b: equal(a, b)
    return None


@overloads(operator.ne)
def _ne(a: Any, b: Any) -> Any:
    if _same(a, b):
        return lambda a, b: not equal(a, b)
    return None


@overloads(operator.lt)
def _lt(a: Any, b: Any) -> Any:
    return (lambda a, b: order(a, b) < 0) if _same(a, b) else None


@overloads(operator.le)
def _le(a: Any, b: Any) -> Any:
    return (lambda a, b: order(a, b) <= 0) if _same(a, b) else None


@overloads(operator.gt)
def _gt(a: Any, b: Any) -> Any:
    return (lambda a, b: order(a, b) > 0) if _same(a, b) else None


@overloads(operator.ge)
def _ge(a: Any, b: Any) -> Any:
    return (lambda a, b: order(a, b) >= 0) if _same(a, b) else None


def _are_texts(values: Any) -> bool:
    return len(values) > 1 and isinstance(values[0], ViewType) and all(value == values[0] for value in values)


@overloads(max)
def _max(*values: Any) -> Any:
    if not _are_texts(values):
        return None

    def greatest(*values: Any) -> Any:
        best = values[0]
        for value in values:
            if order(value, best) > 0:
                best = value
        return best

    return greatest


@overloads(min)
def _min(*values: Any) -> Any:
    if not _are_texts(values):
        return None

    def least(*values: Any) -> Any:
        best = values[0]
        for value in values:
            if order(value, best) < 0:
                best = value
        return best

    return least


@overloads(bool)
def _bool(view: Any) -> Any:
    return (lambda view: size_of(view) > 0) if isinstance(view, ViewType) else None


@overloads(operator.not_)
def _not(view: Any) -> Any:
    return (lambda view: size_of(view) == 0) if isinstance(view, ViewType) else None


@lower_cast(ViewType, types.boolean)
def _truth(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    size = builder.extract_value(value, 1)
    return builder.icmp_unsigned("!=", size, size.type(0))


@register_jitable
def _hash(view: Any) -> int:
    """Compute FNV-1a by words; equal views have equal hashes. CPython's value differs from run to run anyway."""
    size = size_of(view)
    state = types.uint64(0xCBF29CE484222325) ^ types.uint64(size)
    at = 0
    while size - at >= 8:
        state = (state ^ word_at(view, at)) * types.uint64(0x100000001B3)
        state ^= state >> types.uint64(29)
        at += 8
    while at < size:
        state = (state ^ types.uint64(byte_at(view, at))) * types.uint64(0x100000001B3)
        at += 1
    state ^= state >> types.uint64(32)
    return types.int64(state >> types.uint64(1))


@overloads_method(ViewType, "__hash__")
def _hash_method(view: Any) -> Any:
    return lambda view: _hash(view)
