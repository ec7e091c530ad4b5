"""Reads the lines of text files natively; Python opens and decompresses them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.connectors.files.byte_streams import Content
from rayelastic.connectors.inputs import Input, Place
from rayelastic.connectors.problem import Problem
from rayelastic.connectors.source import SourceOperator

if TYPE_CHECKING:
    from rayelastic.connectors.text.declaration import TextSource
    from rayelastic.graph.spec.operator_spec import OperatorSpec


def text_source(spec: OperatorSpec, schema: _native.Schema, body: TextSource) -> SourceOperator:
    """Make a source of lines, which can begin at a line of a file."""
    problem, recoded = Problem(), body.encoding is not None

    def opened(location: str) -> SimpleNamespace:
        return SimpleNamespace(readinto=problem.of(Content(location, body.encoding).readinto))

    native = _native.Operator.text_source(spec.name, schema, list(body.paths), problem.of(opened), recoded)

    def seek(position: int, saved: Input | None) -> int:
        place = saved.place if saved is not None else None
        if place is None or not 0 <= place.rows <= position:
            return position
        native.seek_text(place.file, place.byte, place.rows)
        return position - place.rows

    def place() -> Place | None:
        at = native.text_place
        return None if at is None else Place(*at)

    return SourceOperator(native, seek=seek, place=place, problem=problem)
