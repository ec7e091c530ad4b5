"""Arrow types whose parts may be null: where a struct is null so are its parts, whatever they take else.

Casts and readers of pyarrow know no such difference; the native reader, which gets the batches, does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["with_nullable_parts"]


def with_nullable_parts(
    kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType] = lambda kind: kind
) -> pa.DataType:
    """The same type with nullable parts.

    Args:
        kind: any type.
        leaf: what becomes of types without parts.

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
