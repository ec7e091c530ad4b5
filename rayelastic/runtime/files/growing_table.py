"""A sink whose result grows while the job runs: a folder of Parquet files, each of which appears when it is complete.

Whoever reads the folder (Spark, DuckDB, pyarrow) sees whole files only: a file is written under a name that starts with
a dot, which readers leave out, and renamed. What is in the folder already stays, and numbering goes on behind it.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from rayelastic.graph.edges.locations import shown_location
from rayelastic.runtime.files.file_writer import Output, check_left, rows_of
from rayelastic.runtime.files.output_folder import OutputFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Schema

PART_ROWS = 1_000_000  # rows after which a file is written at once: what waits stays in memory
_PART = re.compile(r"part-(\d+)\.parquet")


class GrowingTable:
    """Takes batches, and writes what came once a period.

    Args:
        location: path or URI of its folder, which is made if missing.
        schema: of the rows.
        period: seconds after which rows that wait are written.
        before: what an earlier run wrote there, if this one goes on from it.
        part_rows: rows after which they are written at once.

    Raises:
        StateError: what is there isn't what the earlier run left.
    """

    def __init__(
        self, location: str, schema: Schema, period: float, before: Output | None = None, part_rows: int = PART_ROWS
    ) -> None:
        self._location = location
        self._folder = OutputFolder(location)
        self._schema = schema.to_arrow()
        self._period = period
        self._part_rows = part_rows
        self._lock = threading.Lock()  # guards what follows
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._writing = threading.Lock()  # one file at a time, in the order in which rows came
        self._failure: Exception | None = None
        self._closed = threading.Event()
        parts = {int(found[1]): name for name in self._folder.names() if (found := _PART.fullmatch(name))}
        self._next = max(parts, default=-1) + 1
        self._first, self._rows_before = (self._next, 0) if before is None else (before.first, before.rows)
        if before is not None:
            ours = [name for number, name in parts.items() if number >= before.first]
            check_left(before, rows_of(self._folder, ours, _rows))
        self._thread = threading.Thread(target=self._run, name=f"table-{self._next}", daemon=True)
        self._thread.start()

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes a batch.

        Raises:
            OSError: an earlier one couldn't be written.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._waiting.append(batch)
            self._rows += batch.num_rows
            full = self._rows >= self._part_rows
        if full:
            self._write_part()

    def close(self) -> str:
        """Writes what still waits; gives the folder. A table without rows gets one file, for its columns.

        Raises:
            OSError: rows couldn't be written.
        """
        self._closed.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        self._write_part(even_if_empty=self._next == 0)
        return self._location

    def output(self, rows: int) -> Output:
        """What is written when this table has taken so many rows and is closed."""
        return Output(shown_location(self._location), rows + self._rows_before, self._first)

    def _run(self) -> None:
        while not self._closed.wait(self._period):
            try:
                self._write_part()
            except Exception as error:  # told with the next batch, or at the end
                with self._lock:
                    self._failure = error
                return

    def _write_part(self, *, even_if_empty: bool = False) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        with self._writing:
            with self._lock:
                batches, self._waiting, self._rows = self._waiting, [], 0
            if not batches and not even_if_empty:
                return
            name = f"part-{self._next:06d}.parquet"
            file = self._folder.open(name)
            parquet.write_table(pa.Table.from_batches(batches, self._schema), file)
            self._folder.close(file, name)
            self._next += 1


def _rows(file: Any) -> int:
    from pyarrow.parquet import ParquetFile

    rows: int = ParquetFile(file).metadata.num_rows
    return rows
