"""Converts a field's annotation into its form: Python types, typing's generics, classes, pyarrow's types.

pyarrow and numpy types are recognised by their module, and the libraries are imported only for their own types.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import types
import typing
import uuid
from typing import Any

from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.data_type import FORMATS, HOLDS, DataType, arrow_type_of, own_class
from rayelastic.graph.records.forms import (
    JSON,
    Form,
    Json,
    decimal_form,
    enum_form,
    list_form,
    map_form,
    object_form,
    plain_form,
    struct_form,
)
from rayelastic.graph.records.names import is_field_name
from rayelastic.graph.records.record_classes import field_names

_OF_PYTHON: dict[object, DataType] = {
    bool: DataType.BOOL, int: DataType.INT64, float: DataType.FLOAT64, str: DataType.STRING, bytes: DataType.BINARY,
    own_class(dt.datetime): DataType.TIMESTAMP, own_class(dt.date): DataType.DATE32, dt.time: DataType.TIME64,
    dt.timedelta: DataType.DURATION, decimal.Decimal: DataType.DECIMAL, uuid.UUID: DataType.UUID,
}  # fmt: skip
_LISTS = (list, collections.abc.Sequence)
_MAPS = (dict, collections.abc.Mapping)
_UNITS = {"s": "s", "ms": "m", "us": "u", "ns": "n"}

Optional = tuple[Form | None, bool]  # a form, None if unsupported, and whether a value may be None


def optional_form(annotation: object, inside: tuple[type, ...] = ()) -> Optional:
    """Return the form of an annotation, and whether it may be None.

    Args:
        annotation: Of a field, of a list's items, and so on.
        inside: The classes around it.
    """
    if annotation is Any:
        return object_form(), True
    if annotation is Json:
        return JSON, True
    nullable = False
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        arguments = [a for a in typing.get_args(annotation) if a is not type(None)]
        nullable = len(arguments) < len(typing.get_args(annotation))
        annotation = arguments[0] if len(arguments) == 1 else annotation
    form = form_of(annotation, inside)
    return form, nullable or (form is not None and form.kind in (DataType.OBJECT, DataType.JSON))


def form_of(annotation: object, inside: tuple[type, ...] = ()) -> Form | None:
    """Return the form of a Python, NumPy, pyarrow or own type; None if a record can't hold it."""
    if isinstance(annotation, DataType):
        return _of_data_type(annotation)
    origin = typing.get_origin(annotation)
    if origin is not None:
        return _of_generic(origin, typing.get_args(annotation), inside)
    if isinstance(annotation, type):
        return _of_class(annotation, inside)
    package = type(annotation).__module__.partition(".")[0]
    if package == "pyarrow":
        return _of_arrow(annotation)
    if package == "numpy" and getattr(annotation, "names", ()) is None:
        return numpy_form(annotation)
    return None


def _of_data_type(kind: DataType) -> Form | None:
    if kind is DataType.JSON:
        return JSON
    return plain_form(kind.default_format) if kind.default_format else None


def _of_generic(origin: object, arguments: tuple[Any, ...], inside: tuple[type, ...]) -> Form | None:
    if origin is typing.Annotated:
        zone = next((said for said in arguments[1:] if isinstance(said, dt.tzinfo)), None)
        if zone is not None and form_of(arguments[0], inside) == plain_form(DataType.TIMESTAMP.default_format):
            return plain_form(f"tsu:{_name_of(zone)}")
        said = [form for form in map(form_of, arguments[1:]) if form is not None]
        return said[0] if said else form_of(arguments[0], inside)
    if origin is typing.Literal:
        kinds = {type(value) for value in arguments}
        return form_of(kinds.pop()) if len(kinds) == 1 else None
    if origin in _LISTS:
        return _of_items(arguments[0], inside, list)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _of_items(arguments[0], inside, tuple)
    if origin in _MAPS:
        key, _ = optional_form(arguments[0], inside)
        value, nullable = optional_form(arguments[1], inside)
        if key is None or value is None or key.holds_objects or key.kind in _NO_KEYS:
            return None
        return map_form(key, value, nullable=nullable)
    return None


def _name_of(zone: dt.tzinfo) -> str:
    """Return Arrow's name of a zone: the key of a ZoneInfo, UTC, or an offset of hours and minutes."""
    offset = zone.utcoffset(None)
    name = getattr(zone, "key", None) or ("UTC" if offset == dt.timedelta() else None)
    if name is None and offset is not None and not offset % dt.timedelta(minutes=1):
        minutes = abs(offset) // dt.timedelta(minutes=1)
        name = f"{'-' if offset < dt.timedelta() else '+'}{minutes // 60:02}:{minutes % 60:02}"
    if name is None:
        raise SchemaError(
            f"{zone!r} isn't a time zone with a name",
            hint="Pass datetime.UTC or a zoneinfo.ZoneInfo",
            code=ErrorCode.UNKNOWN_TIME_ZONE,
        )
    return str(name)


_NO_KEYS = (DataType.LIST, DataType.MAP, DataType.JSON, DataType.STRUCT)


def _of_items(item: object, inside: tuple[type, ...], of: type) -> Form | None:
    form, nullable = optional_form(item, inside)
    return None if form is None else list_form(form, nullable=nullable, of=of)


def _of_class(cls: type, inside: tuple[type, ...]) -> Form | None:
    cls = own_class(cls)
    if cls in _OF_PYTHON:
        return plain_form(_OF_PYTHON[cls].default_format)
    if cls is Json:
        return JSON
    if issubclass(cls, enum.Enum):
        return enum_form(cls)
    if hasattr(cls, "_fields" if issubclass(cls, tuple) else "__attrs_attrs__") or dataclasses.is_dataclass(cls):
        return _of_fields(cls, inside)
    if cls.__module__ == "numpy":
        known = {"bool_": "bool", "str_": "string", "bytes_": "binary"}.get(cls.__name__, cls.__name__)
        return _type_named(known)
    return None


def _of_fields(cls: type, inside: tuple[type, ...]) -> Form:
    """Return a struct with the fields of a named tuple or dataclass."""
    if cls in inside:
        raise SchemaError(
            f"{cls.__name__} contains itself",
            hint="Declare a class for each level, or use rel.Json",
            code=ErrorCode.RECURSIVE_RECORD,
        )
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        raise SchemaError(
            f"the annotations of {cls.__name__} can't be read: {error}",
            hint="Define the types that it names in its module",
            code=ErrorCode.BAD_ANNOTATION,
        ) from error
    parts = []
    for name in _names_of(cls):
        _check_name(cls.__name__, name)
        form, nullable = optional_form(hints.get(name), (*inside, cls))
        if form is None:
            raise SchemaError(
                f"field {name!r} of {cls.__name__}: {_shown(hints.get(name))} doesn't fit a record",
                hint=HOLDS,
                code=ErrorCode.UNSUPPORTED_TYPE,
            )
        parts.append((name, form, nullable))
    if not parts:
        raise SchemaError(f"{cls.__name__} has no fields", hint="Declare at least one", code=ErrorCode.NO_FIELDS)
    return struct_form(parts, cls)


def _names_of(cls: Any) -> tuple[str, ...]:
    return tuple(cls._fields) if issubclass(cls, tuple) else field_names(cls) or ()


def _check_name(where: str, name: str) -> None:
    if not is_field_name(name):
        raise SchemaError(
            f"field {name!r} of {where} can't be an attribute of a tuple",
            hint="Rename it to a Python name that isn't a keyword and doesn't start with an underscore",
            code=ErrorCode.BAD_FIELD_NAME,
        )


def _shown(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


# --- pyarrow and NumPy ----------------------------------------------------------------------------------------------


@functools.cache
def _arrow_formats() -> dict[object, str]:
    return {arrow_type_of(text): text for text in FORMATS}


def _of_arrow(kind: Any) -> Form | None:
    import pyarrow as pa

    if not isinstance(kind, pa.DataType):
        return None
    if (text := _arrow_formats().get(kind)) is not None:
        return plain_form(text)
    if getattr(kind, "tz", None):
        return plain_form(f"ts{_UNITS[kind.unit]}:{kind.tz}")
    if pa.types.is_decimal128(kind):
        return decimal_form(kind.precision, kind.scale)
    if kind == pa.uuid():
        return plain_form("w:16")
    if isinstance(kind, pa.ExtensionType | pa.BaseExtensionType):
        return JSON if kind.extension_name == "arrow.json" else None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item = _of_part(kind.value_type)
        return None if item is None else list_form(item, nullable=kind.value_field.nullable)
    if pa.types.is_map(kind):
        key, value = _of_part(kind.key_type), _of_part(kind.item_type)
        if key is None or value is None or key.kind in _NO_KEYS:
            return None
        return map_form(key, value, nullable=kind.item_field.nullable)
    return _of_arrow_struct(kind) if pa.types.is_struct(kind) and kind.num_fields else None


def _of_part(kind: Any) -> Form | None:
    """Return the form of a part of a list, map or struct; texts have 32-bit offsets there, as in the engine."""
    form = _of_arrow(kind)
    return plain_form(form.lower()) if form in ("U", "Z") else form


def _of_arrow_struct(kind: Any) -> Form | None:
    parts = []
    for field in kind:
        _check_name("a struct", field.name)
        form = _of_part(field.type)
        if form is None:
            return None
        parts.append((field.name, form, bool(field.nullable)))
    return struct_form(parts, None)


def numpy_form(dtype: Any) -> Form | None:
    """Return the form of a NumPy dtype without fields; None if it is unsupported."""
    if dtype.kind in "US":
        return plain_form("u" if dtype.kind == "U" else "z")
    if dtype.kind in "Mm":
        unit = dtype.str.partition("[")[2].rstrip("]")
        if dtype.kind == "M" and unit == "D":
            return plain_form("tdD")
        if unit not in _UNITS:
            return None
        return plain_form(f"ts{_UNITS[unit]}:" if dtype.kind == "M" else f"tD{_UNITS[unit]}")
    return _type_named(dtype.name)


def _type_named(name: str) -> Form | None:
    found = next(
        (t.default_format for t in DataType if t.value == name and (t.is_numeric or t.is_text or t is DataType.BOOL)),
        None,
    )
    return None if found is None else plain_form(found)
