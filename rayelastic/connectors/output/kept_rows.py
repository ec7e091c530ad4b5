"""The rows of a sink that stay in memory until the job returns them. A checkpoint stores them as Arrow IPC streams."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rayelastic.connectors.output.blob_log import BlobLog, ItemCodec
from rayelastic.connectors.output.record import BlobStore, Output
from rayelastic.errors import ErrorCode, StateError

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Schema

__all__ = ["KeptRows"]


class KeptRows:
    """Collects a table; a checkpoint stores the rows since the last complete one.

    Args:
        schema: The schema of the rows.
        name: The prefix of its files' names in checkpoints.
        before: The output of the earlier run that this one continues, if any.
        store: The store of that output.
        keep: The number of complete checkpoints that can be restored.
        own: Whether that run was of the same job, whose unreferenced files are removed.

    Raises:
        StateError: A file is damaged, or missing.
    """

    def __init__(
        self,
        schema: Schema,
        name: str = "",
        before: Output | None = None,
        store: BlobStore | None = None,
        keep: int = 1,
        *,
        own: bool = True,
    ) -> None:
        self._schema = schema.to_arrow()
        codec = ItemCodec(self._encoded, self._decoded, lambda batch: batch.num_rows)
        self._log: BlobLog[pa.RecordBatch] = BlobLog(
            codec, name, before if before is not None and before.epoch else None, store, keep, own=own
        )

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._log.rows

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._log.items.append(batch)

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Write the rows that no complete checkpoint at the same location has."""
        return Output("", self.rows, epoch, blobs=self._log.prepare(epoch, store))

    def commit(self, epoch: int) -> None:
        """Allow checkpoints to refer to what was prepared for an epoch; safe to repeat, from any thread."""
        self._log.commit(epoch)

    def close(self) -> pa.Table:
        """Return the table."""
        import pyarrow as pa

        return pa.Table.from_batches(self._log.items, self._schema)

    def output(self, rows: int, store: BlobStore) -> None:
        """Return None: a stopped job returns these rows itself, so a later run finds nothing."""

    def _encoded(self, batches: list[pa.RecordBatch]) -> bytes:
        import pyarrow as pa

        into = io.BytesIO()
        with pa.ipc.new_stream(into, self._schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        return into.getvalue()

    def _decoded(self, data: bytes) -> list[pa.RecordBatch]:
        import pyarrow as pa

        with pa.ipc.open_stream(data) as stream:
            if not stream.schema.equals(self._schema):
                raise StateError(
                    f"its rows were of {stream.schema}, and are of {self._schema} now",
                    hint="Declare it as it was, or drop it from the snapshot",
                    code=ErrorCode.CHANGED_STATE,
                )
            return list(stream)
