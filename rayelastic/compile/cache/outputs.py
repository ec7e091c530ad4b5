"""The output schema of a compiled function in a cache entry, and how it is restored."""

from __future__ import annotations

import json

from rayelastic.compile.cache.code_cache import CacheEntry
from rayelastic.compile.reading.identity import Identity
from rayelastic.graph.records.forms import Form
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.spec.requests import FunctionRequest


def described_output(output: Schema, request: FunctionRequest) -> str:
    """Return the cached form of an output schema."""
    if output is request.output:
        return "declared"
    given = request.input_schema
    if output is given or (output.declared_type is not None and output.declared_type is given.declared_type):
        return "input"  # also for t._replace(..), which doesn't name the class
    if output.declared_type is not None:
        return f"class:{output.declared_type.__qualname__}"
    return json.dumps([[f.name, f.format, f.nullable] for f in output.fields])


def output_of(entry: CacheEntry, request: FunctionRequest, identity: Identity) -> Schema | None:
    """Return the schema of an entry; None if this request can't restore it."""
    if entry.output == "declared":
        return request.output
    if entry.output == "input":
        return request.input_schema
    if entry.output.startswith("class:"):
        name = entry.output.removeprefix("class:")
        found = next((c for c in identity.classes if c.__qualname__ == name), None)
        return None if found is None else Schema.of(found)
    forms = {str(field.format): field.format for field in request.input_schema.fields}
    try:
        columns = [(name, forms.get(text, text), nullable) for name, text, nullable in json.loads(entry.output)]
    except ValueError:  # written while json.dumps was replaced
        return None
    known = all(isinstance(text, Form) or not text.startswith("+") for _, text, _ in columns)
    return laid_out("Record", columns) if known else None
