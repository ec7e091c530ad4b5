"""CSV, Parquet and Arrow: the same description serves as a source or as a sink, by where it is given."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rayelastic.errors import SchemaError, SinkError, SourceError
from rayelastic.graph.operator_spec import Lane, SinkDescription, SourceDescription
from rayelastic.graph.paths import Paths, expanded
from rayelastic.graph.schema import Schema
from rayelastic.graph.sinks import ArrowSink, CsvSink, ParquetSink
from rayelastic.graph.sources import ArrowSource, arrow_source

__all__ = ["CsvFiles", "CsvSource", "ParquetFiles", "ParquetSource", "arrow", "csv", "parquet"]


@dataclass(frozen=True, slots=True)
class CsvSource:
    """Rows of CSV files that have a header line, through pyarrow's reader."""

    paths: tuple[str, ...]
    schema: Schema
    delimiter: str = ","
    lane: Lane = Lane.BUILT_IN
    reason: str = "pyarrow reader, native conversion"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        expanded(self.paths, operator, directories=False)


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """Rows of Parquet files, through pyarrow's reader."""

    paths: tuple[str, ...]
    schema: Schema
    lane: Lane = Lane.BUILT_IN
    reason: str = "pyarrow reader, native conversion"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        expanded(self.paths, operator, directories=False)


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """What `csv` gives: a source or a sink, by where it stands."""

    paths: Paths
    schema: Schema | None
    delimiter: str

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up and infer the schema of the first where none was declared."""
        paths = expanded(self.paths, operator, directories=False)
        columns = _csv_columns(paths[0], operator, self.delimiter)
        return CsvSource(paths, _matching(columns, self.schema, paths[0], operator), self.delimiter)

    def as_sink(self, operator: str) -> SinkDescription:
        """Take the path as that of a sink."""
        return CsvSink(_single(self.paths, operator, "csv"))


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """What `parquet` gives: a source or a sink, by where it stands."""

    paths: Paths
    schema: Schema | None

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up and read the schema of the first where none was declared."""
        paths = expanded(self.paths, operator, directories=True)
        columns = _parquet_columns(paths[0], operator)
        return ParquetSource(paths, _matching(columns, self.schema, paths[0], operator))

    def as_sink(self, operator: str) -> SinkDescription:
        """Take the path as that of a sink."""
        return ParquetSink(_single(self.paths, operator, "parquet"))


def csv(paths: Paths, schema: object = None, *, delimiter: str = ",") -> CsvFiles:
    """Read or write CSV with a header line.

    Args:
        paths: as a source a file, a glob or several; as a sink one path.
        schema: of a source; by default what the first rows of the first file look like, all fields nullable.
        delimiter: one character.

    Raises:
        SourceError: when the source is declared: no such file, not readable as CSV.
        SchemaError: the schema names a column that the file doesn't have.
    """
    return CsvFiles(paths, None if schema is None else Schema.of(schema), delimiter)


def parquet(paths: Paths, schema: object = None) -> ParquetFiles:
    """Read or write Parquet.

    Args:
        paths: as a source a file, a glob, a directory (all files below it) or several; as a sink one path.
        schema: of a source; by default that of the first file.

    Raises:
        SourceError: when the source is declared: no such file, not readable as Parquet.
        SchemaError: the schema names a column that the file doesn't have, or the file has one that records can't hold.
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


def _single(paths: Paths, operator: str, function: str) -> str:
    if not isinstance(paths, str | os.PathLike):
        raise SinkError("a sink writes to one path", operator=operator, way_out=f"Give rel.{function} one path")
    return str(Path(paths).expanduser().absolute())  # where it runs the working directory may be another


def _csv_columns(path: str, operator: str, delimiter: str) -> Any:
    """Infer the pyarrow.Schema of a CSV file from its first block."""
    from pyarrow import ArrowException
    from pyarrow.csv import ParseOptions, open_csv

    try:
        with open_csv(path, parse_options=ParseOptions(delimiter=delimiter)) as reader:
            return reader.schema
    except (ArrowException, ValueError, OSError) as error:
        raise SourceError(f"{path!r} can't be read as CSV: {error}", operator=operator, way_out=_CSV_WAY_OUT) from error


_CSV_WAY_OUT = "Check that it has a header line and the delimiter that was given"


def _parquet_columns(path: str, operator: str) -> Any:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    try:
        return read_schema(path)
    except (ArrowException, ValueError, OSError) as error:
        raise SourceError(
            f"{path!r} can't be read as Parquet: {error}", operator=operator, way_out="Check that it is a Parquet file"
        ) from error


def _matching(columns: Any, declared: Schema | None, path: str, operator: str) -> Schema:
    """Take the declared schema if the file has its columns, or else the file's."""
    if declared is None:
        try:
            return Schema.of(columns)
        except SchemaError as error:
            error.way_out = f"Declare schema= with the columns that you need. {error.way_out}"
            raise
    for name in declared.names:
        if name not in columns.names:
            raise SchemaError(
                f"{declared.name} declares '{name}', which {path!r} doesn't have",
                operator=operator,
                way_out=f"Its columns are {', '.join(columns.names)}",
            )
    return declared
