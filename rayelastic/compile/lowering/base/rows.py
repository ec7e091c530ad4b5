"""Rows: items that are read by index and never changed. The common part of lists inside records and rows of texts.

A kind of row defines its items (RowType) and how to read them (`reads`); len(), truth, `in` and loops follow from that.
Knows no kind.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import RefType, iternext_impl, lower_builtin
from numba.core.types.common import SimpleIteratorType

from rayelastic.compile.lowering.base.declare import MUTABLE, membership, overloads, primitive, structure, truth
from rayelastic.compile.lowering.base.views import I64


class RowType(types.IterableType):
    """A row of items of one type."""

    item: types.Type

    @property
    def iterator_type(self) -> RowIterator:
        """The type of iter()."""
        return RowIterator(self)

    @abstractmethod
    def compares(self, wanted: types.Type) -> bool:
        """Return whether an item may be compared with a value of a type."""


class RowIterator(SimpleIteratorType):
    """A position in a row."""

    def __init__(self, row: RowType) -> None:
        self.row = row
        super().__init__(name=f"iter({row})", yield_type=row.item)


# The row and the index of the next item.
structure(RowIterator, lambda kind: [("row", kind.row), ("at", MUTABLE)])


@dataclass(frozen=True, slots=True)
class _Reading:
    count: Callable[[Any, Any, Any, Any], Any]  # of context, builder, type, value
    item: Callable[[Any, Any, Any, Any, Any, Any], Any]  # of these, the count and an unchecked index


_READING: dict[type[RowType], _Reading] = {}


def reads(
    kind: type[RowType],
    count: Callable[[Any, Any, Any, Any], Any],
    item: Callable[[Any, Any, Any, Any, Any, Any], Any],
) -> None:
    """Define how a kind of row is read.

    Args:
        kind: A class of types.
        count: Emits code for the number of items, from context, builder, type and value.
        item: Emits code for an item, from these, that number and an unchecked index.
    """
    _READING[kind] = _Reading(count, item)
    lower_builtin("getiter", kind)(_getiter)


@primitive
def count(typingctx: Any, row: Any) -> Any:
    """Return the number of a row's items."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _READING[type(sig.args[0])].count(context, builder, sig.args[0], args[0])

    return types.int64(row), codegen


@primitive
def item(typingctx: Any, row: Any, index: Any) -> Any:
    """Return the item at an unchecked index."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        reading, typ = _READING[type(sig.args[0])], sig.args[0]
        return reading.item(context, builder, typ, args[0], reading.count(context, builder, typ, args[0]), args[1])

    return row.item(row, types.int64), codegen


@overloads(len)
def _len(row: Any) -> Any:
    return (lambda row: count(row)) if isinstance(row, RowType) else None


truth(RowType, lambda value: count(value) > 0, lambda value: count(value) == 0)
membership(lambda items, wanted: isinstance(items, RowType) and items.compares(wanted))


def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    iterator = context.make_helper(builder, sig.return_type)
    iterator.row = args[0]
    iterator.at = cgutils.alloca_once_value(builder, I64(0))
    return iterator._getvalue()


@lower_builtin("iternext", RowIterator)
@iternext_impl(RefType.UNTRACKED)
def _iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    iterator = context.make_helper(builder, sig.args[0], value=args[0])
    row = sig.args[0].row
    reading, at = _READING[type(row)], builder.load(iterator.at)
    total = reading.count(context, builder, row, iterator.row)
    more = builder.icmp_signed("<", at, total)
    result.set_valid(more)
    with builder.if_then(more):
        result.yield_(reading.item(context, builder, row, iterator.row, total, at))
        builder.store(builder.add(at, I64(1)), iterator.at)
