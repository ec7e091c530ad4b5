"""CSV, Parquet and Arrow: the same description serves as a source or as a sink, by where it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rayelastic.graph.edges.csv_files import CsvForm, CsvSource, check_form, csv_source
from rayelastic.graph.edges.parquet_files import ParquetSource, is_hidden, parquet_source
from rayelastic.graph.edges.paths import Paths, expanded, found_files, single
from rayelastic.graph.edges.sinks import ArrowSink, CsvSink, ParquetSink
from rayelastic.graph.edges.sources import ArrowSource, arrow_source
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import OnError, on_error_of
from rayelastic.graph.spec.operator_spec import SinkDescription, SourceDescription

__all__ = ["CsvFiles", "CsvSource", "ParquetFiles", "ParquetSource", "arrow", "csv", "parquet"]


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """What `csv` gives: a source or a sink, by where it stands."""

    paths: Paths
    schema: Schema | None
    form: CsvForm
    columns: object
    types: Mapping[str, object]
    on_bad_row: object

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up and infer the schema of the first where none was declared."""
        check_form(self.form, operator)
        policy = on_error_of(self.on_bad_row, "on_bad_row")
        paths = expanded(self.paths, operator, directories=False)
        return csv_source(paths, self.schema, self.columns, self.types, self.form, policy, operator)

    def as_sink(self, operator: str) -> SinkDescription:
        """Take the path as that of a sink."""
        return CsvSink(single(self.paths, operator, "csv"))


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """What `parquet` gives: a source or a sink, by where it stands."""

    paths: Paths
    schema: Schema | None

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up and read their schema."""
        found = found_files(self.paths, operator, directories=True)
        data = [(path, root) for path, root in found if not is_hidden(path, root)]
        return parquet_source(data or found, self.schema, operator)

    def as_sink(self, operator: str) -> SinkDescription:
        """Take the path as that of a sink."""
        return ParquetSink(single(self.paths, operator, "parquet"))


def csv(
    paths: Paths,
    schema: object = None,
    *,
    delimiter: str = ",",
    quote: str | None = '"',
    columns: Iterable[str] | Mapping[str, str] | None = None,
    types: Mapping[str, object] | None = None,
    nulls: Iterable[str] = ("",),
    encoding: str | None = None,
    comment: str | None = None,
    on_bad_row: OnError | Literal["fail", "skip", "divert"] = "fail",
) -> CsvFiles:
    """Read or write CSV with a header line.

    An empty field that isn't quoted is None, or an empty text where `str` is declared without None. What is inferred
    never changes a value: digits with leading zeros are text, a whole number that neither 64 bits nor a float hold is
    refused.

    Args:
        paths: as a source a file, a glob, a URI or several, compressed or not; as a sink one path or URI.
        schema: of a source; by default what the first rows of the first file look like, all fields nullable.
        delimiter: one character.
        quote: one character around fields that have delimiters, quotes or line ends in them; None: there is none.
        columns: those to read, or {column: field} to rename them; by default all.
        types: {field: type} instead of what would be inferred.
        nulls: what stands for None where it isn't quoted.
        encoding: of the files, such as 'latin-1'; by default UTF-8.
        comment: lines that start with this are left out.
        on_bad_row: what happens to a row that has too few or too many fields, or a value that isn't of its type. 'fail'
            ends the job with the row's number, 'skip' leaves the row out, 'divert' sends it to the stream `.errors` of
            the source, with the fields file, row, text, error and operator; the files are read a second time for that.

    Raises:
        SourceError: when the source is declared: no such file, not readable as CSV, or not of the encoding.
        SchemaError: the schema or columns= name a column that the file doesn't have, or a name that no field can have.
    """
    form = CsvForm(delimiter, quote, encoding, comment, tuple(nulls))
    return CsvFiles(paths, None if schema is None else Schema.of(schema), form, columns, types or {}, on_bad_row)


def parquet(paths: Paths, schema: object = None) -> ParquetFiles:
    """Read or write Parquet.

    Args:
        paths: as a source a file, a glob, a directory (all files below it, but those that start with `_` or `.`), a URI
            such as `s3://bucket/folder`, or several; as a sink one path or URI. Folders called `name=value` below the
            directory or in the glob are a column.
        schema: of a source; by default that of the files. Categories (dictionaries) are decoded.

    Raises:
        SourceError: when the source is declared: no such file, not readable as Parquet.
        SchemaError: the schema names a column that a file doesn't have, files have different columns and none were
            declared, or there is a column that records can't hold.
    """
    return ParquetFiles(paths, None if schema is None else Schema.of(schema))


def arrow(table: Any = None, schema: object = None) -> ArrowSource | ArrowSink:
    """With a table: a source of its rows. Without: a sink that collects the stream into a pyarrow.Table.

    Args:
        table: pyarrow.Table, pyarrow.RecordBatch or pandas DataFrame.
        schema: to cast the columns to; by default the table's own.

    Raises:
        SchemaError: the schema doesn't match the table, or the table has a column that records can't hold.
    """
    return ArrowSink() if table is None else arrow_source(table, schema)
