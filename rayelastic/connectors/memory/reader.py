"""Emits tuples in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rayelastic.compile import Flags
from rayelastic.connectors.source import SourceOperator, python_source

if TYPE_CHECKING:
    from rayelastic import _native
    from rayelastic.connectors.inputs import Input
    from rayelastic.connectors.memory.declaration import RowsSource
    from rayelastic.graph.spec.operator_spec import OperatorSpec


def rows_source(spec: OperatorSpec, schema: _native.Schema, body: RowsSource[Any]) -> SourceOperator:
    """Make a source of the rows of a collection."""
    start = 0

    def seek(position: int, _: Input | None) -> int:
        nonlocal start
        start = min(position, len(body.rows))
        return position - start

    def rows() -> Iterator[Any]:
        return map(body.rows.__getitem__, range(start, len(body.rows))) if start else iter(body.rows)

    source = python_source(spec, schema, rows, Flags.SOURCE | Flags.NEEDS_TOKEN)  # never waits
    return replace(source, seek=seek)
