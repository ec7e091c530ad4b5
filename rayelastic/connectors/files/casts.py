"""Casts of Arrow columns that never change a value silently, and Arrow types that records hold as other types."""

from __future__ import annotations

import contextlib
import math
import re
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.texts import has_own_text, of_texts, to_texts

if TYPE_CHECKING:
    import pyarrow as pa

EXACT_DIGITS = 15  # of a whole number that every float holds
LONGEST_WHOLE = 300  # digits of a whole number that may be a float
_PADDED = re.compile(rb"[+-]?0[0-9xX]")
_WHOLE = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(rb"[+-]?[0-9]*\.?[0-9]*[eE][+-]?[0-9]+")


def decoded(columns: pa.Schema) -> pa.Schema:
    """Replace types that records hold as others: dictionaries (categories) and views by their values, nulls by texts.

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


def has_digits(column: Any) -> bool:
    """Return whether no decimal of a column has more digits than its type allows, which pyarrow's readers don't check.

    >>> import decimal, pyarrow as pa
    >>> has_digits(pa.array(["7", "12.5"]).cast(pa.decimal128(3, 1)))
    True
    """
    import pyarrow.compute as pc

    kind = column.type
    ends = pc.min_max(column).as_py().values()
    most = 10 ** (kind.precision - kind.scale)
    return all(end is None or -most < end < most for end in ends)


def cast_table(table: Any, wanted: pa.Schema) -> Any:
    """Cast the columns of a table or batch, by their order, to those of a schema.

    Raises:
        ValueError: a value would change; pyarrow has other errors for a cast that it lacks.
    """
    columns = [cast_column(column, kind) for column, kind in zip(table.columns, wanted.types, strict=True)]
    return type(table).from_arrays(columns, schema=wanted)


def cast_column(column: Any, kind: pa.DataType) -> Any:
    """Cast a column; one of that type is returned unchanged.

    Raises:
        ValueError: a value would change; pyarrow has other errors for a cast that it lacks.
    """
    import pyarrow as pa

    if column.type == kind:
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([cast_column(chunk, kind) for chunk in column.chunks], kind)
    if pa.types.is_dictionary(column.type):
        return cast_column(column.dictionary, kind).take(column.indices)
    is_list = pa.types.is_list(kind) and pa.types.is_list(column.type)
    if is_list:
        items = cast_column(column.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(_offsets(column), items, kind, mask=column.is_null())
    if pa.types.is_struct(kind) and pa.types.is_struct(column.type) and _names(kind) == _names(column.type):
        parts = [cast_column(part, field.type) for part, field in zip(column.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if pa.types.is_map(kind) and pa.types.is_map(column.type):
        keys, items = cast_column(column.keys, kind.key_type), cast_column(column.items, kind.item_type)
        return pa.MapArray.from_arrays(column.offsets, keys, items, kind, mask=column.is_null())
    if pa.types.is_string(column.type) and has_own_text(kind):
        return of_texts(column, kind)
    if pa.types.is_string(kind) and has_own_text(column.type):
        return to_texts(column)
    if pa.types.is_temporal(kind) and pa.types.is_string(column.type):
        return _moments(column, kind)
    return _plain_cast(column, kind)


def _names(kind: pa.StructType) -> list[str]:
    return [field.name for field in kind]


def _offsets(column: pa.ListArray) -> pa.Array:
    """Return where each list begins in the column of all items."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(column), 0)
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])


def _plain_cast(column: Any, kind: pa.DataType) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_temporal(kind) and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise ValueError(f"{column.type} has no unit of time; declare a number, which event_time(unit=) takes")
    both_times = pa.types.is_timestamp(kind) and pa.types.is_timestamp(column.type)
    if both_times and (kind.tz is None) != (column.type.tz is None):
        raise ValueError(f"only one of {column.type} and {kind} has a zone; pa.timestamp('us', 'UTC') declares one")
    if pa.types.is_date(kind) and pa.types.is_timestamp(column.type):
        result = None if column.type.tz else column.cast(kind)
        if result is None or pc.all(pc.equal(result.cast(column.type), column)).as_py() is False:
            raise ValueError(f"{column.type} has times of day or a zone, which {kind} doesn't hold")
        return result
    is_float = pa.types.is_floating(column.type)
    is_truth = pa.types.is_boolean(kind) and (is_float or pa.types.is_integer(column.type))
    if is_truth and pc.all(pc.is_in(column, pa.array([0, 1, None], column.type))).as_py() is False:
        raise ValueError(f"{column.type} has other values than 0 and 1")
    if pa.types.is_string(kind) and pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))  # the text of an offset has no seconds
    result = column.cast(kind)
    if pa.types.is_decimal128(kind) and not has_digits(result):
        raise ValueError(f"a value has more digits than {kind}")
    if pa.types.is_floating(kind) and is_float and kind.bit_width < column.type.bit_width:
        beyond = pc.and_(pc.is_inf(result.cast(pa.float64())), pc.invert(pc.is_inf(column.cast(pa.float64()))))
        if pc.any(beyond).as_py():
            raise ValueError(f"{column.filter(beyond)[0].as_py()} is beyond {kind}")
    return result


def _moments(text: Any, kind: pa.DataType) -> Any:
    """Parse texts as dates or times; more digits than the type's are allowed if they are zeros."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_time(kind):
        if pc.all(pc.match_substring_regex(text, "^[0-9]{2}:[0-9]{2}(:|$)")).as_py() is False:
            raise ValueError(f"a text isn't a {kind}")
        return _moments(pc.binary_join_element_wise("1970-01-01", text, "T"), pa.timestamp(kind.unit)).cast(kind)
    if not pa.types.is_timestamp(kind) or kind.unit == "ns":
        return text.cast(kind)
    try:
        return text.cast(kind)
    except pa.ArrowInvalid as error:
        finer = (pa.timestamp(unit, kind.tz) for unit in ("us", "ns"))
        for unit in finer:
            with contextlib.suppress(pa.ArrowInvalid):
                return text.cast(unit).cast(kind)
        raise error


def is_padded(text: bytes) -> bool:
    """Return whether a number has leading zeros, which no numeric type keeps."""
    return _PADDED.match(text) is not None


def is_inexact(text: bytes) -> bool:
    """Return whether a number is a whole one that a float can't hold exactly, or exceeds all floats.

    >>> is_inexact(b"99999999999999999999"), is_inexact(b"9007199254740992"), is_inexact(b"0.12345678901234567890")
    (True, False, False)
    >>> is_inexact(b"1e400"), is_inexact(b"inf")
    (True, False)
    """
    if b"e" in text or b"E" in text:
        return _NUMBER.fullmatch(text.strip()) is not None and math.isinf(float(text))
    if len(text) <= EXACT_DIGITS or _WHOLE.fullmatch(text.strip()) is None:
        return False
    return len(text) > LONGEST_WHOLE or int(text) != int(float(text))
