"""Keys as users write them become keys as native tables know them (key_extractor.hpp)."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rayelastic.errors import StateError
from rayelastic.graph.records.data_type import DataType, arrow_type_of, parsed_format

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.runtime.saved.shapes import Shape

__all__ = ["key_bytes", "parsed_key"]

_LENGTH = struct.Struct("<I")
_FLOATS = {DataType.FLOAT32: "<f", DataType.FLOAT64: "<d", DataType.FLOAT16: "<e"}


def key_bytes(key: Sequence[Any], shape: Shape, operator: str) -> tuple[bytes, bool]:
    """The bytes of a key as tables have them (key_extractor.hpp), and whether it is the null key.

    Raises:
        StateError: it isn't a key of this operator.
    """
    import pyarrow as pa

    if len(key) != len(shape.keys):
        raise _no_such_key(key, shape, operator, f"{len(shape.keys)} values")
    cells: list[bytes | None] = []
    for value, (_, text, nullable) in zip(key, shape.keys, strict=True):
        try:
            array = pa.array([value], arrow_type_of(text))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
            raise _no_such_key(key, shape, operator, str(error)) from None
        if value is None and not nullable:
            raise _no_such_key(key, shape, operator, "no field may be None")
        cells.append(None if value is None else _cell(array, parsed_format(text)[0]))
    if len(cells) == 1:
        return cells[0] or b"", cells[0] is None
    return b"".join(
        _part(cell, parsed_format(text)[0]) for cell, (_, text, _) in zip(cells, shape.keys, strict=True)
    ), False


def parsed_key(texts: Sequence[str], shape: Shape) -> tuple[Any, ...]:
    """The values of key fields that are written as texts; what can't be one stays a text, which `key_bytes` refuses."""
    import pyarrow as pa

    if len(texts) != len(shape.keys):
        return tuple(texts)
    key: list[Any] = []
    for text, (_, form, nullable) in zip(texts, shape.keys, strict=True):
        if text == "null" and nullable:
            key.append(None)
            continue
        try:
            key.append(pa.array([text]).cast(arrow_type_of(form))[0].as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            key.append(text)
    return tuple(key)


def _no_such_key(key: Sequence[Any], shape: Shape, operator: str, why: str) -> StateError:
    fields = ", ".join(f"{name}: {parsed_format(text)[0].value}" for name, text, _ in shape.keys)
    return StateError(
        f"{tuple(key)!r} can't be a key of it ({why})",
        operator=operator,
        way_out=f"Give the values of ({fields})" if fields else "It has no keys: ask for the key ()",
    )


def _cell(array: pa.Array, kind: DataType) -> bytes:
    if kind.is_text:
        value = array[0].as_py()
        return value.encode() if isinstance(value, str) else bytes(value)
    if kind is DataType.BOOL:
        return bytes([bool(array[0].as_py())])
    cell = array.buffers()[1].to_pybytes()[: kind.size]
    if (form := _FLOATS.get(kind)) is not None:  # one zero, one NaN
        (number,) = struct.unpack(form, cell)
        return struct.pack(form, math.nan if math.isnan(number) else number or 0.0)
    return bytes(cell)


def _part(cell: bytes | None, kind: DataType) -> bytes:
    if cell is None:
        return b"\0"
    return b"\1" + (_LENGTH.pack(len(cell)) if kind.is_text else b"") + cell
