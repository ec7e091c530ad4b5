"""JSON as a source and a sink: files with an object a line, as named tuples of any depth. Reads only the first rows."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayelastic.errors import SchemaError
from rayelastic.graph.edges.byte_streams import content_of
from rayelastic.graph.edges.locations import reading
from rayelastic.graph.edges.paths import Paths, expanded, single
from rayelastic.graph.edges.sinks import JsonSink
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, plain_form
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane, SinkDescription, SourceDescription

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JsonFiles", "JsonSource", "json", "json_reader", "reading_json"]

BLOCK_BYTES = 1 << 20  # that are read at once; of the first of them types are inferred
_UNREADABLE = {
    DataType.JSON: "Declare what is in it as NamedTuple classes and lists, or read lines with rel.text and json.loads",
    DataType.OBJECT: "Declare what is in it as NamedTuple classes and lists",
    DataType.BINARY: "JSON has no bytes: declare it as a str",
    DataType.UUID: "Declare it as a str",
    DataType.DURATION: "Declare it as an int, or a float of seconds",
    DataType.MAP: "Declare what is in it as a NamedTuple class, whose fields may be None",
}


@dataclass(frozen=True, slots=True)
class JsonSource:
    """Objects of JSON files, one a line, through pyarrow's reader."""

    paths: tuple[str, ...]
    schema: Schema
    lane: Lane = Lane.BUILT_IN
    reason: str = "pyarrow reader, native conversion"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        expanded(self.paths, operator, directories=False)


@dataclass(frozen=True, slots=True)
class JsonFiles:
    """What `json` gives: a source or a sink, by where it stands."""

    paths: Paths
    schema: Schema | None

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up, and infer the schema of the first where none was declared."""
        paths = expanded(self.paths, operator, directories=False)
        if self.schema is not None:
            _check(self.schema)
            return JsonSource(paths, self.schema)
        with reading_json(paths[0]), json_reader(paths[0], None) as reader:
            found = reader.schema
        try:
            return JsonSource(paths, Schema.of(found))
        except SchemaError as error:
            error.way_out = f"Declare schema= with the fields that you need. {error.way_out}"
            raise

    def as_sink(self, operator: str) -> SinkDescription:
        """Take the path as that of a sink."""
        return JsonSink(single(self.paths, operator, "json"))


def json(paths: Paths, schema: object = None) -> JsonFiles:
    """Read or write files with one JSON object a line (NDJSON, JSON Lines).

    Times and dates are texts as ISO 8601 has them, decimals numbers, or texts that are numbers, members of enums as
    Arrow has them; a NaN is written as NaN, as Python's json does. A sink writes classes as objects, maps with texts as
    keys as objects and others as lists of pairs, UUIDs as texts.

    Args:
        paths: a file, a glob, a URI or several, compressed or not; of a sink a file, or a folder where it has no
            suffix.
        schema: NamedTuple classes for objects, `list[X]` for lists; a field that an object hasn't is None, one that
            isn't declared is left out. By default what the first megabyte of the first file looks like, all fields
            nullable.

    Raises:
        SourceError: when the source is declared: no such file, or not readable as JSON.
        SinkError: when the sink is declared: it can't be written there, or a field is bytes, a duration or an object.
        SchemaError: the schema has a type that JSON doesn't have, or a name that no field can have was inferred.

    >>> import tempfile, pathlib
    >>> import rayelastic as rel
    >>> file = tempfile.NamedTemporaryFile(suffix=".jsonl")
    >>> _ = pathlib.Path(file.name).write_text('{"tags": ["a", "b"], "n": 3}')
    >>> topology = rel.Topology("events")
    >>> events = topology.source("events", rel.json(file.name, {"tags": list[str], "n": int | None}))
    >>> events.map("tags", lambda t: (len(t.tags), t.tags[0]), lane="compiled").sink("out", rel.list())
    <sink out>
    >>> _ = events.sink("copy", rel.json(file.name + ".copy.jsonl"))
    >>> [tuple(t) for t in rel.run(topology)["out"]]
    [(2, 'a')]
    >>> print(pathlib.Path(file.name + ".copy.jsonl").read_text().strip())
    {"tags": ["a", "b"], "n": 3}
    """
    return JsonFiles(paths, None if schema is None else Schema.of(schema))


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


def json_reader(path: str, schema: pa.Schema | None) -> Any:
    """Open pyarrow's reader of a file's batches; of a schema, or of what the first block looks like."""
    from pyarrow import json as reader

    options = reader.ParseOptions(schema, unexpected_field_behavior="infer" if schema is None else "ignore")
    return reader.open_json(content_of(None)(path), reader.ReadOptions(block_size=BLOCK_BYTES), options)


def reading_json(path: str) -> AbstractContextManager[None]:
    """Tell which file can't be read."""
    return reading(path, lambda: "as JSON", "Give one object a line, and check what schema= says of their fields")
