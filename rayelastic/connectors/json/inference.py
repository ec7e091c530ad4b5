"""JSON as a source: files with an object per line, as named tuples of any depth. Reads only the first rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from rayelastic.connectors.files.byte_streams import check_encoding
from rayelastic.connectors.files.columns import check_types, chosen_columns
from rayelastic.connectors.files.locations import shown_location
from rayelastic.connectors.files.paths import Paths, expanded
from rayelastic.connectors.json import lines as json_text
from rayelastic.connectors.json.lines import BadLineError, Blocks, object_of
from rayelastic.connectors.json.shapes import Shape, shapes_of
from rayelastic.connectors.row_files import RowFiles, RowOptions
from rayelastic.errors import ErrorCode, SchemaError, SourceError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, plain_form
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import OnError


@dataclass(frozen=True, slots=True)
class JsonSource(RowFiles):
    """Objects of JSON files, one per line; an `encoding` of None is UTF-8."""

    kind: ClassVar[str] = "JSON files"

    encoding: str | None = None


def json_source(given: Paths, options: RowOptions, encoding: str | None, operator: str) -> JsonSource:
    """Make a source with the declared schema, or one inferred from the first rows.

    Raises:
        SourceError: The first rows can't be read as JSON.
        SchemaError: Unknown columns or types, types that JSON lacks, or values of several types.
    """
    check_encoding(encoding, operator)
    paths = expanded(given, operator, directories=False)
    declared, columns, types = options.schema, options.columns, options.types
    renaming: Mapping[str, str] = columns if isinstance(columns, Mapping) else {}
    shapes: dict[str, Shape] = {}
    if declared is not None:
        has: Iterable[str] = renaming or declared.names
    else:
        shapes = _sample(paths[0], encoding, options.policy, operator)
        late = [] if columns is not None else [name for name in types if name not in shapes]
        late += [name for name, field in renaming.items() if field in types and name not in shapes]
        has = [*shapes, *late]
    named = chosen_columns(columns, declared, has, paths[0], operator)
    check_types(types, named.values(), declared, operator)
    if not named:
        raise SourceError(
            f"{shown_location(paths[0])!r} has no fields",
            operator=operator,
            hint="Declare schema=",
            code=ErrorCode.NO_SCHEMA,
        )

    def type_of(column: str, field: str) -> Any:
        return _type_of(shapes[column], column, field, paths[0], operator)

    source = JsonSource(**options.source(paths, named, type_of, operator), encoding=encoding)
    _check(source.schema)
    return source


def _sample(path: str, encoding: str | None, on_bad_row: OnError, operator: str) -> dict[str, Shape]:
    """Infer the fields of the first rows of a file; bad rows are reported when the file is read."""

    def rows(first: int, block: bytes) -> Iterable[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(block.split(b"\n"), first):
            if line.strip(b" \t\r"):
                try:
                    yield number, object_of(line)
                except BadLineError as error:
                    if on_bad_row is OnError.FAIL:
                        problem = f"{shown_location(path)!r} can't be read as JSON: row {number:,}: {error}"
                        hint = (
                            "Give its encoding="
                            if "UTF-8" in str(error)
                            else "Mend the file, or pass on_bad_row='skip'"
                        )
                        raise SourceError(problem, hint=hint, code=ErrorCode.MALFORMED_FILE) from error

    try:
        with contextlib.closing(Blocks(path, encoding, json_text.SAMPLE_BYTES)) as blocks:
            return shapes_of(chain.from_iterable(rows(first, block) for first, block in (next(blocks, (1, b"")),)))
    except SourceError as error:
        raise error.at(operator, "") from None


def _type_of(shape: Shape, column: str, field: str, path: str, operator: str) -> Any:
    """Return the type of a field.

    Raises:
        SchemaError: Its values are of several types, or of one that no record holds.
    """
    try:
        kind = shape.type_of(column, shown_location(path), field)
        _ = Schema.of({field: kind})
    except SchemaError as error:
        if "types={" not in error.hint:
            error.hint = f"Say what it is: types={{{field!r}: rel.Json}} keeps any value"
        raise error.at(operator, "") from None
    return kind


def _check(schema: Schema) -> None:
    for field in schema.fields:
        form = plain_form(field.format)
        if _has_object(form):
            raise SchemaError(
                f"field '{field.name}' of {schema.name}: {form.shown} can't be read from JSON",
                hint="Declare what is in it as NamedTuple classes, lists and dict[str, X], or as rel.Json",
                code=ErrorCode.UNSUPPORTED_TYPE,
            )


def _has_object(form: Form) -> bool:
    return form.kind is DataType.OBJECT or any(_has_object(part) for _, part, _ in form.parts)
