"""`enrich`: adds the fields of a table's row to each tuple of its key; a map or flat_map over a shipped table.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

import datetime as dt
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.operators.functions import function_operator
from rayelastic.graph.operators.joins.equality import type_text
from rayelastic.graph.operators.joins.names import added_name
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.schema import Field, Schema, laid_out
from rayelastic.graph.records.shown import invalid, shown
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.requests import FunctionKind
from rayelastic.graph.spec.upstream import Upstream

TABLE_SUFFIX = "_table"  # added to the names of its fields that the stream has, too


class _Lookup:
    """Finds the row of a tuple's key. A key with a None has no row, as in SQL."""

    def __init__(self, table: Mapping[Any, Any], keys: tuple[int, ...], missing: tuple[None, ...] | None) -> None:
        self._table = {key: tuple(row) if isinstance(row, tuple) else (row,) for key, row in table.items()}
        self._keys = keys
        self._missing = missing

    def row(self, t: Any) -> tuple[Any, ...] | None:
        keys = self._keys
        key = t[keys[0]] if len(keys) == 1 else tuple(t[key] for key in keys)
        if key is None or (len(keys) > 1 and any(part is None for part in key)):
            return self._missing
        return self._table.get(key, self._missing)


class _Inner(_Lookup):
    def __call__(self, t: Any) -> Iterator[tuple[Any, ...]]:
        row = self.row(t)
        if row is not None:
            yield (*t, *row)


class _Left(_Lookup):
    def __call__(self, t: Any) -> tuple[Any, ...]:
        row = self.row(t)
        assert row is not None
        return (*t, *row)


def enrich(up: Upstream, name: str, table: Mapping[Any, Any], how: str, schema: object, suffix: str) -> OperatorSpec:
    """See ``KeyedStream.enrich``."""
    with NewOperator(name, up.operators):
        if not isinstance(table, Mapping):
            raise GraphError(f"{shown(table)} isn't a table", hint="Pass {key: row}", code=ErrorCode.WRONG_TYPE)
        if how not in ("inner", "left"):
            raise invalid("how", how, "Choose 'inner' or 'left'", ErrorCode.UNKNOWN_CHOICE)
        rows = _row_schema(table, schema)
        _check_rows(table, [up.schema.field(key) for key in up.keys], len(rows.fields))
        gives = _schema(name, up.schema, rows, suffix, outer=how == "left")
    keys = tuple(up.schema.names.index(key) for key in up.keys)
    if how == "left":
        lookup = _Left(table, keys, (None,) * len(rows.fields))
        return function_operator(up, FunctionKind.MAP, name, lookup, schema=gives, lane="python")
    return function_operator(up, FunctionKind.FLAT_MAP, name, _Inner(table, keys, None), schema=gives, lane="python")


def _row_schema(table: Mapping[Any, Any], schema: object) -> Schema:
    if schema is not None:
        return Schema.of(schema)
    first = next(iter(table.values()), None)
    if first is None or type(first) is tuple:
        raise GraphError(
            "the fields of the table's rows are unknown", hint="Pass schema={field: type}", code=ErrorCode.NO_SCHEMA
        )
    return Schema.of(type(first))


def _check_rows(table: Mapping[Any, Any], keys: Sequence[Field], fields: int) -> None:
    for key, row in table.items():
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != len(keys):
            raise GraphError(
                f"the table has key {shown(key)}",
                hint=f"Pass a tuple of {len(keys)} for several fields",
                code=ErrorCode.KEY_MISMATCH,
            )
        for part, field in zip(parts, keys, strict=True):
            if part is not None and not _can_equal(part, field):
                raise GraphError(
                    f"the table has key {shown(part)}, which never equals a {type_text(field)} such as '{field.name}'",
                    hint="Use keys of the field's type",
                    code=ErrorCode.KEY_MISMATCH,
                )
        if (len(row) if isinstance(row, tuple) else 1) != fields:
            raise GraphError(
                f"the table has row {shown(row)} for {shown(key)}",
                hint=f"Pass {fields} fields",
                code=ErrorCode.SCHEMA_MISMATCH,
            )


def _can_equal(value: Any, field: Field) -> bool:
    """Return whether Python may find a value of the field equal to a table's value."""
    kind = field.type
    if kind.is_numeric or kind is DataType.DECIMAL:
        return isinstance(value, numbers.Number) and not isinstance(value, bool)
    if kind is DataType.TIMESTAMP:
        is_zoned = bool(field.format.partition(":")[2])
        return isinstance(value, dt.datetime) and (value.utcoffset() is not None) == is_zoned
    if kind in (DataType.DATE32, DataType.DATE64):
        return isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return isinstance(value, plain_form(field.format).cls or kind.python_type)


def _schema(name: str, stream: Schema, rows: Schema, suffix: str, *, outer: bool) -> Schema:
    columns = [(field.name, field.format, field.nullable) for field in stream.fields]
    for field in rows.fields:
        columns.append((added_name(field.name, columns, suffix), field.format, field.nullable or outer))
    return laid_out(name, columns)
