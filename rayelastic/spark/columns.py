"""Matches the columns of a DataFrame to fields, when the source is declared."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType


def match_columns(
    spark_schema: StructType, declared: object | None, renamed: Mapping[str, str]
) -> tuple[Schema, tuple[str, ...]]:
    """Return the schema of the tuples and the column of each field.

    Args:
        spark_schema: The schema of the DataFrame.
        declared: The user's schema; `None`: every column of the DataFrame.
        renamed: The column of a field, if their names differ.

    Raises:
        SchemaError: The message names the column and both types.
    """
    import pyarrow as pa

    if declared is None:
        fields = {column: name for name, column in renamed.items()}
        arrow = [_arrow_field(column, fields.get(column.name, column.name)) for column in spark_schema.fields]
        return Schema.of(pa.schema(arrow)), tuple(spark_schema.names)
    schema = Schema.of(declared)
    if unknown := set(renamed) - set(schema.names):
        raise SchemaError(
            f"columns= names {', '.join(map(repr, sorted(unknown)))}, which {schema.name} doesn't have",
            hint=f"Its fields are {', '.join(schema.names)}",
            code=ErrorCode.UNKNOWN_COLUMN,
        )
    names = []
    for expected in schema.to_arrow():
        name = renamed.get(expected.name, expected.name)
        if name not in spark_schema.names:
            raise _missing(spark_schema, expected.name, name)
        column = spark_schema[name]
        if not _fits(_arrow_field(column, expected.name).type, expected.type):
            raise SchemaError(
                f"column {name!r} of the DataFrame is {column.dataType.simpleString()}, "
                f"but field {expected.name!r} of {schema.name} takes {expected.type}",
                hint=f"Cast it (df.withColumn({name!r}, df[{name!r}].cast(...))), or declare the field as it is",
                code=ErrorCode.SCHEMA_MISMATCH,
            )
        names.append(name)
    return schema, tuple(names)


def _arrow_field(column: StructField, name: str) -> pa.Field:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return pa.field(name, to_arrow_type(column.dataType), nullable=column.nullable)
    except PySparkException as error:
        raise SchemaError(
            f"column {column.name!r} of the DataFrame is {column.dataType.simpleString()}, which a record can't hold",
            hint="Leave it out (df.drop), or cast it (to string, for example)",
            code=ErrorCode.UNSUPPORTED_TYPE,
        ) from error


def _missing(spark_schema: StructType, field_name: str, name: str) -> SchemaError:
    near = difflib.get_close_matches(name, spark_schema.names, n=1)
    guess = f"Did you mean columns={{{field_name!r}: {near[0]!r}}}? " if near else ""
    return SchemaError(
        f"the DataFrame has no column {name!r}; it has {', '.join(spark_schema.names)}",
        hint=f"{guess}Name the column of a field by columns={{{field_name!r}: 'its column'}}",
        code=ErrorCode.UNKNOWN_COLUMN,
    )


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether the field can hold every value of a Spark column unchanged."""
    import pyarrow as pa

    def widened(order: list[Any]) -> bool:
        return given in order and wanted in order and order.index(given) <= order.index(wanted)

    whole: list[Any] = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
    return bool(
        given == wanted
        or widened(whole)
        or widened([pa.int8(), pa.int16(), pa.int32(), pa.float64()])
        or widened([pa.float32(), pa.float64()])
        or (pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted) and given.unit == wanted.unit)
        or (_is_text(given) and _is_text(wanted))
        or (_is_bytes(given) and _is_bytes(wanted))
        or _fits_inside(given, wanted)
    )


def _fits_inside(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether arrays, structs and maps have the same parts; forbidden nulls are detected when they arrive."""
    import pyarrow as pa

    if pa.types.is_list(given) and pa.types.is_list(wanted):
        return _fits(given.value_type, wanted.value_type)
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        return _fits(given.key_type, wanted.key_type) and _fits(given.item_type, wanted.item_type)
    if not (pa.types.is_struct(given) and pa.types.is_struct(wanted)):
        return False
    names = {field.name: field.type for field in given}
    return all(field.name in names and _fits(names[field.name], field.type) for field in wanted)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_bytes(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return kind in (pa.binary(), pa.large_binary(), pa.binary_view())
