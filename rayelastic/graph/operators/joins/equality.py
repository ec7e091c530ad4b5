"""Whether values of two fields can be equal: with the same type, and the same parameters where bytes depend on them.

Keys and event times are compared as bytes, which have no unit, scale or class.
"""

from __future__ import annotations

from rayelastic.graph.records.data_type import DataType, parsed_format
from rayelastic.graph.records.schema import Field

__all__ = ["are_comparable", "type_text"]


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
