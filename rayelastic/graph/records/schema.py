"""Schemas: the fields of a stream's records, and their layout byte by byte.

The layout rule is that of native_sched/include/rayelastic/record/schema.hpp. Fields are in declared order, each at its
natural alignment (text at 8). One validity bit per nullable field follows, in field order, bit 0 first, 1 = present.
The size is rounded up to 8, at least 8. Knows no operators. Conversions alone import pyarrow and numpy.
"""

from __future__ import annotations

import difflib
import functools
import keyword
import typing
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.conversion import columns_of
from rayelastic.graph.records.data_type import HOLDS, Column, DataType, numpy_format_of, parsed_format
from rayelastic.graph.records.forms import Form, known_of, plain_form, within_process
from rayelastic.graph.records.names import is_field_name
from rayelastic.graph.records.record_classes import values_by_name
from rayelastic.graph.records.shown import shown

__all__ = ["DataType", "Field", "Schema", "is_generated", "laid_out"]


_HOLD_NAMES = (DataType.STRUCT, DataType.MAP, DataType.JSON, DataType.OBJECT)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a schema, laid out.

    Args:
        name: A Python identifier.
        type: The type of its values.
        nullable: Whether it may be None.
        format: Its form: an Arrow C Data Interface format string, with unit and time zone, or one of forms.py.
        offset: Bytes from the start of the record.
        validity: Its bit in the validity bytes, -1 if not nullable.
    """

    name: str
    type: DataType
    nullable: bool
    format: str
    offset: int
    validity: int

    def __str__(self) -> str:
        form = plain_form(self.format)
        shown = form.shown
        if shown == self.type.value and self.format != self.type.default_format and not isinstance(self.format, Form):
            _, factory, arguments = parsed_format(self.format)
            shown = f"{factory}[{', '.join(arguments)}]" if arguments else factory
        return f"{self.name}: {shown}{' | None' if self.nullable else ''}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The layout of a stream's records. Make it with ``Schema.of``; equal when names, types and layout are.

    Args:
        name: The records' name in messages and tuple classes.
        fields: Its fields, in declared order.
        record_size: Bytes of a record, a multiple of 8.
        validity_offset: The start of the validity bytes.

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
    >>> schema.names, schema.find("size"), schema.has_text, schema.holds_objects
    (('symbol', 'price', 'volume'), None, True, False)
    >>> schema.same_fields(schema.renamed("Quote")), schema.takes_names, schema.within_process() == schema
    (True, True, True)
    >>> schema.suggestion("prise")
    "Did you mean 'price'? Its fields are symbol, price, volume"
    >>> schema.to_arrow().names, schema.to_numpy().itemsize, schema.known
    (['symbol', 'price', 'volume'], 40, (None, None, None))
    """

    name: str
    fields: tuple[Field, ...]
    record_size: int
    validity_offset: int
    declared_type: type | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def of(declared: object, *, name: str | None = None) -> Schema:
        """Lay out a declaration.

        Args:
            declared: A class with typed fields (NamedTuple, dataclass, TypedDict, attrs, Pydantic, or annotations
                alone). Or a dict of field names to types: Python types, NumPy scalar types, DataType, pyarrow types,
                each `| None` for nullable. Or a pyarrow.Schema, a NumPy structured dtype, or a Schema, which is
                returned unchanged. Or one plain type, for records of one field `value`. Functions receive NamedTuples
                in any case.
            name: The records' name; the class's name, or 'Record', by default.

        Raises:
            SchemaError: A record can't hold a field; the message names it.

        >>> print(Schema.of({"word": str, "count": int}, name="Word"))
        Word(word: string, count: int64)
        >>> print(Schema.of(float))
        Record(value: float64)
        >>> Schema.of({"tags": set})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        rayelastic.errors.SchemaError: field 'tags' of Record: set doesn't fit a record. A record holds bool, ...
        """
        return declared if isinstance(declared, Schema) else laid_out(*columns_of(declared, name))

    @property
    def names(self) -> tuple[str, ...]:
        """The field names, in order."""
        return tuple(f.name for f in self.fields)

    @property
    def has_text(self) -> bool:
        """Whether a record refers to bytes outside itself."""
        return any(f.type.is_variable for f in self.fields)

    def find(self, name: str) -> Field | None:
        """Return the field of that name, or None."""
        return next((f for f in self.fields if f.name == name), None)

    def field(self, name: str) -> Field:
        """Return the field of that name.

        Raises:
            SchemaError: It doesn't exist; the message lists the fields and suggests a similar name.
        """
        field = self.find(name)
        if field is None:
            raise SchemaError(
                f"{self.name} has no field {name!r}", hint=self.suggestion(name), code=ErrorCode.UNKNOWN_FIELD
            )
        return field

    def suggestion(self, name: object) -> str:
        """Return a sentence that suggests a field instead of one that doesn't exist."""
        close = difflib.get_close_matches(str(name), self.names, n=1)
        meant = f"Did you mean '{close[0]}'? " if close else ""
        return f"{meant}Its fields are {', '.join(self.names) or 'none'}"

    @property
    def tuple_type(self) -> type:
        """Return the class of the tuples that Python functions receive: the user's own, or a generated one."""
        return self.declared_type or generated_type(self.name, self.names)

    def same_fields(self, other: Schema) -> bool:
        """Return whether records of both have the same layout, whatever the names of the schemas."""
        return self.fields == other.fields

    def renamed(self, name: str) -> Schema:
        """Return the same fields under another name."""
        return Schema(name, self.fields, self.record_size, self.validity_offset, self.declared_type)

    def to_arrow(self) -> Any:
        """Make the pyarrow.Schema of batches that hold these records."""
        import pyarrow as pa

        return pa.schema([pa.field(f.name, plain_form(f.format).arrow, nullable=f.nullable) for f in self.fields])

    @property
    def known(self) -> tuple[Any, ...]:
        """Return what the native codec needs for each field's values besides their form."""
        return tuple(known_of(plain_form(f.format), generated_type) for f in self.fields)

    @property
    def holds_objects(self) -> bool:
        """Return whether it has fields of Python objects."""
        return any(plain_form(f.format).holds_objects for f in self.fields)

    @property
    def takes_names(self) -> bool:
        """Return whether a dict or an instance stands for a record; it doesn't if the only field holds such values."""
        return len(self.fields) != 1 or self.fields[0].type not in _HOLD_NAMES

    def values(self, record: Any) -> tuple[Any, ...]:
        """Return the values of the fields of a function's result: a tuple, a dict, an instance, or one plain value.

        Raises:
            TypeError: A dict or instance lacks a field, or has another.

        >>> Schema.of({"a": int, "b": int}).values({"b": 2, "a": 1})
        (1, 2)
        """
        if isinstance(record, tuple):
            return record
        named = values_by_name(record) if self.takes_names else None
        if named is None:
            return (record,)
        missing = next((f.name for f in self.fields if f.name not in named and not f.nullable), None)
        surplus = next((name for name in named if name not in self.names), None)
        if missing is not None or surplus is not None:
            what = f"lacks the field {missing!r}" if missing is not None else f"has no field {surplus!r} in its schema"
            raise TypeError(f"{shown(record)} {what}: pass each of {', '.join(self.names)} and nothing else")
        return tuple(named.get(name) for name in self.names)

    def within_process(self) -> Schema:
        """Return the schema of tuples that never leave their process: objects are pickled without their seal."""
        forms = (within_process(plain_form(f.format)) for f in self.fields)
        fields = (
            replace(f, format=form) if form.holds_objects else f for f, form in zip(self.fields, forms, strict=True)
        )
        return replace(self, fields=tuple(fields))

    def to_numpy(self) -> Any:
        """Make the NumPy structured dtype of the same bytes: text as 16 raw bytes, validity bytes in the padding."""
        import numpy as np

        return np.dtype(
            {
                "names": list(self.names),
                "formats": [numpy_format_of(f.type, f.format) for f in self.fields],
                "offsets": [f.offset for f in self.fields],
                "itemsize": self.record_size,
            }
        )

    def __str__(self) -> str:
        return f"{self.name}({', '.join(str(f) for f in self.fields)})"


def laid_out(name: str, columns: Iterable[Column], declared_type: type | None = None) -> Schema:
    """Lay out columns in order.

    Raises:
        SchemaError: naming the field: declared twice, no identifier, or a format that a record can't hold.
    """
    columns = list(columns)
    twice = [n for n, times in Counter(n for n, _, _ in columns).items() if times > 1]
    if twice:
        raise SchemaError(
            f"field {twice[0]!r} of {name} is declared twice",
            hint="Rename one of the two",
            code=ErrorCode.DUPLICATE_FIELD,
        )
    fields: list[Field] = []
    end = bits = 0
    for column, text, nullable in columns:
        _check_field_name(name, column)
        try:
            form = plain_form(text)
        except KeyError:
            raise SchemaError(
                f"field '{column}' of {name} has Arrow format {text!r}, which a record can't hold",
                hint=HOLDS,
                code=ErrorCode.UNSUPPORTED_TYPE,
            ) from None
        kind = form.kind
        offset = _round_up(end, kind.alignment)
        said = form if form.of is not None or kind.is_made else str(form)
        fields.append(Field(column, kind, nullable, said, offset, bits if nullable else -1))
        bits += nullable
        end = offset + kind.size
    return Schema(name, tuple(fields), max(8, _round_up(end + (bits + 7) // 8, 8)), end, declared_type)


def _round_up(value: int, alignment: int) -> int:
    return (value + alignment - 1) // alignment * alignment


def _check_field_name(schema: str, name: object) -> None:
    if not is_field_name(name):
        raise SchemaError(
            f"field {name!r} of {schema} can't be an attribute of a tuple",
            hint="Rename it to a Python name that isn't a keyword and doesn't start with an underscore",
            code=ErrorCode.BAD_FIELD_NAME,
        )


@functools.cache
def generated_type(name: str, names: tuple[str, ...]) -> type:
    """Make a NamedTuple class for a schema that has none, the same one for the same fields within a process."""
    annotated = [(n, typing.Any) for n in names]
    valid_name = name if name.isidentifier() and not keyword.iskeyword(name) else "Record"
    tuple_class: type = typing.NamedTuple(valid_name, annotated)  # type: ignore[misc]

    def reduced(self: Any) -> tuple[Any, ...]:
        return _rebuilt, (name, names, tuple(self))

    tuple_class.__reduce__ = reduced  # type: ignore[method-assign]
    tuple_class.__getitem__ = _item  # type: ignore[method-assign]
    return tuple_class


def is_generated(tuple_class: type | None) -> bool:
    """Return whether it is a class of `generated_type`, whose fields may be read as t["field"]."""
    return getattr(tuple_class, "__getitem__", None) is _item


def _item(self: Any, key: Any) -> Any:
    """Return an item of a tuple, also by the name of its field."""
    if not isinstance(key, str):
        return tuple.__getitem__(self, key)
    if key not in self._fields:
        raise KeyError(f"{type(self).__name__} has no field {key!r}. Its fields are {', '.join(self._fields)}")
    return getattr(self, key)


def _rebuilt(name: str, names: tuple[str, ...], values: tuple[object, ...]) -> object:
    """Unpickle a tuple of a generated class."""
    return generated_type(name, names)(*values)
