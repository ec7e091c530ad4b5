"""Lists of anything iterable, CPython's sort order, and the list methods of split words.

`sorted()` here is stable and compares as CPython does. With a NaN among its keys, CPython's result depends on its
algorithm, so such a tuple is rejected. The module syntax.py inserts these functions into the user's code.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005, SIM113 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import overloads, overloads_method, primitive, stand_in, truth
from rayelastic.compile.lowering.base.refusal import refuse_if
from rayelastic.compile.lowering.base.tables import TableType, keys_of
from rayelastic.compile.lowering.base.views import ViewType
from rayelastic.compile.lowering.text.split import SplitType, step


@stand_in
def remove(items: Any, key: Any) -> Any:
    """Delete items[key]."""
    if not isinstance(items, types.DictType) and not (isinstance(items, types.List) and isinstance(key, types.Integer)):
        return None

    def removed(items: Any, key: Any) -> None:
        items.pop(key)

    return removed


@stand_in
def no_items() -> Any:
    """Raise the exception of min and max of nothing."""

    def fail() -> Any:
        raise ValueError("iterable argument is empty")

    return fail


def _can_be_iterated(kind: Any) -> bool:
    return isinstance(kind, types.IterableType | types.UniTuple)


@stand_in
def listed(items: Any) -> Any:
    """Return list(items)."""
    if not _can_be_iterated(items):
        return None
    return lambda items: [item for item in items]  # noqa: C416  Numba's list() takes less


@stand_in
def words(items: Any) -> Any:
    """Return a list of what split() returns, if it is going to be changed; anything else unchanged."""
    if isinstance(items, SplitType):
        return lambda items: [item for item in items]  # noqa: C416
    return lambda items: items


@stand_in
def unordered(items: Any) -> Any:
    """Return the items where their order makes no difference, also of a set."""
    if isinstance(items, types.Set):
        return lambda items: [item for item in items]  # noqa: C416
    if isinstance(items, TableType):
        keys = keys_of(items)
        return lambda items: keys
    return lambda items: items


@stand_in
def backwards(items: Any) -> Any:
    """Return list(reversed(items))."""
    known = types.List | SplitType | types.UniTuple | ViewType | types.RangeType | types.DictType
    if not isinstance(items, known):
        return None

    def turned(items: Any) -> Any:
        sequence = listed(items)
        sequence.reverse()
        return sequence

    return turned


# --- order ----------------------------------------------------------------------------------------------------------


def _nan_in(builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Float):
        return builder.fcmp_unordered("uno", value, value)
    has_nan = ir.IntType(1)(0)
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        for at, part in enumerate(parts):
            has_nan = builder.or_(has_nan, _nan_in(builder, part, builder.extract_value(value, at)))
    return has_nan


@primitive
def _has_nan(typingctx: Any, key: Any) -> Any:
    """Return whether a key is NaN, or a tuple with one."""
    return types.boolean(key), lambda context, builder, sig, args: _nan_in(builder, sig.args[0], args[0])


@register_jitable
def _order(keys: Any, reverse: Any) -> Any:
    """Return indices of the keys in their order, equal ones in the original order: a merge sort from pairs upward."""
    count = len(keys)
    order = [at for at in range(count)]  # noqa: C416
    spare = [at for at in range(count)]  # noqa: C416
    for key in keys:
        refuse_if(_has_nan(key) and count > 1)
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            left, right = begin, middle
            for at in range(begin, end):
                if left == middle:
                    take = True
                elif right == end:
                    take = False
                elif reverse:
                    take = keys[order[left]] < keys[order[right]]
                else:
                    take = keys[order[right]] < keys[order[left]]
                if take:
                    spare[at] = order[right]
                    right += 1
                else:
                    spare[at] = order[left]
                    left += 1
        order, spare = spare, order
        width *= 2
    return order


@stand_in
def arranged(items: Any, keys: Any, reverse: Any) -> Any:
    """Return the items of a list in the order of their keys."""

    def made(items: Any, keys: Any, reverse: Any) -> Any:
        return [items[at] for at in _order(keys, bool(reverse))]

    return made


@stand_in
def in_order(iterable: Any, key: Any = None, reverse: Any = False) -> Any:
    """Return sorted(iterable)."""
    if not _can_be_iterated(iterable) or not (key is None or isinstance(key, types.Omitted | types.NoneType)):
        return None

    def made(iterable: Any, key: Any = None, reverse: Any = False) -> Any:
        items = listed(iterable)
        return arranged(items, items, reverse)

    return made


# --- the result of split(), as a list -------------------------------------------------------------------------------


@register_jitable
def _is_empty(split: Any) -> bool:
    start, _, _ = step(split, 0, 1)
    return start < 0


truth(SplitType, lambda value: not _is_empty(value), lambda value: _is_empty(value))


@overloads_method(SplitType, "count")
def _count(split: Any, value: Any) -> Any:
    if value != split.view:
        return None

    def count(split: Any, value: Any) -> Any:
        matching = 0
        for part in split:
            if part == value:
                matching += 1
        return matching

    return count


@overloads_method(SplitType, "index")
def _index(split: Any, value: Any) -> Any:
    if value != split.view:
        return None

    def index(split: Any, value: Any) -> Any:
        at = 0
        for part in split:
            if part == value:
                return at
            at += 1
        raise ValueError("is not in list")

    return index


@overloads_method(SplitType, "copy")
def _copy(split: Any) -> Any:
    return lambda split: listed(split)


@overloads(operator.getitem)
def _slice(split: Any, index: Any) -> Any:
    if isinstance(split, SplitType) and isinstance(index, types.SliceType):
        return lambda split, index: listed(split)[index]
    return None


def _are_lists(a: Any, b: Any) -> bool:
    """Return whether both are lists, at least one of which isn't Numba's."""
    both = (a, b)
    return any(isinstance(kind, SplitType) for kind in both) and all(
        isinstance(kind, SplitType | types.List) for kind in both
    )


@overloads(operator.eq)
def _eq(a: Any, b: Any) -> Any:
    return (lambda a, b: listed(a) == listed(b)) if _are_lists(a, b) else None


@overloads(operator.ne)
def _ne(a: Any, b: Any) -> Any:
    return (lambda a, b: listed(a) != listed(b)) if _are_lists(a, b) else None


@overloads(operator.add)
def _add(a: Any, b: Any) -> Any:
    return (lambda a, b: listed(a) + listed(b)) if _are_lists(a, b) else None
