"""Converts state records to a newer declaration: with more fields, in another order, with wider numbers."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.graph.records.data_type import numpy_format_of, parsed_format
from rayelastic.runtime.saved.chunks import HEADER, Entry, entries, record_bytes, record_cells
from rayelastic.runtime.saved.columns import Cell
from rayelastic.runtime.saved.shapes import Shape, StateKindOf, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic.graph.records.data_type import Column
    from rayelastic.graph.records.schema import Schema
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["Widening"]

_WIDER = {"c": "sil", "s": "il", "i": "l", "C": "SILsil", "S": "ILil", "I": "Ll", "e": "fg", "f": "g"}  # Arrow formats
_VIEW = struct.Struct("<II Q")  # of a text: length, prefix, and the offset of a long one
_INLINE = 12
_KEY = struct.Struct("<IB")


class Widening:
    """Converts one record to another.

    Args:
        old: The saved layout of the state.
        new: Its current layout.
        first: The state of a new key.
    """

    def __init__(self, old: Shape, new: Shape, first: list[Cell]) -> None:
        self._old = old
        self._source, self._target, self._first = old.value_schema, new.value_schema, first

    @staticmethod
    def of(held: Mapping[str, Any] | None, spec: OperatorSpec) -> Widening | None:
        """Return the conversion to the current declaration; None if it is impossible, or unnecessary.

        Args:
            held: The manifest's layout of the state.
            spec: The operator.
        """
        new = shape_of(spec)
        if held is None or new is None or new.kind is not StateKindOf.RECORD:
            return None
        try:
            old, code = Shape.from_json(held), spec.body
        except (
            LookupError,
            TypeError,
            ValueError,
        ):  # a changed manifest: the check of its forms reports the difference
            return None
        if (old.kind, old.keys, old.ttl) != (new.kind, new.keys, new.ttl) or old.values == new.values:
            return None
        now = {name: column for column in new.values for name in column[:1]}
        if not all(column[0] in now and _fits(column, now[column[0]]) for column in old.values):
            return None
        assert isinstance(code, OperatorCode)
        return Widening(old, new, _first_cells(code.state_initial, new.value_schema))

    def __call__(self, chunk: bytes, layout: int) -> bytes:
        """Convert an export of old records to one of new ones, whose table has this layout."""
        magic, _, keys, _ = HEADER.unpack_from(chunk)
        body = b"".join(self._entry(entry) for entry in entries(chunk, self._old))
        return HEADER.pack(magic, layout, keys, len(body)) + body

    def _entry(self, entry: Entry) -> bytes:
        cells = dict(zip(self._source.fields, record_cells(entry.payload, self._source), strict=True))
        old = {field.name: (field, cell) for field, cell in cells.items()}
        made: list[Cell] = []
        for field, first in zip(self._target.fields, self._first, strict=True):
            if field.name not in old:
                made.append(first)
                continue
            was, cell = old[field.name]
            made.append(cell if cell is None or was.format == field.format else _number(cell, was.format, field.format))
        return _KEY.pack(len(entry.key), entry.is_null) + entry.key + entry.touch + record_bytes(made, self._target)


def _fits(old: Column, new: Column) -> bool:
    _, was, could_be_null = old
    _, now, may_be_null = new
    return (was == now or now in _WIDER.get(was, "")) and (may_be_null or not could_be_null)


def _number(cell: bytes, was: str, now: str) -> bytes:
    import numpy as np

    old, new = (numpy_format_of(parsed_format(text)[0], text) for text in (was, now))
    data: bytes = np.frombuffer(cell, old).astype(new).tobytes()
    return data


def _first_cells(initial: bytes, schema: Schema) -> list[Cell]:
    """Return the values of the record of a new key, followed by its long texts (compile/code/state.py)."""
    cells: list[Cell] = []
    for field in schema.fields:
        cell = initial[field.offset : field.offset + field.type.size]
        if field.type.is_variable:
            length, _, at = _VIEW.unpack(cell)
            cell = initial[at : at + length] if length > _INLINE else cell[4 : 4 + length]
        bit = field.validity
        valid = bit < 0 or initial[schema.validity_offset + bit // 8] >> (bit % 8) & 1
        cells.append(cell if valid else None)
    return cells
