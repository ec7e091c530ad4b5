"""The rows of a sink that stay in memory until the job asks for them. A checkpoint has them as Arrow IPC streams."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rayelastic.errors import StateError
from rayelastic.runtime.files.kept.blob_log import BlobLog, ItemCodec
from rayelastic.runtime.files.outputs import BlobStore, Output

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Schema

__all__ = ["KeptRows"]


class KeptRows:
    """Collects a table; a checkpoint gets what has come since the last complete one.

    Args:
        schema: of the rows.
        name: prefix of the names of its files in checkpoints.
        before: what an earlier run had taken, if this one goes on from it.
        store: where that is.
        keep: how many complete checkpoints may be restored.
        own: whether that earlier run was of the same job, whose files are removed when nothing counts on them.

    Raises:
        StateError: a file is damaged, or missing.
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
        """How many there are."""
        return self._log.rows

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch."""
        self._log.items.append(batch)

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Write the rows that no complete checkpoint at the same place has."""
        return Output("", self.rows, epoch, blobs=self._log.prepare(epoch, store))

    def commit(self, epoch: int) -> None:
        """From now on checkpoints may count on what was prepared for an epoch; safe to repeat, from any thread."""
        self._log.commit(epoch)

    def close(self) -> pa.Table:
        """Gives the table."""
        import pyarrow as pa

        return pa.Table.from_batches(self._log.items, self._schema)

    def output(self, rows: int, store: BlobStore) -> None:
        """Leave nothing that a later run meets: a job that is stopped gives these rows itself."""

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
                )
            return list(stream)
