"""Converts values of records to columns of tables."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import members_of, plain_form
from rayelastic.graph.records.from_arrow import reader_of
from rayelastic.graph.records.schema import generated_type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Cell", "column_of", "turned", "values_of"]

_NUMBER = struct.Struct("<i")  # of a member of an enum

Cell = bytes | None  # a value's bytes in a record, or a text's own bytes; None: null


def turned(rows: Sequence[Sequence[Cell]], width: int) -> list[list[Cell]]:
    """Transpose rows of so many values to columns."""
    return [[row[column] for row in rows] for column in range(width)]


def column_of(cells: Sequence[Cell], text: str) -> pa.Array:
    """Return the values of a field of that type, as an Arrow array."""
    import numpy as np
    import pyarrow as pa

    form = plain_form(text)
    kind, of = form.kind, form.arrow
    if kind is DataType.ENUM:
        members = members_of(form)
        return pa.array([None if cell is None else members[_NUMBER.unpack(cell)[0]] for cell in cells], of)
    if kind is DataType.UUID:
        return pa.ExtensionArray.from_storage(of, pa.array(list(cells), of.storage_type))
    if kind is DataType.STRING:
        return pa.array([None if cell is None else cell.decode() for cell in cells], of)
    if kind is DataType.BINARY:
        return pa.array(list(cells), of)
    if kind is DataType.BOOL:
        return pa.array([None if cell is None else cell != b"\0" for cell in cells], of)
    valid = np.packbits(np.array([cell is not None for cell in cells], bool), bitorder="little").tobytes()
    data = b"".join(bytes(kind.size) if cell is None else cell for cell in cells)
    return pa.Array.from_buffers(of, len(cells), [pa.py_buffer(valid), pa.py_buffer(data)])


def values_of(column: Any, text: str) -> list[Any]:
    """Return the values of a column; of enums with a known class, their members."""
    reader = reader_of(plain_form(text), generated_type)
    values: list[Any] = column.to_pylist()
    return values if reader is None else [reader(value) for value in values]
