"""JSON as a source: files with an object a line, as named tuples of any depth. Reads only the first rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rayelastic.errors import SchemaError, SourceError
from rayelastic.graph.edges.formats.bad_rows import BadRows, side_sources
from rayelastic.graph.edges.formats.columns import check_types, chosen_columns, inferred_schema
from rayelastic.graph.edges.formats.json_text import BadLineError, Blocks, object_of
from rayelastic.graph.edges.formats.json_types import Shape, shapes_of
from rayelastic.graph.edges.locations import shown_location
from rayelastic.graph.edges.paths import expanded
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, plain_form
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import Lane

__all__ = ["JsonSource", "json_source"]

_UNREADABLE = {
    DataType.OBJECT: "Declare what is in it as NamedTuple classes and lists, or as rel.Json",
    DataType.BINARY: "JSON has no bytes: declare it as a str",
    DataType.UUID: "Declare it as a str",
    DataType.DURATION: "Declare it as an int, or a float of seconds",
    DataType.MAP: "Declare what is in it as a NamedTuple class, whose fields may be None, or as rel.Json",
}


@dataclass(frozen=True, slots=True)
class JsonSource:
    """Objects of JSON files, one a line.

    Args:
        paths: of the files.
        schema: of the tuples.
        columns: the name in the file of each field.
        inferred: fields whose type was inferred.
        is_whole: whether an object may have no other fields: nobody has chosen some of them.
        encoding: of the files; None: UTF-8.
        on_bad_row: what happens to a row that isn't of the schema.
        name: of the operator.
    """

    paths: tuple[str, ...]
    schema: Schema
    columns: tuple[str, ...]
    inferred: frozenset[str] = frozenset()
    is_whole: bool = False
    encoding: str | None = None
    on_bad_row: OnError = OnError.FAIL
    name: str = ""
    lane: Lane = Lane.BUILT_IN
    reason: str = "pyarrow reader, native conversion"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        expanded(self.paths, operator, directories=False)

    @property
    def side_sources(self) -> dict[str, BadRows]:
        """What else is read of the same files, by port."""
        return side_sources(self)


def json_source(
    paths: tuple[str, ...],
    declared: Schema | None,
    columns: object,
    types: Mapping[str, object],
    encoding: str | None,
    on_bad_row: OnError,
    operator: str,
) -> JsonSource:
    """Find the schema: what was declared, or what the first rows look like.

    Raises:
        SourceError: the first rows can't be read as JSON.
        SchemaError: columns or types that aren't there, types that JSON doesn't have, or values of several types.
    """
    if declared is not None:
        _check(declared)
        has: Iterable[str] = (
            declared.names if columns is None else columns if isinstance(columns, Mapping) else declared.names
        )
        files = {field: column for column, field in chosen_columns(columns, declared, has, paths[0], operator).items()}
        named = tuple(files[field] for field in declared.names)
        check_types(types, declared.names, declared, operator)
        return JsonSource(paths, declared, named, frozenset(), False, encoding, on_bad_row, operator)
    shapes = _sample(paths[0], encoding, on_bad_row, operator)
    late = [] if columns is not None else [name for name in types if name not in shapes]
    renaming: Mapping[str, str] = columns if isinstance(columns, Mapping) else {}
    late += [name for name, field in renaming.items() if field in types and name not in shapes]
    names = chosen_columns(columns, None, [*shapes, *late], paths[0], operator)
    check_types(types, names.values(), None, operator)
    if not names:
        raise SourceError(f"{shown_location(paths[0])!r} has no fields", operator=operator, way_out="Declare schema=")
    kinds = {f: types[f] if f in types else _type_of(shapes[c], c, f, paths[0], operator) for c, f in names.items()}
    schema = inferred_schema(kinds, (field for field in kinds if field not in types))
    _check(schema)
    inferred = frozenset(field for field in kinds if field not in types)
    return JsonSource(paths, schema, tuple(names), inferred, columns is None, encoding, on_bad_row, operator)


def _sample(path: str, encoding: str | None, on_bad_row: OnError, operator: str) -> dict[str, Shape]:
    """What the fields of the first rows of a file look like; bad rows are reported when the file is read."""

    def rows(first: int, block: bytes) -> Iterable[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(block.split(b"\n"), first):
            if line.strip(b" \t\r"):
                try:
                    yield number, object_of(line)
                except BadLineError as error:
                    if on_bad_row is OnError.FAIL:
                        problem = f"{shown_location(path)!r} can't be read as JSON: row {number:,}: {error}"
                        way_out = (
                            "Give its encoding="
                            if "UTF-8" in str(error)
                            else "Mend the file, or give on_bad_row='skip'"
                        )
                        raise SourceError(problem, way_out=way_out) from error

    try:
        with contextlib.closing(Blocks(path, encoding)) as blocks:
            return shapes_of(chain.from_iterable(rows(first, block) for first, block in (next(blocks, (1, b"")),)))
    except SourceError as error:
        raise error.at(operator, "") from None


def _type_of(shape: Shape, column: str, field: str, path: str, operator: str) -> Any:
    """The type of a field.

    Raises:
        SchemaError: it is of several types, or of one that no record holds.
    """
    try:
        kind = shape.type_of(column, shown_location(path), field)
        _ = Schema.of({field: kind})
    except SchemaError as error:
        if "types={" not in error.way_out:
            error.way_out = f"Say what it is: types={{{field!r}: rel.Json}} keeps any value"
        raise error.at(operator, "") from None
    return kind


def _check(schema: Schema) -> None:
    for field in schema.fields:
        bad = _unreadable(plain_form(field.format))
        if bad is not None:
            raise SchemaError(
                f"field '{field.name}' of {schema.name}: {bad.shown} can't be read from JSON",
                way_out=_UNREADABLE[bad.kind],
            )


def _unreadable(form: Form) -> Form | None:
    """What in a form JSON can't have."""
    if form.kind in _UNREADABLE:
        return form
    return next((bad for _, part, _ in form.parts if (bad := _unreadable(part)) is not None), None)
