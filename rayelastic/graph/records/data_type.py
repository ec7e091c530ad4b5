"""The types of a record's fields, their sizes, and their Arrow C Data Interface format strings.

The same table as native_sched/src/record/schema.cpp. Knows no schemas. Imports only the standard library.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from enum import Enum
from typing import Any

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: written in Python


def own_class(cls: type) -> type:
    """Return the class of the module datetime that a class poses as; the class itself if it doesn't.

    Such a fake is a subclass of the original, and claims that the original is a subclass of it.

    >>> import datetime as dt
    >>> class Day(dt.date): pass
    >>> own_class(dt.datetime) is dt.datetime, own_class(Day) is Day
    (True, True)
    """
    for base in cls.__mro__[1:]:
        if base.__module__ == "datetime" and not base.__flags__ & _HEAP_TYPE and issubclass(base, cls):
            return base
    return cls


HOLDS = (
    "A record holds bool, int, float, str, bytes, datetime, date, time, timedelta, Decimal, UUID, enums, "
    "NumPy scalar types; list[X], tuple[X, ...], dict[K, V], NamedTuple classes and dataclasses of these; "
    "rel.Json, Any, and X | None"
)

Column = tuple[str, str, bool]  # a field to be laid out: name, Arrow format string, whether it may be None


class DataType(Enum):
    """The type of one field of a record; dates, times and durations are their Arrow integers."""

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
    DECIMAL = "decimal128"
    UUID = "uuid"
    ENUM = "enum"
    LIST = "list"
    STRUCT = "struct"
    MAP = "map"
    JSON = "json"
    OBJECT = "object"

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
        """Whether it is string or binary."""
        return self in (DataType.STRING, DataType.BINARY)

    @property
    def is_variable(self) -> bool:
        """Whether it is of variable length: a view of bytes that are stored elsewhere, such as text."""
        return self.is_text or self.is_made

    @property
    def is_made(self) -> bool:
        """Whether only its form can decode its bytes: list, struct, map, JSON, object."""
        return self in (DataType.LIST, DataType.STRUCT, DataType.MAP, DataType.JSON, DataType.OBJECT)

    @property
    def is_key(self) -> bool:
        """Whether it can be a key: equal values have equal bytes."""
        return not self.is_made

    @property
    def is_ordered(self) -> bool:
        """Whether its values are ordered and aren't text: numbers, times, decimals, UUIDs."""
        return not self.is_text and not self.is_made and self is not DataType.ENUM

    @property
    def native(self) -> str:
        """The engine's type."""
        if self is DataType.ENUM:
            return DataType.INT32.value
        if self is DataType.JSON:
            return DataType.STRING.value
        return DataType.BINARY.value if self.is_made else self.value

    @property
    def python_type(self) -> type:
        """The Python type that a user's function sees."""
        return _PYTHON_TYPES[self]

    @property
    def default_format(self) -> str:
        """The Arrow C format string without a unit: microseconds, or milliseconds for the short types.

        Decimals have 38 digits and scale 18; empty for types with parts.
        """
        return _DEFAULT_FORMATS.get(self, "")


_SIZES = {
    DataType.BOOL: 1, DataType.INT8: 1, DataType.UINT8: 1,
    DataType.INT16: 2, DataType.UINT16: 2, DataType.FLOAT16: 2,
    DataType.INT32: 4, DataType.UINT32: 4, DataType.FLOAT32: 4, DataType.DATE32: 4, DataType.TIME32: 4,
    DataType.INT64: 8, DataType.UINT64: 8, DataType.FLOAT64: 8, DataType.DATE64: 8, DataType.TIME64: 8,
    DataType.TIMESTAMP: 8, DataType.DURATION: 8, DataType.STRING: 16, DataType.BINARY: 16, DataType.DECIMAL: 16,
    DataType.UUID: 16, DataType.ENUM: 4, DataType.LIST: 16, DataType.STRUCT: 16, DataType.MAP: 16, DataType.JSON: 16,
    DataType.OBJECT: 16,
}  # fmt: skip

_PYTHON_TYPES: dict[DataType, type] = {
    **{t: int for t in DataType if t.is_integer},
    **{t: float for t in DataType if t.is_float},
    DataType.BOOL: bool, DataType.TIME32: dt.time, DataType.TIME64: dt.time,
    DataType.DATE32: own_class(dt.date), DataType.DATE64: own_class(dt.date),
    DataType.TIMESTAMP: own_class(dt.datetime), DataType.DURATION: dt.timedelta,
    DataType.STRING: str, DataType.BINARY: bytes, DataType.DECIMAL: decimal.Decimal, DataType.UUID: uuid.UUID,
    DataType.ENUM: enum.Enum, DataType.LIST: list, DataType.STRUCT: tuple, DataType.MAP: dict, DataType.JSON: object,
    DataType.OBJECT: object,
}  # fmt: skip

# Arrow C Data Interface format string -> type, and the pyarrow factory with its arguments. Zoned: see parsed_format.
FORMATS: dict[str, tuple[DataType, str, tuple[str, ...]]] = {
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

_DEFAULT_FORMATS = {kind: text for text, (kind, _, _) in reversed(FORMATS.items())} | {
    DataType.TIME32: "ttm", DataType.TIME64: "ttu", DataType.TIMESTAMP: "tsu:", DataType.DURATION: "tDu",
    DataType.DECIMAL: "d:38,18", DataType.UUID: "w:16",
}  # fmt: skip


def parsed_format(text: str) -> tuple[DataType, str, tuple[str, ...]]:
    """Split an Arrow format string into type, pyarrow factory and its arguments. KeyError if a record can't hold it."""
    if text.startswith("d:"):
        return DataType.DECIMAL, "decimal128", tuple(text[2:].split(","))
    if text == "w:16":
        return DataType.UUID, "uuid", ()
    unit, colon, zone = text.partition(":")
    if colon and zone:
        kind, factory, arguments = FORMATS[unit + ":"]
        return kind, factory, (*arguments, zone)
    return FORMATS[text]


def arrow_type_of(text: str) -> Any:
    """Make the pyarrow.DataType of an Arrow format string."""
    import pyarrow as pa

    _, factory, arguments = parsed_format(text)
    return getattr(pa, factory)(*arguments)


def numpy_format_of(kind: DataType, text: str) -> str:
    """Name the NumPy format of the bytes of a field."""
    if kind.size == 16:
        return "V16"
    if kind in (DataType.TIMESTAMP, DataType.DURATION):
        letter = "M" if kind is DataType.TIMESTAMP else "m"
        return f"<{letter}8[{parsed_format(text)[2][0]}]"
    if kind is DataType.BOOL:
        return "?"
    letter = "f" if kind.is_float else "u" if kind.value.startswith("u") else "i"
    return f"<{letter}{kind.size}"
