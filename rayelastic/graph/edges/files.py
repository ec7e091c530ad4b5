"""CSV, JSON, Parquet and Arrow: the same description serves as a source or as a sink, by where it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from rayelastic.graph.edges.formats.byte_streams import check_encoding
from rayelastic.graph.edges.formats.columns import Columns
from rayelastic.graph.edges.formats.csv_files import CsvForm, CsvSource, check_form, csv_source
from rayelastic.graph.edges.formats.json_files import JsonSource, json_source
from rayelastic.graph.edges.formats.parquet_files import ParquetSource, is_hidden, parquet_source
from rayelastic.graph.edges.formats.row_files import RowOptions
from rayelastic.graph.edges.paths import Paths, expanded, found_files, single
from rayelastic.graph.edges.sinks import ArrowSink, CsvSink, JsonSink, ParquetSink
from rayelastic.graph.edges.sources import ArrowSource, arrow_source
from rayelastic.graph.edges.typed import Declared, SourceOf
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import SinkDescription, SourceDescription

__all__ = [
    "CsvFiles",
    "CsvSource",
    "JsonFiles",
    "JsonSource",
    "ParquetFiles",
    "ParquetSource",
    "arrow",
    "csv",
    "json",
    "parquet",
]

T = TypeVar("T")

# Options that the overloads of a function share.


class _Columns(TypedDict, total=False):
    columns: Columns


class _Read(_Columns, total=False):
    time_ordered: bool


class _Json(_Read, total=False):
    types: Mapping[str, object] | None
    encoding: str | None
    on_bad_row: OnError | Literal["fail", "skip", "divert"]


class _Csv(_Json, total=False):
    delimiter: str
    quote: str | None
    escape: str | None
    header: bool | Iterable[str]
    nulls: Iterable[str]
    comment: str | None


@dataclass(frozen=True, slots=True)
class CsvFiles(SourceOf[T]):
    """What `csv` gives: a source or a sink, by where it stands."""

    paths: Paths
    form: CsvForm
    options: RowOptions

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up and infer the schema of the first where none was declared."""
        check_form(self.form, operator)
        return csv_source(expanded(self.paths, operator, directories=False), self.options, self.form, operator)

    def as_sink(self, operator: str) -> SinkDescription:
        """Take the path as that of a sink."""
        return CsvSink(single(self.paths, operator, "csv"))


@dataclass(frozen=True, slots=True)
class JsonFiles(SourceOf[T]):
    """What `json` returns: a source or a sink, by where it stands."""

    paths: Paths
    encoding: str | None
    options: RowOptions

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up, and infer the schema of the first where none was declared."""
        check_encoding(self.encoding, operator)
        return json_source(expanded(self.paths, operator, directories=False), self.options, self.encoding, operator)

    def as_sink(self, operator: str) -> SinkDescription:
        """Take the path as that of a sink."""
        return JsonSink(single(self.paths, operator, "json"))


@dataclass(frozen=True, slots=True)
class ParquetFiles(SourceOf[T]):
    """What `parquet` gives: a source or a sink, by where it stands."""

    paths: Paths
    schema: Schema | None
    columns: object = None
    time_ordered: bool = False

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up and read their schema."""
        found = found_files(self.paths, operator, directories=True)
        data = [(path, root) for path, root in found if not is_hidden(path, root)]
        return parquet_source(data or found, self.schema, self.columns, self.time_ordered, operator)

    def as_sink(self, operator: str) -> SinkDescription:
        """Take the path as that of a sink."""
        return ParquetSink(single(self.paths, operator, "parquet"))


@overload
def csv(paths: Paths, schema: type[Mapping[str, Any]], **options: Unpack[_Csv]) -> CsvFiles[Any]: ...


@overload
def csv(paths: Paths, schema: type[T], **options: Unpack[_Csv]) -> CsvFiles[T]: ...


@overload
def csv(paths: Paths, schema: Declared | None = None, **options: Unpack[_Csv]) -> CsvFiles[Any]: ...


def csv(
    paths: Paths,
    schema: object = None,
    *,
    delimiter: str = ",",
    quote: str | None = '"',
    escape: str | None = None,
    header: bool | Iterable[str] = True,
    columns: Columns = None,
    types: Mapping[str, object] | None = None,
    nulls: Iterable[str] = ("",),
    encoding: str | None = None,
    comment: str | None = None,
    on_bad_row: OnError | Literal["fail", "skip", "divert"] = "fail",
    time_ordered: bool = False,
) -> CsvFiles[Any]:
    """Read or write CSV.

    An empty field that isn't quoted is None, or an empty text where `str` is declared without None. What is inferred
    never changes a value: digits with leading zeros are text, a whole number that neither 64 bits nor a float hold is
    rejected. Without `schema=` and `columns=` a column that the first file doesn't have fails the job.

    Args:
        paths: as a source a file, a glob, a URI or several, compressed or not; as a sink one path or URI.
        schema: of a source; by default what the first rows of the first file look like, all fields nullable.
        delimiter: one character.
        quote: one character around fields that have delimiters, quotes or line ends in them; None: there is none.
        escape: one character in front of a quote, delimiter or line end that stands for itself, as Spark and MySQL
            write it; None: there is none. Quotes that are doubled are read with and without it.
        header: whether the first row names the columns; or their names, where the first row is data. With False they
            are called as the fields of `schema=`, or `f0`, `f1` and so on.
        columns: those to read, or {column: field} to rename them; by default all.
        types: {field: type} instead of what would be inferred.
        nulls: what stands for None where it isn't quoted.
        encoding: of the files, such as 'latin-1'; by default UTF-8, or UTF-16 or UTF-32 where a byte order mark says
            so.
        comment: lines that start with this are left out.
        on_bad_row: what happens to a row that has too few or too many fields, or a value that isn't of its type. 'fail'
            ends the job with the row's number, 'skip' leaves the row out, 'divert' sends it to the stream `.errors` of
            the source, with the fields file, row, text, error and operator; the files are read a second time for that.
        time_ordered: Whether each file goes on in event time where the one before ends; see ``text``.

    Raises:
        SourceError: when the source is declared: no such file, not readable as CSV, or not of the encoding.
        SchemaError: the schema or columns= name a column that the file doesn't have, or a name that no field can have.
    """
    names = None if header is True else () if header is False else tuple(header)
    form = CsvForm(delimiter, quote, encoding, comment, tuple(nulls), escape, names)
    declared = None if schema is None else Schema.of(schema)
    return CsvFiles(paths, form, RowOptions(declared, columns, types or {}, on_bad_row, time_ordered))


@overload
def json(paths: Paths, schema: type[Mapping[str, Any]], **options: Unpack[_Json]) -> JsonFiles[Any]: ...


@overload
def json(paths: Paths, schema: type[T], **options: Unpack[_Json]) -> JsonFiles[T]: ...


@overload
def json(paths: Paths, schema: Declared | None = None, **options: Unpack[_Json]) -> JsonFiles[Any]: ...


def json(
    paths: Paths,
    schema: object = None,
    *,
    columns: Columns = None,
    types: Mapping[str, object] | None = None,
    encoding: str | None = None,
    on_bad_row: OnError | Literal["fail", "skip", "divert"] = "fail",
    time_ordered: bool = False,
) -> JsonFiles[Any]:
    """Read or write files with one JSON object a line (NDJSON, JSON Lines).

    Declared times and dates are texts as ISO 8601 has them, decimals numbers or texts that are numbers, members of
    enums as Arrow has them; a number is read as `str` as it is written. Durations are texts as ISO 8601 has them, UUIDs
    texts, bytes base64, maps with texts as keys objects and others lists of pairs. A sink writes the same, and a NaN as
    NaN, as Python's json does.

    What is inferred never changes a value: texts stay texts, and a whole number that neither 64 bits nor a float hold
    is rejected. Without `schema=` and `columns=` a field that the first megabyte of the first file doesn't have is an
    error of its row.

    Args:
        paths: a file, a glob, a URI or several, compressed or not; of a sink a file, or a folder where it has no
            suffix.
        schema: NamedTuple classes or `dict[str, X]` for objects, `list[X]` for lists, `rel.Json` for any value; a field
            that an object doesn't have is None, one that isn't declared is left out. By default what the first megabyte
            of the first file looks like, all fields nullable.
        columns: the fields to read, or {name in the file: field} to rename them; by default all.
        types: {field: type} instead of what would be inferred.
        encoding: of the files, such as 'latin-1'; by default UTF-8, or UTF-16 or UTF-32 where a byte order mark says
            so.
        on_bad_row: what happens to a line that isn't one JSON object, is nested deeper than 60 levels, or has a value
            that isn't of its type; as of ``csv``.
        time_ordered: Whether each file goes on in event time where the one before ends; see ``text``.

    Raises:
        SourceError: when the source is declared: no such file, or not readable as JSON.
        SinkError: when the sink is declared: it can't be written there, or a field is a Python object.
        SchemaError: the schema has a type that JSON doesn't have, the values of a field are of several types, or a name
            is one that no field can have.

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
    return JsonFiles(paths, encoding, RowOptions(declared, columns, types or {}, on_bad_row, time_ordered))


@overload
def parquet(paths: Paths, schema: type[Mapping[str, Any]], **options: Unpack[_Read]) -> ParquetFiles[Any]: ...


@overload
def parquet(paths: Paths, schema: type[T], **options: Unpack[_Read]) -> ParquetFiles[T]: ...


@overload
def parquet(paths: Paths, schema: Declared | None = None, **options: Unpack[_Read]) -> ParquetFiles[Any]: ...


def parquet(
    paths: Paths, schema: object = None, *, columns: Columns = None, time_ordered: bool = False
) -> ParquetFiles[Any]:
    """Read or write Parquet.

    Args:
        paths: as a source a file, a glob, a directory (all files below it, but those that start with `_` or `.`), a URI
            such as `s3://bucket/folder`, or several; as a sink one path or URI. Folders called `name=value` below the
            directory or in the glob are a column.
        schema: of a source; by default that of the files. Categories (dictionaries) are decoded.
        columns: those to read, or {column: field} to rename them; by default all, or those of the schema.
        time_ordered: Whether each file goes on in event time where the one before ends; see ``text``.

    Raises:
        SourceError: when the source is declared: no such file, not readable as Parquet.
        SchemaError: the schema or columns= name a column that a file doesn't have, files have different columns and
            none were declared, or there is a column that records can't hold.
    """
    return ParquetFiles(paths, None if schema is None else Schema.of(schema), columns, time_ordered)


@overload
def arrow() -> ArrowSink: ...


@overload
def arrow(table: Any, schema: type[Mapping[str, Any]], **options: Unpack[_Columns]) -> ArrowSource[Any]: ...


@overload
def arrow(table: Any, schema: type[T], **options: Unpack[_Columns]) -> ArrowSource[T]: ...


@overload
def arrow(
    table: Any = None, schema: Declared | None = None, **options: Unpack[_Columns]
) -> ArrowSource[Any] | ArrowSink: ...


def arrow(table: Any = None, schema: object = None, *, columns: Columns = None) -> ArrowSource[Any] | ArrowSink:
    """With a table: a source of its rows. Without: a sink that collects the stream into a pyarrow.Table.

    Args:
        table: pyarrow.Table, pyarrow.RecordBatch, DataFrame of pandas or Polars, or what else has Arrow's C stream.
        schema: to cast the columns to; by default the table's own.
        columns: those to read, or {column: field} to rename them; by default all, or those of the schema.

    Raises:
        SchemaError: the schema doesn't match the table, or the table has a column that records can't hold.
    """
    return ArrowSink() if table is None else arrow_source(table, schema, columns)
