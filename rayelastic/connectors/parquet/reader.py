"""Reads the rows of Parquet files as Arrow batches of a source's schema, with the columns that folders name.

Errors of a file are SourceErrors with its name and the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.casts import cast_column
from rayelastic.connectors.files.locations import FileIdentity, LocationError, readable, reading
from rayelastic.connectors.source import BATCH_ROWS, BatchReader
from rayelastic.errors import ErrorCode, SourceError, SourceLostError

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetReader(BatchReader):
    """Reads Parquet files, one after the other, from any row on. Earlier row groups aren't read.

    Raises:
        SourceError: A file can't be read, or a value doesn't fit the schema.
    """

    def batches(self) -> Iterator[pa.RecordBatch | int]:
        """Yield the rows of all files; the number of each file precedes its batches."""
        body, start = self.body, self.start
        for number, path in enumerate(body.paths):
            here = start and min(start, _rows_in(path))
            start -= here
            yield number
            yield from _read_twice(path, self._columns, body.constants_of(number), here, body.fills_missing)

    @property
    def _columns(self) -> dict[str, pa.Field]:
        """The columns that somebody reads, with the fields that they become."""
        fields = zip(self.body.columns, self.body.schema.to_arrow(), strict=True)
        return {column: field for column, field in fields if field.name not in self.unread}

    def reachable(self, position: int) -> int:
        """Return the position, or the number of rows by the footers of the files."""
        rows = 0
        for path in self.body.paths:
            if rows >= position:
                break
            rows += _rows_in(path)
        return min(position, rows)


def _rows_in(path: str) -> int:
    from pyarrow.parquet import ParquetFile

    with _reading(path, lambda: 0), readable(path) as opened, ParquetFile(opened) as file:
        rows: int = file.metadata.num_rows
    return rows


def _read_twice(
    path: str, columns: Mapping[str, pa.Field], constants: Mapping[str, str | None], start: int, fills: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file. After a failure it tries once more; two failures show bad content."""
    rows, said = start, ""
    while True:
        try:
            for batch in _file_batches(path, columns, constants, rows, fills):
                rows += batch.num_rows
                yield batch
        except SourceLostError as error:
            if error.problem == said and _answers(path):
                raise SourceError(error.problem, hint=error.hint, code=ErrorCode.MALFORMED_FILE) from error.__cause__
            if error.problem == said or not _answers(path):
                raise
            said = error.problem
        else:
            return


def _answers(path: str) -> bool:
    """Return whether the store of a file answers."""
    try:
        return FileIdentity.of(path, edges=False) is not None
    except (LocationError, OSError):
        return False


def _file_batches(
    path: str, columns: Mapping[str, pa.Field], constants: Mapping[str, str | None], start: int, fills: bool
) -> Iterator[pa.RecordBatch]:
    from pyarrow.parquet import ParquetFile

    rows = 0
    with _reading(path, lambda: rows), _unchanged(path), readable(path) as opened, ParquetFile(opened) as file:
        if fills:
            constants = {**dict.fromkeys(set(columns) - set(file.schema_arrow.names)), **constants}
        wanted = [name for name in columns if name not in constants]
        sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        first = 0
        while first < len(sizes) and rows + sizes[first] <= start:
            rows += sizes[first]
            first += 1
        for batch in file.iter_batches(BATCH_ROWS, row_groups=list(range(first, len(sizes))), columns=wanted):
            new = batch.slice(start - rows) if start > rows else batch
            rows += batch.num_rows
            if new.num_rows:
                yield _of_fields(new, columns, constants)


@contextmanager
def _unchanged(path: str) -> Iterator[None]:
    """Raise SourceError if the file has changed since reading began, instead of the reader's error."""
    before = FileIdentity.of(path)
    try:
        yield
    except GeneratorExit:
        raise
    except Exception:
        if before is not None:
            before.check(path)
        raise
    if before is not None:
        before.check(path)


def _reading(path: str, rows: Callable[[], int]) -> AbstractContextManager[None]:
    """Raise errors of a file with its name, and the row before."""
    return reading(path, lambda: f"behind row {rows():,}", "Check the file, and what schema= says of its columns")


def _of_fields(
    batch: pa.RecordBatch, columns: Mapping[str, pa.Field], constants: Mapping[str, str | None]
) -> pa.RecordBatch:
    import pyarrow as pa

    made: list[Any] = []
    for column, field in columns.items():
        if column in constants:
            values = pa.array([constants[column]] * batch.num_rows, pa.string())
        else:
            values = batch.column(column)
        made.append(cast_column(values, field.type))
    return pa.RecordBatch.from_arrays(made, schema=pa.schema(columns.values()))
