"""A sink whose result grows while the job runs: a folder of Parquet files, each of which appears when it is complete.

Readers of the folder (Spark, DuckDB, pyarrow) see complete files only. Existing files stay, and numbers continue after
theirs. With checkpoints, a file appears when the checkpoint that refers to it is complete.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rayelastic.connectors.output.part_folder import PartFolder
from rayelastic.connectors.parquet.writer import ParquetFormat
from rayelastic.connectors.sink import NewSink, SinkOperator

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.connectors.output.record import BlobStore, Output, SinkContext
    from rayelastic.connectors.parquet.growing import GrowingSink
    from rayelastic.graph.records.schema import Schema

PART_ROWS = 1_000_000  # rows after which a file is written at once, because they are in memory
JOIN_TIMEOUT = 5.0  # seconds for the current file
DIGITS = 6  # of a part's number


def growing_sink(new: NewSink, body: GrowingSink) -> SinkOperator:
    """Make a sink that writes a file per period."""
    hides = new.past.takes_checkpoints
    return new.owned(GrowingTable(body.path, new.schema, body.period, new.context, takes_checkpoints=hides))


class GrowingTable(PartFolder):
    """Collects batches, and writes a file per period.

    Args:
        location: A path or URI of its folder, which is made if missing.
        schema: The schema of the rows.
        period: Seconds between two files.
        context: The writer, and the run that it continues.
        part_rows: The number of rows after which a file is written at once.
        takes_checkpoints: Whether files stay hidden until a checkpoint is complete.

    Raises:
        SinkTakenError: Another run writes there.
        StateError: The folder isn't what the earlier run left.
    """

    def __init__(
        self,
        location: str,
        schema: Schema,
        period: float,
        context: SinkContext,
        part_rows: int = PART_ROWS,
        *,
        takes_checkpoints: bool = False,
    ) -> None:
        super().__init__(location, ParquetFormat(schema), context, digits=DIGITS, appends=True)
        self._period = period
        self._part_rows = part_rows
        self._takes_checkpoints = takes_checkpoints
        self._collecting = threading.Lock()  # guards the fields below
        self._batches: list[pa.RecordBatch] = []
        self._collected = 0  # their rows
        self._writing = threading.RLock()  # one file at a time, in the order of the rows
        self._failure: Exception | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="growing-table", daemon=True)
        self._thread.start()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch.

        Raises:
            OSError: An earlier one couldn't be written.
        """
        with self._collecting:
            self._raise_failure()
            self._batches.append(batch)
            self._collected += batch.num_rows
            full = self._collected >= self._part_rows
        if full:
            self._write_part()

    def end_part(self) -> None:
        """Write the collected rows into a file; it stays hidden."""
        with self._writing:
            with self._collecting:
                batches, self._batches, self._collected = self._batches, [], 0
            for batch in batches:
                super().write(batch)
            super().end_part()

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Write the collected rows, to be shown when the checkpoint of an epoch is complete.

        Raises:
            OSError: Rows couldn't be written.
        """
        with self._writing:
            self._write_part()
            self._raise_failure()
            return super().prepare(epoch, store)

    def close(self) -> str:
        """Write the collected rows; return the folder. A table without rows gets one file, for its columns.

        Raises:
            OSError: rows couldn't be written.
        """
        self._closed.set()
        self._thread.join()
        self._raise_failure()
        self._write_part()
        return super().close()

    def abandon(self) -> None:
        """Start no more files: another process restores the last checkpoint, or the job is over."""
        self._closed.set()
        self._thread.join(JOIN_TIMEOUT)
        super().abandon()

    def output(self, rows: int, store: BlobStore) -> Output:
        """Write the collected rows for a stopped job, which shows the rest when it is closed."""
        with self._writing:
            self._write_part()
            return super().output(rows, store)

    def _run(self) -> None:
        while not self._closed.wait(self._period):
            try:
                self._write_part()
            except Exception as error:  # raised with the next batch, or at the end
                with self._collecting:
                    self._failure = error
                return

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _write_part(self) -> None:
        with self._writing:
            self.end_part()
            if not self._takes_checkpoints:
                self.show()
