"""Parquet files, as a source and a sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack, overload

from rayelastic.connectors.description import FileSink
from rayelastic.connectors.files.columns import Columns
from rayelastic.connectors.files.paths import Paths, found_files, single
from rayelastic.connectors.parquet.inference import is_hidden, parquet_source
from rayelastic.connectors.row_files import ReadFiles
from rayelastic.connectors.typed import Declared, SourceOf
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import SinkDescription, SourceDescription

__all__ = ["ParquetFiles", "ParquetSink", "parquet", "read_parquet"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ParquetSink(FileSink):
    """Writes Parquet: one file, or part files into a directory if the path has no suffix."""

    reason: str = "Arrow batches to Parquet"


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
def parquet(paths: Paths, schema: type[Mapping[str, Any]], **options: Unpack[ReadFiles]) -> ParquetFiles[Any]: ...


@overload
def parquet(paths: Paths, schema: type[T], **options: Unpack[ReadFiles]) -> ParquetFiles[T]: ...


@overload
def parquet(paths: Paths, schema: Declared | None = None, **options: Unpack[ReadFiles]) -> ParquetFiles[Any]: ...


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


read_parquet = parquet  # as pandas and Polars call it
