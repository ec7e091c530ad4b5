"""Names of the fields that a join or a table adds to those of a stream."""

from __future__ import annotations

from collections.abc import Collection

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.data_type import Column
from rayelastic.graph.records.shown import invalid


def added_name(name: str, columns: Collection[Column], suffix: object) -> str:
    """Return the name of a field next to others, with the suffix if they have it already.

    Args:
        name: The field's name.
        columns: The other fields.
        suffix: The user's suffix.

    Raises:
        GraphError: The suffix can't be part of a name, or the others have the suffixed name, too.
    """
    if not isinstance(suffix, str) or not f"x{suffix}".isidentifier() or not suffix:
        raise invalid("suffix", suffix, "Pass letters, digits and underscores, such as '_right'", ErrorCode.BAD_NAME)
    taken = {column for column, _, _ in columns}
    if name not in taken:
        return name
    if name + suffix in taken:
        raise GraphError(
            f"there are fields '{name}' and '{name + suffix}' already, and another '{name}' is added",
            hint="Pass another suffix=, such as suffix='_2'",
            code=ErrorCode.DUPLICATE_FIELD,
        )
    return name + suffix
