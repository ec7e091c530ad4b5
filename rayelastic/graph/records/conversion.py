"""Converts declarations of records into columns of a schema: classes with fields, dicts, pyarrow and NumPy types.

pyarrow and numpy types are recognised by their module, and the libraries are imported only for their own types.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.annotations import form_of, numpy_form, optional_form
from rayelastic.graph.records.data_type import HOLDS, Column
from rayelastic.graph.records.record_classes import field_hints, field_names
from rayelastic.graph.records.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa

Columns = tuple[str, list[Column], type | None]  # name of the schema, its columns, and the class of its tuples

_TAKES = (
    "Give a class with typed fields (NamedTuple, dataclass, TypedDict), a dict of field names to types, "
    "a pyarrow.Schema, or a NumPy structured dtype"
)


def columns_of(declared: object, name: str | None) -> Columns:
    """Find the name, columns and class of any declaration but a Schema; see ``Schema.of``."""
    called = name or "Record"
    if isinstance(declared, type) and issubclass(declared, tuple) and hasattr(declared, "_fields"):
        return _of_class(declared, name or declared.__name__)
    if isinstance(declared, type) and (names := field_names(declared)) is not None:
        hints = _read(declared, field_hints)
        return name or declared.__name__, [_of_annotation(declared.__name__, n, hints[n]) for n in names], None
    if isinstance(declared, Mapping):
        return called, [_of_annotation(called, n, annotation) for n, annotation in declared.items()], None
    package = type(declared).__module__.partition(".")[0]
    if package == "pyarrow" and hasattr(declared, "metadata") and hasattr(declared, "names"):
        return _of_arrow(declared, called)
    if package == "numpy" and getattr(declared, "names", None):
        return _of_numpy(declared, called)
    united = typing.get_origin(declared) in (typing.Union, types.UnionType)
    if united or form_of(declared) is not None:
        return called, [_of_annotation(called, "value", declared)], None
    raise SchemaError(f"{shown(declared)} isn't a schema", hint=_TAKES, code=ErrorCode.WRONG_TYPE)


def _read(declared: type, hints: Callable[[type], dict[str, Any]]) -> dict[str, Any]:
    try:
        return hints(declared)
    except Exception as error:
        raise SchemaError(
            f"the annotations of {declared.__name__} can't be read: {error}",
            hint="Define the types that it names in its module",
            code=ErrorCode.BAD_ANNOTATION,
        ) from error


def _of_class(declared: type, name: str) -> Columns:
    annotations = _read(declared, lambda cls: typing.get_type_hints(cls, include_extras=True))
    columns = []
    for n in declared._fields:  # type: ignore[attr-defined]
        if n not in annotations:
            raise SchemaError(
                f"field '{n}' of {name} has no type",
                hint="Use typing.NamedTuple with annotations",
                code=ErrorCode.BAD_ANNOTATION,
            )
        columns.append(_of_annotation(name, n, annotations[n]))
    return name, columns, declared


def _of_annotation(schema: str, name: str, annotation: object) -> Column:
    text, nullable = optional_form(annotation)
    if text is None:
        shown = getattr(annotation, "__name__", None) if isinstance(annotation, type) else None
        raise SchemaError(
            f"field {name!r} of {schema}: {shown or annotation} doesn't fit a record",
            hint=HOLDS,
            code=ErrorCode.UNSUPPORTED_TYPE,
        )
    return name, text, nullable


def _of_arrow(declared: Any, name: str) -> Columns:
    columns: list[Column] = []
    for column in declared:
        text = form_of(column.type)
        if text is None:
            hint = f"Cast or leave out the column. {HOLDS}"
            raise SchemaError(
                f"field '{column.name}' of {name}: {column.type} doesn't fit a record",
                hint=hint,
                code=ErrorCode.UNSUPPORTED_TYPE,
            )
        columns.append((column.name, text, bool(column.nullable)))
    return name, columns, None


def _of_numpy(declared: Any, name: str) -> Columns:
    columns: list[Column] = []
    for column in declared.names:
        text = numpy_form(declared[column])
        if text is None:
            raise SchemaError(
                f"field '{column}' of {name}: {declared[column]} doesn't fit a record",
                hint=HOLDS,
                code=ErrorCode.UNSUPPORTED_TYPE,
            )
        columns.append((column, text, False))
    return name, columns, None


def with_nullable_parts(
    kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType] = lambda kind: kind
) -> pa.DataType:
    """Return the same type with nullable parts: if a struct is null, so are its parts, even non-nullable ones.

    Casts and readers of pyarrow ignore this difference; the native reader, which receives the batches, enforces it.

    Args:
        kind: Any type.
        leaf: Converts a type without parts.
    >>> import pyarrow as pa
    >>> with_nullable_parts(pa.struct([pa.field("x", pa.int64(), nullable=False)]))
    StructType(struct<x: int64>)
    """
    import pyarrow as pa

    def inside(field: pa.Field) -> pa.Field:
        return field.with_type(with_nullable_parts(field.type, leaf)).with_nullable(True)

    if pa.types.is_list(kind):
        return pa.list_(inside(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([inside(field) for field in kind])
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(with_nullable_parts(kind.key_type, leaf))
        return pa.map_(key, inside(kind.item_field))
    return leaf(kind)
