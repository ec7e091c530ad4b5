"""Writes CSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rayelastic.connectors.files.casts import cast_table
from rayelastic.connectors.files.texts import has_own_text
from rayelastic.connectors.output.formats import COPY_BYTES

if TYPE_CHECKING:
    from rayelastic.graph.records.schema import Schema


class CsvFormat:
    """CSV with a header, as pyarrow writes it: quotes inside a text are doubled, a row ends with a line feed.

    Args:
        schema: The schema of the rows.
    """

    suffix = ".csv"

    def __init__(self, schema: Schema) -> None:
        self._schema = schema.to_arrow()
        self._written = _written(self._schema)

    def begin(self, file: Any) -> Any:
        """Return a writer, which has already written the header."""
        from pyarrow.csv import CSVWriter

        writer = CSVWriter(file, self._written)
        is_same = self._written == self._schema and not _has_blank_lines(self._schema)
        return writer if is_same else _Casting(writer, self._written)

    def copy(self, before: Any, rows: int, writer: Any, file: Any) -> None:  # noqa: ARG002  (it keeps nothing back)
        """Copy bytes, without the header."""
        start = _end_of(before, 0)
        before.seek(0)
        end = _end_of(before, rows)
        before.seek(start)
        while start < end and (piece := before.read(min(COPY_BYTES, end - start))):
            file.write(piece)
            start += len(piece)


def _written(schema: Any) -> Any:
    """Return the written types of fields: times with a zone in UTC; UUIDs and durations as texts."""
    import pyarrow as pa

    if _has_blank_lines(schema):
        return pa.schema([schema.field(0).with_type(pa.string())])

    def written(kind: Any) -> Any:
        if has_own_text(kind):
            return pa.string()
        return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz is not None else kind

    return pa.schema([field.with_type(written(field.type)) for field in schema])


def _has_blank_lines(schema: Any) -> bool:
    """Return whether pyarrow would write a blank line for a row."""
    return len(schema) == 1 and bool(schema.field(0).nullable)


class _Casting:
    """Casts batches to the written types; writes None in a single column as "", because a blank line isn't a row.

    Args:
        writer: pyarrow's.
        schema: The schema of its rows.
    """

    def __init__(self, writer: Any, schema: Any) -> None:
        self._writer, self._schema = writer, schema

    def write_batch(self, batch: Any) -> None:
        """Write the rows."""
        cast = cast_table(batch, self._schema)
        if cast.num_columns == 1:
            cast = type(batch).from_arrays([cast.column(0).fill_null("")], schema=self._schema)
        self._writer.write_batch(cast)

    def close(self) -> None:
        """Close the writer."""
        self._writer.close()


def _end_of(file: Any, rows: int) -> int:
    """Return where the header and so many rows of CSV end, in bytes; the end of the file if there are fewer."""
    at, seen, quotes = 0, -1, 0
    while piece := file.read(COPY_BYTES):
        codes = np.frombuffer(piece, np.uint8)
        before = quotes + np.cumsum(codes == ord('"'))
        ends = np.flatnonzero((codes == ord("\n")) & (before % 2 == 0))
        if seen + len(ends) >= rows:
            return at + int(ends[rows - seen - 1]) + 1
        at, seen, quotes = at + len(piece), seen + len(ends), int(before[-1])
    return at
