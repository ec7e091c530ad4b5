"""Lookup tables: dicts, lists and sets outside the function, copied at declaration.

A dict of constants becomes an open-addressed hash table in constant arrays: one or two probes per lookup, no object.
Its type carries its content. Compiled are `d[k]`, `d.get(k)`, `d.get(k, other)`, `k in d` and `len(d)`; of a small dict
also `d.items()`, `d.keys()` and `d.values()`. A list becomes a tuple, a set the keys of a table. Bytes and tuples are
searched one by one.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import constants, overloads, overloads_method, stand_in
from rayelastic.compile.lowering.base.optional import present
from rayelastic.compile.lowering.base.views import BYTES, TEXT, BytesLiteral, TextLiteral
from rayelastic.compile.reasons import packed

_EMPTY = -1
_MOST_NUMBERS, _MOST_TEXTS, _MOST_ROWS = 100_000, 500, 64  # the table becomes part of the code


class Table:
    """A user's dict or set as a constant. `values` is empty for a set."""

    def __init__(self, name: str, keys: tuple[Any, ...], values: tuple[Any, ...]) -> None:
        self.name, self.keys, self.values = name, keys, values


class TableType(types.Type):
    """Carries the content."""

    def __init__(self, table: Table) -> None:
        self.table = table
        super().__init__(name=f"dict {table.name}#{id(table)}")


constants(Table, TableType, TableType)


def table_of(name: str, value: dict[Any, Any] | set[Any]) -> Table | None:
    """Return the table of a dict or set of constants of one kind; None for any other."""
    keys = tuple(value)
    values = tuple(value.values()) if isinstance(value, dict) else ()
    if not keys or not _is_key(keys) or (values and _kind(values) is None and not _is_small(values)):
        return None
    kinds = (_kind(keys), _kind(values) if values else int)
    most = _MOST_ROWS if None in kinds else _MOST_TEXTS if str in kinds else _MOST_NUMBERS
    return Table(name, keys, values) if len(keys) <= most else None


def _is_key(items: tuple[Any, ...]) -> bool:
    if _kind(items) is not None:
        return _kind(items) is not float
    return _is_small(items) and not (type(items[0]) is tuple and float in map(type, items[0]))


def _is_small(items: tuple[Any, ...]) -> bool:
    """Return whether they are bytes, or tuples with constants of the same types."""
    if all(type(item) is bytes for item in items):
        return True
    return is_rows(items)


def is_rows(items: Sequence[Any]) -> bool:
    """Return whether items are tuples of constants, of the same types in the same order."""
    shapes = {tuple(map(type, item)) if type(item) is tuple else None for item in items}
    shape = shapes.pop() if len(shapes) == 1 else None
    return all(kind in (int, float, bool, str, bytes) for kind in shape or (None,)) and _fits(items)


def _fits(rows: Sequence[Any]) -> bool:
    return all(-(2**63) <= item < 2**63 for row in rows for item in row if type(item) is int)


def _kind(items: tuple[Any, ...]) -> type | None:
    kinds = {type(item) for item in items}
    if kinds == {int} and all(-(2**63) <= item < 2**63 for item in items):
        return int
    if kinds <= {int, float} and float in kinds and all(abs(item) <= 2**53 for item in items if type(item) is int):
        return float
    return next(iter(kinds)) if len(kinds) == 1 and kinds <= {str, bool} else None


def _hashed(key: Any) -> int:
    """Return what `_hash_of` returns for a key, in Python."""
    if isinstance(key, str):
        raw = key.encode()
        state = (0xCBF29CE484222325 ^ len(raw)) & _ALL
        for at in range(0, len(raw) - len(raw) % 8, 8):
            state = ((state ^ int.from_bytes(raw[at : at + 8], "little")) * 0x100000001B3) & _ALL
            state ^= state >> 29
        for byte in raw[len(raw) - len(raw) % 8 :]:
            state = ((state ^ byte) * 0x100000001B3) & _ALL
        state ^= state >> 32
        return state >> 1
    state = (int(key) * 0x9E3779B97F4A7C15) & _ALL
    return (state ^ state >> 32) >> 1


_ALL = 2**64 - 1


@stand_in
def _hash_of(key: Any) -> Any:
    if key == TEXT:
        return lambda key: key.__hash__()

    def mixed(key: Any) -> Any:
        state = types.uint64(key) * types.uint64(0x9E3779B97F4A7C15)
        return types.int64((state ^ state >> types.uint64(32)) >> types.uint64(1))

    return mixed


def _slots(table: Table) -> Any:
    size = 1 << max(1, (2 * len(table.keys) - 1).bit_length())
    slots = np.full(size, _EMPTY, dtype=np.int64)
    for index, key in enumerate(table.keys):
        at = _hashed(key) & (size - 1)
        while slots[at] != _EMPTY:
            at = (at + 1) & (size - 1)
        slots[at] = index
    slots.flags.writeable = False
    return slots


def view_of(item: Any) -> Any:
    """Return a constant as compiled code sees it: text and bytes as views, in tuples, too."""
    if type(item) is tuple:
        return tuple(view_of(part) for part in item)
    return TextLiteral(item) if type(item) is str else BytesLiteral(item) if type(item) is bytes else item


def _column(items: tuple[Any, ...]) -> Any:
    """Return items as an array, or as a tuple of texts, bytes or tuples, for indexing."""
    kind = _kind(items)
    if kind is str or kind is None:
        return tuple(view_of(item) for item in items)
    column: Any = np.array(items, dtype={int: np.int64, float: np.float64, bool: np.bool_}[kind or int])
    column.flags.writeable = False
    return column


def keys_of(kind: TableType) -> Any:
    """Return the keys in their order, for iteration."""
    return _column(kind.table.keys)


def _finder(table: Table) -> Any:
    """Return the compiled look-up of an index, -1 if the key isn't there."""
    if _kind(table.keys) is None:
        return _finder_one_by_one(table)
    slots, keys = _slots(table), _column(table.keys)
    mask = len(slots) - 1

    def find(key: Any) -> Any:
        at = _hash_of(key) & mask
        while slots[at] >= 0:
            if keys[slots[at]] == key:
                return slots[at]
            at = (at + 1) & mask
        return -1

    return register_jitable(find)


def _finder_one_by_one(table: Table) -> Any:
    keys, count = _column(table.keys), len(table.keys)

    def find(key: Any) -> Any:
        for at in range(count):
            if keys[at] == key:
                return at
        return -1

    return register_jitable(find)


def _finder_of(table: Table, key: Any) -> Any:
    """Return the look-up for a type of key; None is no key of a table."""
    find = _finder(table)
    if not isinstance(key, types.Optional):
        return find

    def find_present(key: Any) -> Any:
        return -1 if key is None else find(present(key))

    return register_jitable(find_present)


def _matches(table: Table, key: Any) -> bool:
    return _is_like(table.keys[0], types.unliteral(key.type if isinstance(key, types.Optional) else key))


def _is_like(constant: Any, key: Any) -> bool:
    """Return whether a value of a type can equal a constant in compiled code as it does in Python."""
    if type(constant) is tuple:
        items: Any = key if isinstance(key, types.BaseTuple) else ()
        return len(items) == len(constant) and all(
            _is_like(one, types.unliteral(item)) for one, item in zip(constant, items, strict=True)
        )
    if type(constant) is str:
        return bool(key == TEXT)
    if type(constant) is bytes:
        return bool(key == BYTES)
    return isinstance(key, types.Integer | types.Boolean)


def _check(table: Any, key: Any) -> None:
    if not _matches(table.table, key):
        raise TypingError(packed(what=f"looking {key} up in '{table.table.name}'"))


@overloads(operator.getitem)
def _getitem(table: Any, key: Any) -> Any:
    if not isinstance(table, TableType) or not table.table.values:
        return None
    _check(table, key)
    find, values = _finder_of(table.table, key), _column(table.table.values)

    def item(table: Any, key: Any) -> Any:
        at = find(key)
        if at < 0:
            raise KeyError("no such key")
        return values[at]

    return item


@overloads_method(TableType, "get")
def _get(table: Any, key: Any, default: Any = None) -> Any:
    if not table.table.values:
        return None
    _check(table, key)
    find, values = _finder_of(table.table, key), _column(table.table.values)

    def item(table: Any, key: Any, default: Any = None) -> Any:
        at = find(key)
        return default if at < 0 else values[at]

    return item


def _declare_parts(name: str, items: Callable[[Table], tuple[Any, ...]]) -> None:
    def typing(table: Any) -> Any:
        if not table.table.values:
            return None
        if len(table.table.keys) > _MOST_ROWS:
            raise TypingError(packed(what=f"{name}() of '{table.table.name}', more than {_MOST_ROWS} items,"))
        parts = tuple(view_of(item) for item in items(table.table))
        return lambda table: parts

    overloads_method(TableType, name)(typing)


_declare_parts("keys", lambda table: table.keys)
_declare_parts("values", lambda table: table.values)
_declare_parts("items", lambda table: tuple(zip(table.keys, table.values, strict=True)))


@overloads(operator.contains)
def _contains(table: Any, key: Any) -> Any:
    if not isinstance(table, TableType):
        return None
    _check(table, key)
    find = _finder_of(table.table, key)
    return lambda table, key: find(key) >= 0


@overloads(len)
def _len(table: Any) -> Any:
    if not isinstance(table, TableType):
        return None
    count = len(table.table.keys)
    return lambda table: count
