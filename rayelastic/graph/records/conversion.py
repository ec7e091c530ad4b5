"""From what users declare records with to the columns of a schema: NamedTuple classes, dicts, pyarrow and NumPy types.

pyarrow and numpy are recognised by the module of what is given, and imported only when one of theirs is there.
"""

from __future__ import annotations

import datetime as dt
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

from rayelastic.errors import SchemaError
from rayelastic.graph.records.data_type import FORMATS, HOLDS, Column, DataType, arrow_type_of
from rayelastic.graph.records.shown import shown

_OF_PYTHON: dict[object, DataType] = {
    bool: DataType.BOOL, int: DataType.INT64, float: DataType.FLOAT64, str: DataType.STRING, bytes: DataType.BINARY,
    dt.datetime: DataType.TIMESTAMP, dt.date: DataType.DATE32, dt.time: DataType.TIME64,
    dt.timedelta: DataType.DURATION,
}  # fmt: skip

Columns = tuple[str, list[Column], type | None]  # name of the schema, its columns, and the class of its tuples

_UNITS = {"s": "s", "ms": "m", "us": "u", "ns": "n"}

_TAKES = "Give a NamedTuple class, a dict of field names to types, a pyarrow.Schema, or a NumPy structured dtype"


def columns_of(declared: object, name: str | None) -> Columns:
    """Find the name, columns and class of anything but a Schema; see ``Schema.of``."""
    called = name or "Record"
    if isinstance(declared, type) and issubclass(declared, tuple) and hasattr(declared, "_fields"):
        return _of_class(declared, name or declared.__name__)
    if isinstance(declared, Mapping):
        return called, [_of_annotation(called, n, annotation) for n, annotation in declared.items()], None
    package = type(declared).__module__.partition(".")[0]
    if package == "pyarrow" and hasattr(declared, "metadata") and hasattr(declared, "names"):
        return _of_arrow(declared, called)
    if package == "numpy" and getattr(declared, "names", None):
        return _of_numpy(declared, called)
    united = typing.get_origin(declared) in (typing.Union, types.UnionType)
    if united or _scalar_format(declared) is not None:
        return called, [_of_annotation(called, "value", declared)], None
    raise SchemaError(f"{shown(declared)} is no schema", way_out=_TAKES)


def _of_class(declared: type, name: str) -> Columns:
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
    return name, columns, declared


def _of_annotation(schema: str, name: str, annotation: object) -> Column:
    nullable = False
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        arguments = [a for a in typing.get_args(annotation) if a is not type(None)]
        nullable = len(arguments) < len(typing.get_args(annotation))
        annotation = arguments[0] if len(arguments) == 1 else annotation
    text = _scalar_format(annotation)
    if text is None:
        shown = getattr(annotation, "__name__", None) if isinstance(annotation, type) else None
        raise SchemaError(f"field {name!r} of {schema}: {shown or annotation} can't be held by a record", way_out=HOLDS)
    return name, text, nullable


def _scalar_format(annotation: object) -> str | None:
    """Find the Arrow format of a Python, NumPy, pyarrow or own type; None if there is none."""
    if isinstance(annotation, DataType):
        return annotation.default_format
    if isinstance(annotation, type):
        if annotation in _OF_PYTHON:
            return _OF_PYTHON[annotation].default_format
        if annotation.__module__ == "numpy":
            known = {"bool_": "bool", "str_": "string", "bytes_": "binary"}.get(
                annotation.__name__, annotation.__name__
            )
            return _type_named(known)
        return None
    if type(annotation).__module__.partition(".")[0] == "pyarrow":
        return _arrow_formats().get(annotation) or _zoned_format(annotation)
    if type(annotation).__module__.partition(".")[0] == "numpy" and getattr(annotation, "names", ()) is None:
        return _numpy_scalar_format(annotation)
    return None


@functools.cache
def _arrow_formats() -> dict[object, str]:
    return {arrow_type_of(text): text for text in FORMATS}


def _zoned_format(arrow_type: Any) -> str | None:
    zone = getattr(arrow_type, "tz", None)
    return f"ts{_UNITS[arrow_type.unit]}:{zone}" if zone else None


def _of_arrow(declared: Any, name: str) -> Columns:
    columns = []
    for column in declared:
        text = _scalar_format(column.type)
        if text is None:
            way_out = f"Cast or leave out the column. {HOLDS}"
            raise SchemaError(
                f"field '{column.name}' of {name}: {column.type} can't be held by a record", way_out=way_out
            )
        columns.append((column.name, text, bool(column.nullable)))
    return name, columns, None


def _of_numpy(declared: Any, name: str) -> Columns:
    columns = []
    for column in declared.names:
        text = _numpy_scalar_format(declared[column])
        if text is None:
            raise SchemaError(
                f"field '{column}' of {name}: {declared[column]} can't be held by a record", way_out=HOLDS
            )
        columns.append((column, text, False))
    return name, columns, None


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
