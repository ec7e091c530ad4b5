"""Reads the rows of a table in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rayelastic.connectors.source import BATCH_ROWS, BatchReader

if TYPE_CHECKING:
    import pyarrow as pa


class TableReader(BatchReader):
    """Reads a pyarrow.Table, from any row on."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield slices of the table."""
        yield from self.body.table.slice(self.start).to_batches(max_chunksize=BATCH_ROWS)

    def reachable(self, position: int) -> int:
        """Return the position, or the number of rows."""
        rows: int = self.body.table.num_rows
        return min(position, rows)
