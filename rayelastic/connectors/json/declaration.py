"""Files with an object of JSON per line, as a source and a sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar, Unpack, overload

from rayelastic.connectors.description import Files, FileSink
from rayelastic.connectors.files.columns import Columns
from rayelastic.connectors.files.paths import Paths
from rayelastic.connectors.json.inference import json_source
from rayelastic.connectors.row_files import ReadRows, RowOptions
from rayelastic.connectors.typed import Declared
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import Lane

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JsonSink(FileSink):
    """Writes JSON, an object per line: one file, or part files into a directory if the path has no suffix."""

    lane: Lane = Lane.VECTORISED
    reason: str = "Arrow batches to lines of JSON, in Python"


@overload
def json(paths: Paths, schema: type[Mapping[str, Any]], **options: Unpack[ReadRows]) -> Files[Any]: ...


@overload
def json(paths: Paths, schema: type[T], **options: Unpack[ReadRows]) -> Files[T]: ...


@overload
def json(paths: Paths, schema: Declared | None = None, **options: Unpack[ReadRows]) -> Files[Any]: ...


def json(
    paths: Paths,
    schema: object = None,
    *,
    columns: Columns = None,
    types: Mapping[str, object] | None = None,
    encoding: str | None = None,
    on_bad_row: OnError | Literal["fail", "skip", "divert"] = "fail",
    time_ordered: bool = False,
) -> Files[Any]:
    """Read or write files with one JSON object a line (NDJSON, JSON Lines).

    Declared times and dates are ISO 8601 texts, and so are durations. Decimals are numbers, or texts that are numbers.
    Members of enums are as in Arrow. A number that is read as `str` is unchanged. UUIDs are texts, bytes base64. Maps
    with text keys are objects, others lists of pairs. A sink writes the same, and a NaN as NaN, as Python's json does.

    Inference never changes a value: texts stay texts, and a whole number that neither 64 bits nor a float hold is
    rejected. Without `schema=` and `columns=`, a field that the first megabyte of the first file lacks is an error of
    its row.

    Args:
        paths: A file, a glob, a URI or several, compressed or not; of a sink a file, or a folder if it has no suffix.
        schema: NamedTuple classes or `dict[str, X]` for objects, `list[X]` for lists, `rel.Json` for any value. A field
            that an object lacks is None, an undeclared one is left out. By default inferred from the first megabyte of
            the first file, all fields nullable.
        columns: The fields to read, or {name in the file: field} to rename them; by default all.
        types: {field: type} instead of the inferred one.
        encoding: The files' encoding, such as 'latin-1'; by default UTF-8, or UTF-16 or UTF-32 with a byte order mark.
        on_bad_row: What happens to a line that isn't one JSON object, is nested deeper than 60 levels, or has a value
            of another type; as for ``csv``.
        time_ordered: Whether the event times of a file follow those of the file before; see ``text``.

    Raises:
        SourceError: At the declaration: no such file, or not readable as JSON.
        SinkError: At the declaration: it can't be written there, or a field is a Python object.
        SchemaError: The schema has a type that JSON lacks, the values of a field are of several types, or a name is
            invalid.
    >>> import tempfile, pathlib
    >>> import rayelastic as rel
    >>> file = tempfile.NamedTemporaryFile(suffix=".jsonl")
    >>> _ = pathlib.Path(file.name).write_text('{"@tags": ["a", "b"], "n": 3}')
    >>> topology = rel.Topology("events")
    >>> source = rel.json(file.name, columns={"@tags": "tags", "n": "n"}, types={"tags": list[str]})
    >>> events = topology.source(source, name="events")
    >>> events.map(lambda t: (len(t.tags), t.tags[0]), name="tags", lane="compiled").sink(rel.list(), name="out")
    <sink out>
    >>> _ = events.sink(rel.json(file.name + ".copy.jsonl"), name="copy")
    >>> [tuple(t) for t in rel.run(topology)["out"]]
    [(2, 'a')]
    >>> print(pathlib.Path(file.name + ".copy.jsonl").read_text().strip())
    {"tags": ["a", "b"], "n": 3}
    """
    declared = None if schema is None else Schema.of(schema)
    options = RowOptions(declared, columns, types or {}, on_bad_row, time_ordered)
    return Files(paths, "json", partial(json_source, paths, options, encoding), JsonSink)


read_json = json  # as pandas and Polars call it
