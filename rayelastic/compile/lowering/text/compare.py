"""==, <, hash and truth of str and bytes. UTF-8 sorts like its code points, so bytes are compared."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.core.imputils import lower_cast
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import overloads, overloads_method, truth
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


def _declare(function: Any, holds: Any) -> None:
    @overloads(function)
    def _compared(a: Any, b: Any) -> Any:
        return holds if isinstance(a, ViewType) and a == b else None


_declare(operator.eq, lambda a, b: equal(a, b))
_declare(operator.ne, lambda a, b: not equal(a, b))
_declare(operator.lt, lambda a, b: order(a, b) < 0)
_declare(operator.le, lambda a, b: order(a, b) <= 0)
_declare(operator.gt, lambda a, b: order(a, b) > 0)
_declare(operator.ge, lambda a, b: order(a, b) >= 0)


def _declare_extreme(function: Any, is_better: Any) -> None:
    better = register_jitable(is_better)

    @overloads(function)
    def _extreme(*values: Any) -> Any:
        are_texts = len(values) > 1 and isinstance(values[0], ViewType) and all(value == values[0] for value in values)

        def extreme(*values: Any) -> Any:
            best = values[0]
            for value in values:
                if better(order(value, best)):
                    best = value
            return best

        return extreme if are_texts else None


_declare_extreme(max, lambda sign: sign > 0)
_declare_extreme(min, lambda sign: sign < 0)
truth(ViewType, lambda value: size_of(value) > 0, lambda value: size_of(value) == 0)


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
