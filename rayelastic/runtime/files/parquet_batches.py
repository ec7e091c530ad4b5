"""The rows of Parquet files as Arrow batches of a source's schema, with the columns that folders name.

Everything that is wrong with a file is a SourceError with its name and the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rayelastic.errors import SourceError
from rayelastic.graph.edges.locations import LocationError, readable, shown_location

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.edges.parquet_files import ParquetSource

__all__ = ["parquet_batches"]


def parquet_batches(body: ParquetSource, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of all files, one after the other.

    Raises:
        SourceError: a file can't be read, or a value doesn't fit the schema.
    """
    for number, path in enumerate(body.paths):
        yield from _file_batches(path, body, body.constants_of(number), batch_rows)


def _file_batches(
    path: str, body: ParquetSource, constants: dict[str, str | None], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    wanted = [name for name in body.schema.names if name not in constants]
    rows = 0
    try:
        with readable(path) as opened, ParquetFile(opened) as file:
            for batch in file.iter_batches(batch_rows, columns=wanted):
                yield _of_schema(batch, body, constants)
                rows += batch.num_rows
    except LocationError as error:
        raise SourceError(error.problem, way_out=error.way_out) from error
    except (ArrowException, ValueError, OSError) as error:
        raise SourceError(
            f"{shown_location(path)!r} can't be read behind row {rows:,}: {error}",
            way_out="Check the file, and what schema= says of its columns",
        ) from error


def _of_schema(batch: pa.RecordBatch, body: ParquetSource, constants: dict[str, str | None]) -> pa.RecordBatch:
    import pyarrow as pa

    target = body.schema.to_arrow()
    if batch.schema.equals(target):
        return batch
    columns: list[Any] = []
    for field in target:
        if field.name in constants:
            columns.append(pa.array([constants[field.name]] * batch.num_rows, pa.string()).cast(field.type))
        else:
            columns.append(batch.column(field.name).cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=target)
