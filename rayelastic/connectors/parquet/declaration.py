"""Parquet files, as a source and a sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, Unpack, overload

from rayelastic.connectors.description import Files, FileSink
from rayelastic.connectors.files.columns import Columns
from rayelastic.connectors.files.paths import Paths
from rayelastic.connectors.parquet.inference import parquet_source
from rayelastic.connectors.row_files import ReadFiles
from rayelastic.connectors.typed import Declared
from rayelastic.graph.records.schema import Schema

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ParquetSink(FileSink):
    """Writes Parquet: one file, or part files into a directory if the path has no suffix."""

    reason: str = "Arrow batches to Parquet"


@overload
def parquet(paths: Paths, schema: type[Mapping[str, Any]], **options: Unpack[ReadFiles]) -> Files[Any]: ...


@overload
def parquet(paths: Paths, schema: type[T], **options: Unpack[ReadFiles]) -> Files[T]: ...


@overload
def parquet(paths: Paths, schema: Declared | None = None, **options: Unpack[ReadFiles]) -> Files[Any]: ...


def parquet(paths: Paths, schema: object = None, *, columns: Columns = None, time_ordered: bool = False) -> Files[Any]:
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
    declared = None if schema is None else Schema.of(schema)
    return Files(paths, "parquet", partial(parquet_source, paths, declared, columns, time_ordered), ParquetSink)


read_parquet = parquet  # as pandas and Polars call it
