"""JSON values in records: whether they are null, and their conversion for fields of other types (json.h)."""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

from typing import Any

from numba.core import types

from rayelastic.compile.lowering.base import services
from rayelastic.compile.lowering.base.views import TEXT
from rayelastic.graph.records.data_type import DataType


def is_present(context: Any, builder: Any, value: Any) -> Any:
    """Return whether the view of a value isn't that of null."""
    return builder.not_(_called(context, builder, "rel_json_is_null", types.boolean(TEXT), value))


_STORED = {
    DataType.STRING: ("rel_json_to_text", TEXT),
    DataType.BOOL: ("rel_json_to_bool", types.boolean),
    DataType.FLOAT64: ("rel_json_to_same_float", types.float64),
}


def stored(context: Any, builder: Any, kind: DataType, value: Any) -> tuple[Any, Any]:
    """Convert a value for a field of another type: return a type and a text, a number or a bool.

    Args:
        context: Numba's.
        builder: Numba's.
        kind: The field's type, see `is_stored`.
        value: The value to store.
    """
    name, result = _STORED.get(kind) or (
        ("rel_json_to_float", types.float64) if kind.is_float else ("rel_json_to_int", types.int64)
    )
    return result, _called(context, builder, name, result(TEXT), value)


def is_stored(kind: DataType) -> bool:
    """Return whether a field of this type accepts JSON values of its type."""
    return kind in _STORED or kind.is_integer or kind.is_float


def _called(context: Any, builder: Any, name: str, signature: Any, value: Any) -> Any:
    return services.call(context, builder, name, signature, [value], (), ())
