"""Schemas: what the records of a stream look like, field by field and byte by byte.

Layout rule, the same as native_sched/include/rayelastic/schema.hpp: fields in declared order, each at its natural
alignment (text at 8); then one validity bit per nullable field, in field order, bit 0 first, 1 = present; size rounded
up to 8, at least 8. Knows nothing of operators. pyarrow and numpy are imported only inside a conversion.
"""

from __future__ import annotations

import datetime
import difflib
import functools
import keyword
import types
import typing
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rayelastic.errors import SchemaError

__all__ = ["DataType", "Field", "Schema"]


class DataType(Enum):
    """What one field of a record holds; dates, times and durations as their Arrow integers."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    DATE32 = "date32"
    DATE64 = "date64"
    TIME32 = "time32"
    TIME64 = "time64"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    STRING = "string"
    BINARY = "binary"

    @property
    def size(self) -> int:
        """Bytes in a record."""
        return _SIZES[self]

    @property
    def alignment(self) -> int:
        """Alignment in a record, in bytes: the size, but 8 for text (a 16-byte view)."""
        return min(self.size, 8)

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer; dates and times are not."""
        return self.value.startswith(("int", "uint"))

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point number."""
        return self.value.startswith("float")

    @property
    def is_numeric(self) -> bool:
        """Whether sums and means of it make sense."""
        return self.is_integer or self.is_float

    @property
    def is_text(self) -> bool:
        """Whether it is of variable length: string or binary."""
        return self in (DataType.STRING, DataType.BINARY)

    @property
    def python_type(self) -> type:
        """The Python type that a user's function sees."""
        return _PYTHON_TYPES[self]

    @property
    def default_format(self) -> str:
        """The Arrow C format string where no unit is named: microseconds, milliseconds for the short ones."""
        return _DEFAULT_FORMATS[self]


_SIZES = {
    DataType.BOOL: 1, DataType.INT8: 1, DataType.UINT8: 1,
    DataType.INT16: 2, DataType.UINT16: 2, DataType.FLOAT16: 2,
    DataType.INT32: 4, DataType.UINT32: 4, DataType.FLOAT32: 4, DataType.DATE32: 4, DataType.TIME32: 4,
    DataType.INT64: 8, DataType.UINT64: 8, DataType.FLOAT64: 8, DataType.DATE64: 8, DataType.TIME64: 8,
    DataType.TIMESTAMP: 8, DataType.DURATION: 8, DataType.STRING: 16, DataType.BINARY: 16,
}  # fmt: skip

_PYTHON_TYPES: dict[DataType, type] = {
    **{t: int for t in DataType if t.is_integer},
    **{t: float for t in DataType if t.is_float},
    DataType.BOOL: bool, DataType.DATE32: datetime.date, DataType.DATE64: datetime.date, DataType.TIME32: datetime.time,
    DataType.TIME64: datetime.time, DataType.TIMESTAMP: datetime.datetime, DataType.DURATION: datetime.timedelta,
    DataType.STRING: str, DataType.BINARY: bytes,
}  # fmt: skip

# Arrow C Data Interface format string -> type, and the pyarrow factory with its arguments. Zoned timestamps: see _parsed.
_FORMATS: dict[str, tuple[DataType, str, tuple[str, ...]]] = {
    "b": (DataType.BOOL, "bool_", ()),
    "c": (DataType.INT8, "int8", ()),
    "s": (DataType.INT16, "int16", ()),
    "i": (DataType.INT32, "int32", ()),
    "l": (DataType.INT64, "int64", ()),
    "C": (DataType.UINT8, "uint8", ()),
    "S": (DataType.UINT16, "uint16", ()),
    "I": (DataType.UINT32, "uint32", ()),
    "L": (DataType.UINT64, "uint64", ()),
    "e": (DataType.FLOAT16, "float16", ()),
    "f": (DataType.FLOAT32, "float32", ()),
    "g": (DataType.FLOAT64, "float64", ()),
    "tdD": (DataType.DATE32, "date32", ()),
    "tdm": (DataType.DATE64, "date64", ()),
    "tts": (DataType.TIME32, "time32", ("s",)),
    "ttm": (DataType.TIME32, "time32", ("ms",)),
    "ttu": (DataType.TIME64, "time64", ("us",)),
    "ttn": (DataType.TIME64, "time64", ("ns",)),
    "tss:": (DataType.TIMESTAMP, "timestamp", ("s",)),
    "tsm:": (DataType.TIMESTAMP, "timestamp", ("ms",)),
    "tsu:": (DataType.TIMESTAMP, "timestamp", ("us",)),
    "tsn:": (DataType.TIMESTAMP, "timestamp", ("ns",)),
    "tDs": (DataType.DURATION, "duration", ("s",)),
    "tDm": (DataType.DURATION, "duration", ("ms",)),
    "tDu": (DataType.DURATION, "duration", ("us",)),
    "tDn": (DataType.DURATION, "duration", ("ns",)),
    "u": (DataType.STRING, "string", ()),
    "U": (DataType.STRING, "large_string", ()),
    "vu": (DataType.STRING, "string_view", ()),
    "z": (DataType.BINARY, "binary", ()),
    "Z": (DataType.BINARY, "large_binary", ()),
    "vz": (DataType.BINARY, "binary_view", ()),
}

_DEFAULT_FORMATS = {kind: text for text, (kind, _, _) in reversed(_FORMATS.items())} | {
    DataType.TIME32: "ttm", DataType.TIME64: "ttu", DataType.TIMESTAMP: "tsu:", DataType.DURATION: "tDu",
}  # fmt: skip

_OF_PYTHON: dict[object, DataType] = {
    bool: DataType.BOOL, int: DataType.INT64, float: DataType.FLOAT64, str: DataType.STRING, bytes: DataType.BINARY,
    datetime.datetime: DataType.TIMESTAMP, datetime.date: DataType.DATE32, datetime.time: DataType.TIME64,
    datetime.timedelta: DataType.DURATION,
}  # fmt: skip

_UNITS = {"s": "s", "ms": "m", "us": "u", "ns": "n"}

_HOLDS = "A record holds bool, int, float, str, bytes, datetime, date, time, timedelta, NumPy scalar types, and X | None"
_TAKES = "Give a NamedTuple class, a dict of field names to types, a pyarrow.Schema, or a NumPy structured dtype"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a schema, laid out.

    Args:
        name: a Python identifier.
        type: what it holds.
        nullable: whether it may be None.
        format: Arrow C Data Interface format string, with unit and time zone.
        offset: bytes from the start of the record.
        validity: its bit in the validity bytes, -1 if not nullable.
    """

    name: str
    type: DataType
    nullable: bool
    format: str
    offset: int
    validity: int

    def __str__(self) -> str:
        shown = self.type.value
        if self.format != self.type.default_format:
            _, factory, arguments = _parsed(self.format)
            shown = f"{factory}[{', '.join(arguments)}]" if arguments else factory
        return f"{self.name}: {shown}{' | None' if self.nullable else ''}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The layout of a stream's records. Make it with ``Schema.of``; equal when names, types and layout are.

    Args:
        name: what the records are called in messages and tuple classes.
        fields: in declared order.
        record_size: bytes of a record, a multiple of 8.
        validity_offset: where the validity bytes start.

    >>> from typing import NamedTuple
    >>> class Trade(NamedTuple):
    ...     symbol: str
    ...     price: float
    ...     volume: int | None
    >>> schema = Schema.of(Trade)
    >>> print(schema)
    Trade(symbol: string, price: float64, volume: int64 | None)
    >>> schema.record_size, schema.field("volume").offset, schema.tuple_type is Trade
    (40, 24, True)
    """

    name: str
    fields: tuple[Field, ...]
    record_size: int
    validity_offset: int
    declared_type: type | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def of(declared: object, *, name: str | None = None) -> Schema:
        """Lays out what was declared.

        Args:
            declared: a NamedTuple class; a dict of field names to types (Python types, NumPy scalar types, DataType,
                pyarrow types, each `| None` for nullable); a pyarrow.Schema; a NumPy structured dtype; a Schema, which
                comes back as it is; or one plain type, for records of one field `value`.
            name: what to call the records; the class's name, or 'Record', by default.

        Raises:
            SchemaError: naming the field that a record can't hold.

        >>> print(Schema.of({"word": str, "count": int}, name="Word"))
        Word(word: string, count: int64)
        >>> print(Schema.of(float))
        Record(value: float64)
        >>> Schema.of({"tags": list})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        rayelastic.errors.SchemaError: field 'tags' of Record: list can't be held by a record. A record holds bool, ...
        """
        if isinstance(declared, Schema):
            return declared
        called = name or "Record"
        if isinstance(declared, type) and issubclass(declared, tuple) and hasattr(declared, "_fields"):
            return _of_class(declared, name or declared.__name__)
        if isinstance(declared, Mapping):
            return laid_out(called, (_of_annotation(called, n, annotation) for n, annotation in declared.items()))
        package = type(declared).__module__.partition(".")[0]
        if package == "pyarrow" and hasattr(declared, "metadata") and hasattr(declared, "names"):
            return _of_arrow(declared, called)
        if package == "numpy" and getattr(declared, "names", None):
            return _of_numpy(declared, called)
        if _scalar_format(declared) is not None:
            return laid_out(called, [_of_annotation(called, "value", declared)])
        raise SchemaError(f"{declared!r} is no schema", way_out=_TAKES)

    @property
    def names(self) -> tuple[str, ...]:
        """The field names, in order."""
        return tuple(f.name for f in self.fields)

    @property
    def has_text(self) -> bool:
        """Whether a record refers to bytes outside itself."""
        return any(f.type.is_text for f in self.fields)

    def find(self, name: str) -> Field | None:
        """The field of that name, or None."""
        return next((f for f in self.fields if f.name == name), None)

    def field(self, name: str) -> Field:
        """The field of that name.

        Raises:
            SchemaError: there is none; says which there are and which was probably meant.
        """
        found = self.find(name)
        if found is None:
            raise SchemaError(f"{self.name} has no field {name!r}", way_out=self.suggestion(name))
        return found

    def suggestion(self, name: object) -> str:
        """A sentence for whoever asked for a field that isn't there."""
        close = difflib.get_close_matches(str(name), self.names, n=1)
        meant = f"Did you mean '{close[0]}'? " if close else ""
        return f"{meant}Its fields are {', '.join(self.names) or 'none'}"

    @property
    def tuple_type(self) -> type:
        """The tuple class that Python functions get: the user's own, or one made for these fields."""
        return self.declared_type or _generated_type(self.name, self.names)

    def same_fields(self, other: Schema) -> bool:
        """Whether records of both are the same bytes, whatever the schemas are called."""
        return self.fields == other.fields

    def renamed(self, name: str) -> Schema:
        """The same fields under another name."""
        return Schema(name, self.fields, self.record_size, self.validity_offset, self.declared_type)

    def to_arrow(self) -> Any:
        """The pyarrow.Schema of batches that hold these records."""
        import pyarrow as pa

        return pa.schema([pa.field(f.name, _arrow_type(pa, f.format), nullable=f.nullable) for f in self.fields])

    def to_numpy(self) -> Any:
        """The NumPy structured dtype of the same bytes: text as 16 raw bytes, validity bytes in the padding."""
        import numpy as np

        return np.dtype(
            {
                "names": list(self.names),
                "formats": [_numpy_format(f) for f in self.fields],
                "offsets": [f.offset for f in self.fields],
                "itemsize": self.record_size,
            }
        )

    def __str__(self) -> str:
        return f"{self.name}({', '.join(str(f) for f in self.fields)})"


def laid_out(name: str, columns: Iterable[tuple[str, str, bool]], declared_type: type | None = None) -> Schema:
    """Lays out (field name, Arrow format string, nullable) in order.

    Raises:
        SchemaError: naming the field: declared twice, no identifier, or a format that a record can't hold.
    """
    columns = list(columns)
    twice = [n for n, times in Counter(n for n, _, _ in columns).items() if times > 1]
    if twice:
        raise SchemaError(f"field {twice[0]!r} of {name} is declared twice", way_out="Rename one of the two")
    fields: list[Field] = []
    end = bits = 0
    for column, text, nullable in columns:
        _check_field_name(name, column)
        try:
            kind, _, _ = _parsed(text)
        except KeyError:
            raise SchemaError(
                f"field '{column}' of {name} has Arrow format {text!r}, which a record can't hold", way_out=_HOLDS
            ) from None
        offset = _round_up(end, kind.alignment)
        fields.append(Field(column, kind, nullable, text, offset, bits if nullable else -1))
        bits += nullable
        end = offset + kind.size
    return Schema(name, tuple(fields), max(8, _round_up(end + (bits + 7) // 8, 8)), end, declared_type)


def _round_up(value: int, alignment: int) -> int:
    return (value + alignment - 1) // alignment * alignment


def _check_field_name(schema: str, name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise SchemaError(
            f"field {name!r} of {schema} can't be an attribute of a tuple",
            way_out="Rename it to a Python name that is no keyword and doesn't start with an underscore",
        )


def _parsed(text: str) -> tuple[DataType, str, tuple[str, ...]]:
    """Type, pyarrow factory and its arguments of an Arrow format string. KeyError if a record can't hold it."""
    unit, colon, zone = text.partition(":")
    if colon and zone:
        kind, factory, arguments = _FORMATS[unit + ":"]
        return kind, factory, (*arguments, zone)
    return _FORMATS[text]


def _of_class(declared: type, name: str) -> Schema:
    try:
        annotations = typing.get_type_hints(declared)
    except Exception as error:
        raise SchemaError(
            f"the annotations of {name} can't be read: {error}", way_out="Define the types that it names in its module"
        ) from error
    columns = []
    for n in declared._fields:  # type: ignore[attr-defined]
        if n not in annotations:
            raise SchemaError(f"field '{n}' of {name} has no type", way_out="Use typing.NamedTuple with annotations")
        columns.append(_of_annotation(name, n, annotations[n]))
    return laid_out(name, columns, declared)


def _of_annotation(schema: str, name: str, annotation: object) -> tuple[str, str, bool]:
    nullable = False
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        arguments = [a for a in typing.get_args(annotation) if a is not type(None)]
        nullable = len(arguments) < len(typing.get_args(annotation))
        annotation = arguments[0] if len(arguments) == 1 else annotation
    text = _scalar_format(annotation)
    if text is None:
        shown = getattr(annotation, "__name__", None) if isinstance(annotation, type) else None
        raise SchemaError(f"field {name!r} of {schema}: {shown or annotation} can't be held by a record", way_out=_HOLDS)
    return name, text, nullable


def _scalar_format(annotation: object) -> str | None:
    """The Arrow format of a Python, NumPy, pyarrow or own type; None if there is none."""
    if isinstance(annotation, DataType):
        return annotation.default_format
    if isinstance(annotation, type):
        if annotation in _OF_PYTHON:
            return _OF_PYTHON[annotation].default_format
        if annotation.__module__ == "numpy":
            known = {"bool_": "bool", "str_": "string", "bytes_": "binary"}.get(annotation.__name__, annotation.__name__)
            return _type_named(known)
        return None
    if type(annotation).__module__.partition(".")[0] == "pyarrow":
        return _arrow_formats().get(annotation) or _zoned_format(annotation)
    if type(annotation).__module__.partition(".")[0] == "numpy" and getattr(annotation, "names", ()) is None:
        return _numpy_scalar_format(annotation)
    return None


@functools.cache
def _arrow_formats() -> dict[object, str]:
    import pyarrow as pa

    return {_arrow_type(pa, text): text for text in _FORMATS}


def _arrow_type(pa: Any, text: str) -> Any:
    _, factory, arguments = _parsed(text)
    return getattr(pa, factory)(*arguments)


def _zoned_format(arrow_type: Any) -> str | None:
    zone = getattr(arrow_type, "tz", None)
    return f"ts{_UNITS[arrow_type.unit]}:{zone}" if zone else None


def _of_arrow(declared: Any, name: str) -> Schema:
    columns = []
    for column in declared:
        text = _scalar_format(column.type)
        if text is None:
            way_out = f"Cast or leave out the column. {_HOLDS}"
            raise SchemaError(f"field '{column.name}' of {name}: {column.type} can't be held by a record", way_out=way_out)
        columns.append((column.name, text, bool(column.nullable)))
    return laid_out(name, columns)


def _of_numpy(declared: Any, name: str) -> Schema:
    columns = []
    for column in declared.names:
        text = _numpy_scalar_format(declared[column])
        if text is None:
            raise SchemaError(f"field '{column}' of {name}: {declared[column]} can't be held by a record", way_out=_HOLDS)
        columns.append((column, text, False))
    return laid_out(name, columns)


def _numpy_scalar_format(dtype: Any) -> str | None:
    if dtype.kind in "US":
        return "u" if dtype.kind == "U" else "z"
    if dtype.kind in "Mm":
        unit = dtype.str.partition("[")[2].rstrip("]")
        if dtype.kind == "M" and unit == "D":
            return "tdD"
        return (f"ts{_UNITS[unit]}:" if dtype.kind == "M" else f"tD{_UNITS[unit]}") if unit in _UNITS else None
    return _type_named(dtype.name)


def _type_named(name: str) -> str | None:
    return next((t.default_format for t in DataType if t.value == name), None)


def _numpy_format(declared: Field) -> str:
    """NumPy format of the bytes of a field."""
    kind = declared.type
    if kind.is_text:
        return "V16"
    if kind in (DataType.TIMESTAMP, DataType.DURATION):
        letter = "M" if kind is DataType.TIMESTAMP else "m"
        return f"<{letter}8[{_parsed(declared.format)[2][0]}]"
    if kind is DataType.BOOL:
        return "?"
    letter = "f" if kind.is_float else "u" if kind.value.startswith("u") else "i"
    return f"<{letter}{kind.size}"


@functools.cache
def _generated_type(name: str, names: tuple[str, ...]) -> type:
    """A NamedTuple class for a schema that has none, the same one for the same fields within a process."""
    annotated = [(n, typing.Any) for n in names]
    made: type = typing.NamedTuple(name if name.isidentifier() else "Record", annotated)  # type: ignore[misc]
    made.__reduce__ = lambda self: (_rebuilt, (name, names, tuple(self)))  # type: ignore[assignment, method-assign]
    return made


def _rebuilt(name: str, names: tuple[str, ...], values: tuple[object, ...]) -> object:
    """Unpickles a tuple of a generated class."""
    return _generated_type(name, names)(*values)
