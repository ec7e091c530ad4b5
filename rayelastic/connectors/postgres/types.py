"""The PostgreSQL types of a record's fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import plain_form

if TYPE_CHECKING:
    from rayelastic.graph.records.schema import Field

_TYPES = {
    DataType.BOOL: "boolean",
    DataType.INT8: "smallint",
    DataType.INT16: "smallint",
    DataType.INT32: "integer",
    DataType.INT64: "bigint",
    DataType.UINT8: "smallint",
    DataType.UINT16: "integer",
    DataType.UINT32: "bigint",
    DataType.UINT64: "numeric(20)",
    DataType.FLOAT16: "real",
    DataType.FLOAT32: "real",
    DataType.FLOAT64: "double precision",
    DataType.DATE32: "date",
    DataType.DATE64: "date",
    DataType.TIME32: "time",
    DataType.TIME64: "time",
    DataType.DURATION: "interval",
    DataType.STRING: "text",
    DataType.BINARY: "bytea",
    DataType.UUID: "uuid",
    DataType.JSON: "jsonb",
}


def column_type(field: Field) -> str:
    """Return the type of a column, with NOT NULL if the field is never null."""
    if field.type is DataType.TIMESTAMP:
        type_name = "timestamptz" if field.format.partition(":")[2] else "timestamp"
    elif field.type is DataType.DECIMAL:
        type_name = f"numeric({field.format[2:]})"
    elif field.type is DataType.ENUM:
        type_name = "text" if str(plain_form(field.format).arrow) == "string" else "bigint"
    else:
        type_name = _TYPES[field.type]
    return type_name if field.nullable else f"{type_name} NOT NULL"
