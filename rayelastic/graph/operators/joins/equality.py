"""Whether values of two fields can be equal: with the same type, and the same parameters where bytes depend on them.

Keys and event times are compared as bytes, which have no unit, scale or class.
"""

from __future__ import annotations

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.data_type import DataType, parsed_format
from rayelastic.graph.records.schema import Field
from rayelastic.graph.spec.upstream import Upstream


def are_comparable(one: Field, other: Field) -> bool:
    """Return whether equal values of two fields have equal bytes, and different values different ones.

    The unit of times and durations, the scale of decimals, the class of enums, and whether a time has a zone matter.
    Which zone it is doesn't, nor the precision of decimals, nor the length of texts: they don't change the bytes.
    """
    return _meaning(one) == _meaning(other)


def type_text(field: Field) -> str:
    """Return the type of a field with its parameters, as messages show it."""
    if field.type in (DataType.TIMESTAMP, DataType.DURATION, DataType.TIME32, DataType.TIME64):
        _, factory, arguments = parsed_format(field.format)
        return f"{factory}[{', '.join(arguments)}]"
    return str(field).partition(": ")[2].removesuffix(" | None")


def check_keys(left: Upstream, right: Upstream, right_keys: tuple[str, ...]) -> None:
    """Raise GraphError if the keys of two streams can't be equal."""
    if len(right_keys) != len(left.keys):
        raise GraphError(
            f"the left is keyed by {', '.join(left.keys)}, the right by {', '.join(right_keys)}",
            hint="Key both by as many fields",
            code=ErrorCode.KEY_MISMATCH,
        )
    for one, other in zip(left.keys, right_keys, strict=True):
        here, there = left.schema.field(one), right.schema.field(other)
        if not are_comparable(here, there):
            raise GraphError(
                f"key '{one}' is {type_text(here)}, but '{other}' of the right is {type_text(there)}",
                hint="Map one of them to the type of the other",
                code=ErrorCode.KEY_MISMATCH,
            )


def _meaning(field: Field) -> tuple[object, ...]:
    match field.type:
        case DataType.TIMESTAMP:
            unit, *zone = parsed_format(field.format)[2]
            return field.type, unit, bool(zone)
        case DataType.DECIMAL:
            return field.type, parsed_format(field.format)[2][1]
        case DataType.DURATION | DataType.TIME32 | DataType.TIME64:
            return field.type, parsed_format(field.format)[2][0]
        case DataType.ENUM:
            return field.type, field.format
    return (field.type,)
