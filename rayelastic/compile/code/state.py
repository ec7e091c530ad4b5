"""The state of a key: a fixed-layout record for compiled functions, an object with the same fields for Python."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.mutable_state import MutableState
from rayelastic.graph.records.schema import DataType, Field, Schema

__all__ = ["MutableState", "StateFactory", "initial_record", "is_record_class", "state_factory"]

_CODES = {
    DataType.BOOL: "?", DataType.INT8: "b", DataType.UINT8: "B", DataType.INT16: "h", DataType.UINT16: "H",
    DataType.INT32: "i", DataType.UINT32: "I", DataType.INT64: "q", DataType.UINT64: "Q", DataType.FLOAT16: "e",
    DataType.FLOAT32: "f", DataType.FLOAT64: "d", DataType.DATE32: "i", DataType.DATE64: "q", DataType.TIME32: "i",
    DataType.TIME64: "q", DataType.TIMESTAMP: "q", DataType.DURATION: "q",
}  # fmt: skip
_PER_SECOND = {"s": 1, "m": 1_000, "u": 1_000_000, "n": 1_000_000_000}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_INLINE_BYTES = 12


@dataclass(frozen=True, slots=True)
class StateFactory:
    """Makes the initial state of a key from a NamedTuple class with defaults."""

    record_class: type

    def __call__(self) -> MutableState:
        """Return a fresh state."""
        return MutableState(**self.record_class()._asdict())


def is_record_class(state: object) -> bool:
    """Return whether state is declared as a NamedTuple class, which has a fixed layout."""
    return isinstance(state, type) and issubclass(state, tuple) and hasattr(state, "_fields")


def state_factory(state: Callable[[], Any] | None) -> Callable[[], Any] | None:
    """Return a function that makes the state of a key in Python."""
    return StateFactory(state) if isinstance(state, type) and is_record_class(state) else state


def initial_record(schema: Schema, values: tuple[Any, ...]) -> bytes:
    """Return the state record of a new key.

    Raises:
        SchemaError: A value doesn't fit its field, or the field is of a type that only Python functions support.
    """
    record = bytearray(schema.record_size)
    for field, value in zip(schema.fields, values, strict=True):
        if not field.type.is_text and field.type not in _CODES:
            raise SchemaError(
                f"state field '{field.name}' is {field.type.value}, which compiled state doesn't hold",
                code=ErrorCode.UNSUPPORTED_TYPE,
            )
        if value is None:
            if not field.nullable:
                raise SchemaError(
                    f"the default of state field '{field.name}' is None",
                    hint="Declare it `| None`",
                    code=ErrorCode.BAD_DEFAULT,
                )
            continue
        if field.nullable:
            record[schema.validity_offset + field.validity // 8] |= 1 << field.validity % 8
        try:
            record[field.offset : field.offset + field.type.size] = _encoded(field, value)
        except (struct.error, TypeError, AttributeError, OverflowError) as error:
            raise SchemaError(
                f"the default {value!r} of state field '{field.name}' is no {field.type.value}: {error}",
                code=ErrorCode.BAD_DEFAULT,
            ) from error
    return bytes(record)


def _encoded(field: Field, value: Any) -> bytes:
    if field.type.is_text:
        raw = value.encode() if isinstance(value, str) else bytes(value)
        if len(raw) > _INLINE_BYTES:
            raise OverflowError(f"a default text has {_INLINE_BYTES} bytes at most")
        return struct.pack("<I12s", len(raw), raw)
    if field.type is DataType.DATE32:
        value = value.toordinal() - _EPOCH.toordinal()
    elif field.type is DataType.DATE64:
        value = (value.toordinal() - _EPOCH.toordinal()) * 86_400_000
    elif field.type is DataType.TIMESTAMP:
        value = _units(value.replace(tzinfo=value.tzinfo or dt.UTC) - _EPOCH, field.format[2])
    elif field.type is DataType.DURATION:
        value = _units(value, field.format[2])
    elif field.type in (DataType.TIME32, DataType.TIME64):
        span = dt.timedelta(
            hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
        )
        value = _units(span, field.format[2])
    return struct.pack("<" + _CODES[field.type], value)


def _units(span: dt.timedelta, unit: str) -> int:
    microseconds = span // dt.timedelta(microseconds=1)
    return microseconds * _PER_SECOND[unit] // 1_000_000
