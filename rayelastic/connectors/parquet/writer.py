"""Writes Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rayelastic.graph.records.schema import Schema


class ParquetFormat:
    """Parquet, a row group for each batch.

    Args:
        schema: The schema of the rows.
    """

    suffix = ".parquet"

    def __init__(self, schema: Schema) -> None:
        self._schema = schema.to_arrow()

    def begin(self, file: Any) -> Any:
        """Return a writer."""
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(file, self._schema)

    def copy(self, before: Any, rows: int, writer: Any, file: Any) -> None:  # noqa: ARG002  (the writer has the file)
        """Copy row group by row group; of the last one only the requested rows."""
        from pyarrow.parquet import ParquetFile

        old = ParquetFile(before)
        for number in range(old.num_row_groups):
            if rows > 0 and old.metadata.row_group(number).num_rows > 0:
                group = old.read_row_group(number).cast(self._schema).slice(0, rows)
                writer.write_table(group)
                rows -= group.num_rows
