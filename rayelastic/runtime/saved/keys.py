"""Converts keys as users write them to those of native tables (key_extractor.hpp)."""

from __future__ import annotations

import enum
import json
import math
import struct
import typing
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ErrorCode, StateError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, members_of, plain_form

if TYPE_CHECKING:
    from rayelastic.runtime.saved.shapes import Shape

__all__ = ["key_bytes", "parsed_key"]

_LENGTH = struct.Struct("<I")
_MEMBER = struct.Struct("<i")
_FLOATS = {DataType.FLOAT32: "<f", DataType.FLOAT64: "<d", DataType.FLOAT16: "<e"}


def key_bytes(key: Sequence[Any], shape: Shape, operator: str) -> tuple[bytes, bool]:
    """Return the bytes of a key as tables have them (key_extractor.hpp), and whether it is the null key.

    Raises:
        StateError: it isn't a key of this operator.
    """
    import pyarrow as pa

    if len(key) != len(shape.keys):
        raise _no_such_key(key, shape, operator, f"{len(shape.keys)} values")
    cells: list[bytes | None] = []
    for value, (_, text, nullable) in zip(key, shape.keys, strict=True):
        if value is None and not nullable:
            raise _no_such_key(key, shape, operator, "no field may be None")
        try:
            cells.append(None if value is None else _cell(value, plain_form(text)))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise _no_such_key(key, shape, operator, f"{error}") from None
    if len(cells) == 1:
        return cells[0] or b"", cells[0] is None
    return b"".join(
        _part(cell, plain_form(text).kind) for cell, (_, text, _) in zip(cells, shape.keys, strict=True)
    ), False


def parsed_key(texts: Sequence[str], shape: Shape) -> tuple[Any, ...]:
    """Parse the values of key fields; an invalid one stays a text, which `key_bytes` rejects.

    In a nullable field, `null` is None. A text may be in double quotes, as in JSON: `"null"` is a text.
    """
    import pyarrow as pa

    if len(texts) != len(shape.keys):
        return tuple(texts)
    key: list[Any] = []
    for text, (_, form, nullable) in zip(texts, shape.keys, strict=True):
        if text == "null" and nullable:
            key.append(None)
            continue
        of = plain_form(form)
        if of.kind is DataType.STRING and len(text) > 1 and text[0] == text[-1] == '"':
            key.append(_unquoted(text))
            continue
        try:
            key.append(uuid.UUID(text) if of.kind is DataType.UUID else pa.array([text]).cast(of.arrow)[0].as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
            key.append(text)
    return tuple(key)


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # the quotes belong to the text
        return text


def _no_such_key(key: Sequence[Any], shape: Shape, operator: str, why: str) -> StateError:
    fields = ", ".join(f"{name}: {plain_form(text).shown}" for name, text, _ in shape.keys)
    return StateError(
        f"{tuple(key)!r} can't be a key of it ({why})",
        operator=operator,
        hint=f"Pass the values of ({fields})" if fields else "It has no keys: pass the key ()",
        code=ErrorCode.KEY_MISMATCH,
    )


def _cell(value: Any, form: Form) -> bytes:
    import pyarrow as pa

    kind = form.kind
    if kind is DataType.UUID:
        return (value if isinstance(value, uuid.UUID) else uuid.UUID(value)).bytes
    if kind is DataType.ENUM:
        return _MEMBER.pack(_number_of(value, form))
    array = pa.array([value], form.arrow)
    if kind.is_variable:
        value = array[0].as_py()
        return value.encode() if isinstance(value, str) else bytes(value)
    if kind is DataType.BOOL:
        return bytes([bool(array[0].as_py())])
    cell = array.buffers()[1].to_pybytes()[: kind.size]
    if (packed := _FLOATS.get(kind)) is not None:  # one zero, one NaN
        (number,) = struct.unpack(packed, cell)
        return struct.pack(packed, math.nan if math.isnan(number) else number or 0.0)
    return bytes(cell)


def _number_of(value: Any, form: Form) -> int:
    """Return the number of a member of an enum, or of its Arrow value."""
    if form.cls is not None and isinstance(value, form.cls):
        members: list[Any] = list(typing.cast("type[enum.Enum]", form.cls))
        return members.index(value)
    return members_of(form).index(value)


def _part(cell: bytes | None, kind: DataType) -> bytes:
    if cell is None:
        return b"\0"
    return b"\1" + (_LENGTH.pack(len(cell)) if kind.is_variable else b"") + cell
