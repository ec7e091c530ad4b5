"""Generates tuples: natively, or by a function of the user."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.connectors.source import SourceOperator, python_source

if TYPE_CHECKING:
    from rayelastic.connectors.generate.declaration import CallableSource, GenerateSource, SequenceSource
    from rayelastic.connectors.inputs import Input
    from rayelastic.graph.spec.operator_spec import OperatorSpec


def sequence_source(spec: OperatorSpec, schema: _native.Schema, body: SequenceSource) -> SourceOperator:
    """Make a native source of numbers."""
    native = _native.Operator.sequence_source(spec.name, schema, body.count, body.payload_bytes)

    def seek(position: int, _: Input | None) -> int:
        native.seek_sequence(min(position, body.count))
        return max(0, position - body.count)

    return SourceOperator(native, seek=seek)


def generate_source(spec: OperatorSpec, schema: _native.Schema, body: GenerateSource[Any]) -> SourceOperator:
    """Make a source that calls the function with each number."""
    start = 0

    def seek(position: int, _: Input | None) -> int:
        nonlocal start
        start = position
        return 0

    def rows() -> Iterator[Any]:
        return map(body.function, itertools.count(start) if body.count is None else range(start, body.count))

    return replace(python_source(spec, schema, rows), seek=seek)


def callable_source(spec: OperatorSpec, schema: _native.Schema, body: CallableSource[Any]) -> SourceOperator:
    """Make a source that emits the tuples of the user's iterator, from its first one."""
    return python_source(spec, schema, body.function)
