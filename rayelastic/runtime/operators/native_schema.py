"""The graph's schemas as the native layer has them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from rayelastic import _native

if TYPE_CHECKING:
    from rayelastic.graph.records.schema import Schema


@functools.cache
def native_schema(schema: Schema) -> _native.Schema:
    """The native schema with the same layout; equal schemas share one.

    >>> from rayelastic.graph.records.schema import Schema
    >>> native_schema(Schema.of({"word": str, "n": int})).record_size
    24
    """
    return _native.Schema([(field.name, field.type.value, field.nullable, field.format) for field in schema.fields])
