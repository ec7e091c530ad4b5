"""Casts of Arrow columns that never change a value silently, and types that are other spellings of those of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["cast_column", "cast_table", "decoded"]


def decoded(columns: pa.Schema) -> pa.Schema:
    """Replace types that are other spellings of what a record holds: dictionaries (categories), views, nulls as texts.

    >>> import pyarrow as pa
    >>> decoded(pa.schema([("colour", pa.dictionary(pa.int8(), pa.string())), ("nothing", pa.null())])).types
    [DataType(string), DataType(string)]
    """
    import pyarrow as pa

    return pa.schema([column.with_type(_plain(column.type)) for column in columns])


def _plain(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    def inside(field: pa.Field) -> pa.Field:
        return field.with_type(_plain(field.type))

    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item = inside(kind.value_field)
        if item.type == kind.value_type:
            return kind
        return pa.large_list(item) if pa.types.is_large_list(kind) else pa.list_(item)
    if pa.types.is_struct(kind):
        return pa.struct([inside(field) for field in kind])
    other = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary(), pa.null(): pa.string()}
    return other.get(kind, kind)


def cast_table(table: Any, wanted: pa.Schema) -> Any:
    """Cast the columns of a table or batch, by their order, to those of a schema.

    Raises:
        ValueError: a value would change; TypeError or NotImplementedError: there is no such cast.
    """
    columns = [cast_column(column, kind) for column, kind in zip(table.columns, wanted.types, strict=True)]
    return type(table).from_arrays(columns, schema=wanted)


def cast_column(column: Any, kind: pa.DataType) -> Any:
    """Cast a column; one that is of the type stays as it is.

    Raises:
        ValueError: a value would change; TypeError or NotImplementedError: there is no such cast.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type == kind:
        return column
    both_times = pa.types.is_timestamp(kind) and pa.types.is_timestamp(column.type)
    if both_times and (kind.tz is None) != (column.type.tz is None):
        raise ValueError(f"only one of {column.type} and {kind} has a zone; pa.timestamp('us', 'UTC') declares one")
    is_float = pa.types.is_floating(column.type)
    if pa.types.is_boolean(kind) and (is_float or pa.types.is_integer(column.type)):
        text = column.cast(pa.string())
        made = pc.equal(text, "1")
        if not pc.all(pc.or_(made, pc.equal(text, "0"))).as_py():
            raise ValueError(f"{column.type} has other values than 0 and 1")
        return made
    made = column.cast(kind)
    if pa.types.is_floating(kind) and is_float and kind.bit_width < column.type.bit_width:
        beyond = pc.and_(pc.is_inf(made.cast(pa.float64())), pc.invert(pc.is_inf(column.cast(pa.float64()))))
        if pc.any(beyond).as_py():
            raise ValueError(f"{column.filter(beyond)[0].as_py()} is beyond {kind}")
    return made
