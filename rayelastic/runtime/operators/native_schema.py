"""Makes native schemas of the graph's schemas."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from rayelastic import _native

if TYPE_CHECKING:
    from rayelastic.graph.records.schema import Schema


def native_schema(schema: Schema) -> _native.Schema:
    """Return the native schema with the same layout; equal schemas share one.

    >>> from rayelastic.graph.records.schema import Schema
    >>> native_schema(Schema.of({"word": str, "n": int})).record_size
    24
    """
    fields = tuple((field.name, field.type.native, field.nullable, str(field.format)) for field in schema.fields)
    return _made(fields, schema.known)


@functools.cache
def _made(fields: tuple[tuple[str, str, bool, str], ...], known: tuple[Any, ...]) -> _native.Schema:
    """Make a native schema; it is shared only if the classes are the same, because a notebook may redefine a class."""
    return _native.Schema(list(fields), list(known) if any(known_class is not None for known_class in known) else [])
