"""The columns that sources read, and the names of their fields, for all formats.

One rule: without a choice of the user, every column of the files is a field of the tuples, or is an error. `schema=`
and `columns=` are a choice. Reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rayelastic.connectors.files.locations import shown_location
from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.names import is_field_name
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import shown

Columns = Iterable[str] | Mapping[str, str] | None


def chosen_columns(
    columns: object, declared: Schema | None, has: Iterable[str], path: str, operator: str | None
) -> dict[str, str]:
    """Return {column of the file: field}, in the order of the fields.

    Args:
        columns: The user's choice: a list of columns, {column: field}, or None.
        declared: The user's schema.
        has: The columns of the file.
        path: The file; empty: a table.
        operator: The operator, for messages.

    Raises:
        SchemaError: The file lacks one of the columns, or a name is invalid.
    """
    has = list(has)
    if columns is None:
        chosen = {name: name for name in (has if declared is None else declared.names)}
        if declared is not None:
            check_columns(declared, has, path, operator)
    elif isinstance(columns, Mapping):
        chosen = dict(columns)
    elif isinstance(columns, Iterable) and not isinstance(columns, str | bytes):
        chosen = {name: name for name in columns}
    else:
        raise SchemaError(
            f"columns={shown(columns)} is invalid",
            operator=operator,
            hint="Pass a list of columns, or {column: field}",
            code=ErrorCode.WRONG_TYPE,
        )
    for column, field in chosen.items():
        _check_column(column, has, path, operator)
        if not is_field_name(field):
            raise SchemaError(
                f"column {column!r} can't be an attribute of a tuple as {field!r}",
                operator=operator,
                hint=f"Rename it: columns={{{column!r}: {_name_for(field, chosen.values())!r}, ...}}",
                code=ErrorCode.BAD_FIELD_NAME,
            )
    fields = list(chosen.values())
    if (twice := next((field for field in fields if fields.count(field) > 1), None)) is not None:
        raise SchemaError(
            "columns= maps two columns to one name",
            operator=operator,
            hint=f"Rename one of the two {twice!r}",
            code=ErrorCode.DUPLICATE_FIELD,
        )
    if declared is not None and columns is not None:
        check_columns(declared, fields, path, operator)
        chosen = {column: field for column, field in chosen.items() if field in declared.names}
        order = {field: column for column, field in chosen.items()}
        chosen = {order[field]: field for field in declared.names}
    return chosen


def _check_column(column: object, has: list[str], path: str, operator: str | None) -> None:
    if column not in has:
        raise SchemaError(
            f"{_shown(path)} has no column {column!r}",
            operator=operator,
            hint=f"Its columns are {', '.join(has)}",
            code=ErrorCode.UNKNOWN_COLUMN,
        )
    if has.count(column) > 1:
        raise SchemaError(
            f"{_shown(path)} has {has.count(column)} columns called {column!r}",
            operator=operator,
            hint="Rename them in the file, or leave them out with columns=" if path else "Rename one of them",
            code=ErrorCode.DUPLICATE_FIELD,
        )


def _shown(path: str) -> str:
    return repr(shown_location(path)) if path else "the table"


def _name_for(column: object, others: Iterable[object]) -> str:
    """Make a valid field name that no other field has.

    >>> _name_for("order id", []), _name_for("@timestamp", []), _name_for("5.1", []), _name_for("class", ["class_"])
    ('order_id', 'timestamp', 'f5_1', 'class_2')
    """
    name = re.sub(r"\W", "_", str(column)).strip("_") or "field"
    name = name if name[0].isalpha() else f"f{name}"
    name = name if is_field_name(name) else f"{name}_"
    taken = set(others) - {column}
    number = 2
    while name in taken:
        name, number = f"{name.rstrip('_0123456789')}_{number}", number + 1
    return name


def check_columns(declared: Schema, names: Iterable[str], path: str, operator: str | None) -> None:
    """Raise SchemaError if a file lacks a declared column."""
    names = list(names)
    for name in declared.names:
        if name not in names:
            raise SchemaError(
                f"{declared.name} declares '{name}', which {_shown(path)} doesn't have",
                operator=operator,
                hint=f"Its columns are {', '.join(names)}; columns={{column: {name!r}, ...}} renames one",
                code=ErrorCode.UNKNOWN_COLUMN,
            )


def check_types(types: object, fields: Iterable[str], declared: Schema | None, operator: str) -> None:
    """Raise SchemaError for types of an unknown field, or types next to a schema."""
    if not isinstance(types, Mapping):
        raise SchemaError(
            f"types={shown(types)} is invalid", operator=operator, hint="Pass {field: type}", code=ErrorCode.WRONG_TYPE
        )
    if types and declared is not None:
        raise SchemaError(
            "schema= and types= both set types",
            operator=operator,
            hint="Leave one of them out",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    fields = list(fields)
    for name in types:
        if name not in fields:
            raise SchemaError(
                f"types= names {name!r}, which isn't a field",
                operator=operator,
                hint=f"The fields are {', '.join(fields)}",
                code=ErrorCode.UNKNOWN_FIELD,
            )


def inferred_schema(fields: Mapping[str, Any], inferred: Iterable[str]) -> Schema:
    """Lay out fields; those with inferred types are nullable."""
    inferred, columns = set(inferred), []
    for name, kind in fields.items():
        field = Schema.of({name: kind}).fields[0]
        columns.append((name, field.format, field.nullable or name in inferred))
    return laid_out("Record", columns)


def renamed(columns: Any, chosen: Mapping[str, str]) -> Any:
    """Select the chosen columns of a pyarrow schema, table or batch, under the names of their fields."""
    import pyarrow as pa

    if isinstance(columns, pa.Schema):
        return pa.schema([columns.field(column).with_name(field) for column, field in chosen.items()])
    return columns.select(list(chosen)).rename_columns(list(chosen.values()))
