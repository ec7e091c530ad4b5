"""CSV, JSON, Parquet and Arrow: one description is a source or a sink, depending on where it is used."""

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
    "read_csv",
    "read_json",
    "read_parquet",
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
    """The result of `csv`: a source or a sink, depending on where it is used."""

    paths: Paths
    form: CsvForm
    options: RowOptions

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up, and infer the schema from the first one if none was declared."""
        check_form(self.form, operator)
        return csv_source(expanded(self.paths, operator, directories=False), self.options, self.form, operator)

    def as_sink(self, operator: str) -> SinkDescription:
        """Make the sink that writes to the path."""
        return CsvSink(single(self.paths, operator, "csv"))


@dataclass(frozen=True, slots=True)
class JsonFiles(SourceOf[T]):
    """The result of `json`: a source or a sink, depending on where it is used."""

    paths: Paths
    encoding: str | None
    options: RowOptions

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up, and infer the schema from the first one if none was declared."""
        check_encoding(self.encoding, operator)
        return json_source(expanded(self.paths, operator, directories=False), self.options, self.encoding, operator)

    def as_sink(self, operator: str) -> SinkDescription:
        """Make the sink that writes to the path."""
        return JsonSink(single(self.paths, operator, "json"))


@dataclass(frozen=True, slots=True)
class ParquetFiles(SourceOf[T]):
    """The result of `parquet`: a source or a sink, depending on where it is used."""

    paths: Paths
    schema: Schema | None
    columns: object = None
    time_ordered: bool = False

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up and read their schema."""
        files = found_files(self.paths, operator, directories=True)
        data = [(path, root) for path, root in files if not is_hidden(path, root)]
        return parquet_source(data or files, self.schema, self.columns, self.time_ordered, operator)

    def as_sink(self, operator: str) -> SinkDescription:
        """Make the sink that writes to the path."""
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
    r"""Read or write CSV.

    An unquoted empty field is None, or an empty text if `str` is declared without None. Inference never changes a
    value: digits with leading zeros are text, a whole number that neither 64 bits nor a float hold is rejected. Without
    `schema=` and `columns=`, a column that the first file lacks fails the job.

    Args:
        paths: As a source a file, a glob, a URI or several, compressed or not; as a sink one path or URI.
        schema: The schema of a source; by default inferred from the first rows of the first file, all fields nullable.
        delimiter: One character.
        quote: One character around fields with delimiters, quotes or line ends; None: there is none.
        escape: One character that escapes a quote, delimiter or line end, as Spark and MySQL write it; None: there is
            none. Doubled quotes are read in both cases.
        header: Whether the first row names the columns; or their names, if the first row is data. With False they have
            the names of the fields of `schema=`, or `f0`, `f1` and so on.
        columns: The columns to read, or {column: field} to rename them; by default all.
        types: {field: type} instead of the inferred one.
        nulls: Unquoted texts that stand for None.
        encoding: The files' encoding, such as 'latin-1'; by default UTF-8, or UTF-16 or UTF-32 with a byte order mark.
        comment: Lines that start with this are left out.
        on_bad_row: What happens to a row with too few or too many fields, or a value of another type. `'fail'` ends the
            job with the row's number. `'skip'` drops the row. `'divert'` sends it to the stream `.errors` of the
            source, with the fields file, row, text, error and operator. This reads the files a second time.
        time_ordered: Whether the event times of a file follow those of the file before; see ``text``.

    Raises:
        SourceError: At the declaration: no such file, not readable as CSV, or not of the encoding.
        SchemaError: The schema or columns= name a column that the file lacks, or an invalid name.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import rayelastic as rel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "trades.csv").write_text("symbol,price\nA,1.5\n")
    ...     topology = rel.Topology("trades")
    ...     trades = topology.source(rel.csv(f"{folder}/trades.csv"))
    ...     _ = trades.sink(rel.list(), name="out"), trades.sink(rel.csv(f"{folder}/copy.csv"), name="copy")
    ...     [tuple(t) for t in rel.run(topology)["out"]], Path(folder, "copy.csv").read_text()
    ([('A', 1.5)], '"symbol","price"\n"A",1.5\n')
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
        paths: As a source a file, a glob, a directory, a URI such as `s3://bucket/folder`, or several; as a sink one
            path or URI. A directory stands for all files below it, except those that start with `_` or `.`. Folders
            named `name=value` below the directory or in the glob are a column.
        schema: The schema of a source; by default that of the files. Categories (dictionaries) are decoded.
        columns: The columns to read, or {column: field} to rename them; by default all, or those of the schema.
        time_ordered: Whether the event times of a file follow those of the file before; see ``text``.

    Raises:
        SourceError: At the declaration: no such file, or not readable as Parquet.
        SchemaError: The schema or columns= name a column that a file lacks, files have different columns and none were
            declared, or records can't hold a column.

    >>> import tempfile
    >>> import rayelastic as rel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written, read = rel.Topology("written"), rel.Topology("read")
    ...     _ = written.source(rel.sequence(2)).sink(rel.parquet(f"{folder}/n.parquet"), name="out")
    ...     _ = rel.run(written)
    ...     _ = read.source(rel.parquet(f"{folder}/n.parquet")).sink(rel.list(), name="out")
    ...     [tuple(t) for t in rel.run(read)["out"]]
    [(0,), (1,)]
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
        table: A pyarrow.Table, pyarrow.RecordBatch, DataFrame of pandas or Polars, or any object with Arrow's C stream.
        schema: The schema to cast the columns to; by default the table's own.
        columns: The columns to read, or {column: field} to rename them; by default all, or those of the schema.

    Raises:
        SchemaError: The schema doesn't match the table, or records can't hold a column.

    >>> import pyarrow as pa
    >>> import rayelastic as rel
    >>> topology = rel.Topology("table")
    >>> topology.source(rel.arrow(pa.table({"n": [1, 2]}))).sink(rel.arrow(), name="out")
    <sink out>
    >>> rel.run(topology)["out"].to_pydict()
    {'n': [1, 2]}
    """
    return ArrowSink() if table is None else arrow_source(table, schema, columns)


read_csv, read_json, read_parquet = csv, json, parquet  # as pandas and Polars call them
