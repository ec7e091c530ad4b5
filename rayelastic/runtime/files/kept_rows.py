"""The rows of a sink that stay in memory until the job asks for them. A checkpoint has them as Arrow IPC streams."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayelastic.errors import StateError
from rayelastic.runtime.files.outputs import Blob, BlobStore, Output

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Schema

__all__ = ["KeptRows"]


@dataclass(frozen=True, slots=True)
class _Segment:
    """A blob, and which batches it has: from one number up to another."""

    blob: Blob
    start: int
    stop: int


class KeptRows:
    """Collects a table; a checkpoint gets what has come since the last complete one.

    A blob that would be no smaller than the one before takes it in. So there are few of them, however long a job runs:
    n rows are in about log2(n), and each was written about as often.

    Args:
        schema: of the rows.
        name: that its blobs begin with.
        before: what an earlier run had taken, if this one goes on from it.
        store: where that is.

    Raises:
        StateError: a blob is damaged, or missing.
    """

    def __init__(
        self, schema: Schema, name: str = "", before: Output | None = None, store: BlobStore | None = None
    ) -> None:
        self._schema = schema.to_arrow()
        self._name = name
        self._batches: list[pa.RecordBatch] = []
        self._lock = threading.Lock()  # guards what follows
        self._complete: tuple[_Segment, ...] = ()  # of the last complete checkpoint
        self._complete_epoch = 0
        self._complete_at = ""  # where its blobs are: a checkpoint elsewhere can't count on them
        self._prepared: dict[int, tuple[str, tuple[_Segment, ...]]] = {}
        if before is not None and before.epoch:
            self._read(before, store)

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(batch.num_rows for batch in self._batches)

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes a batch."""
        self._batches.append(batch)

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Writes the rows that no complete checkpoint at the same place has."""
        with self._lock:
            segments = list(self._complete) if self._complete_at == store.location else []
            start = segments[-1].stop if segments else 0
            rows = sum(batch.num_rows for batch in self._batches[start:])
            while rows and segments and segments[-1].blob.rows <= rows:
                last = segments.pop()
                start, rows = last.start, rows + last.blob.rows
            if rows:
                segments.append(self._written(epoch, start, rows, store))
            self._prepared[epoch] = store.location, tuple(segments)
        return Output("", self.rows, epoch=epoch, blobs=tuple(segment.blob for segment in segments))

    def commit(self, epoch: int) -> None:
        """From now on checkpoints may count on what was prepared for an epoch; safe to repeat, from any thread."""
        with self._lock:
            if epoch > self._complete_epoch and epoch in self._prepared:
                (self._complete_at, self._complete), self._complete_epoch = self._prepared[epoch], epoch
            self._prepared = {number: one for number, one in self._prepared.items() if number > epoch}

    def close(self) -> pa.Table:
        """Gives the table."""
        import pyarrow as pa

        return pa.Table.from_batches(self._batches, self._schema)

    def output(self, rows: int) -> None:
        """Leaves nothing that a later run meets: a job that is stopped gives these rows itself."""

    def _written(self, epoch: int, start: int, rows: int, store: BlobStore) -> _Segment:
        import pyarrow as pa

        into = io.BytesIO()
        batches = self._batches[start:]
        with pa.ipc.new_stream(into, self._schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        name = f"{self._name}-{epoch:06}.rows"
        return _Segment(Blob(name, store.write(name, into.getvalue()), rows), start, start + len(batches))

    def _read(self, before: Output, store: BlobStore | None) -> None:
        import pyarrow as pa

        if store is None:
            raise StateError(
                "its rows are in a checkpoint, which isn't at hand",
                way_out="Restore the job from the checkpoint itself",
            )
        segments = []
        for blob, data in zip(
            before.blobs, store.chunks([(one.name, one.digest) for one in before.blobs]), strict=True
        ):
            start = len(self._batches)
            with pa.ipc.open_stream(data) as stream:
                if not stream.schema.equals(self._schema):
                    raise StateError(
                        f"its rows were of {stream.schema}, and are of {self._schema} now",
                        way_out="Declare it as it was, or drop it from the snapshot",
                    )
                self._batches += stream
            segments.append(_Segment(blob, start, len(self._batches)))
        self._complete_at, self._complete, self._complete_epoch = store.location, tuple(segments), before.epoch
