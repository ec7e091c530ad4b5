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
    n rows are in about log2(n), and each was written about as often. Blobs that no checkpoint counts on any more, and
    those of checkpoints that were never complete, are removed when the next one is.

    Args:
        schema: of the rows.
        name: that its blobs begin with.
        before: what an earlier run had taken, if this one goes on from it.
        store: where that is.
        keep: how many complete checkpoints may be gone back to.
        own: whether that earlier run was of the same job, whose blobs are removed when nothing counts on them.

    Raises:
        StateError: a blob is damaged, or missing.
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
        self._name = name
        self._batches: list[pa.RecordBatch] = []
        self._lock = threading.Lock()  # guards what follows
        self._keep = keep
        # Of the last complete checkpoints, in order; where they are, as one elsewhere can't count on these.
        self._kept: dict[int, tuple[str, tuple[_Segment, ...]]] = {0: ("", ())}
        self._files: dict[str, BlobStore] = {}  # the blobs that this job has written
        self._prepared: dict[int, tuple[str, tuple[_Segment, ...]]] = {}
        if before is not None and before.epoch:
            self._read(before, store, own=own)

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
            at, kept = self._kept[max(self._kept)]
            segments = list(kept) if at == store.location else []
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
            if epoch > max(self._kept) and epoch in self._prepared:
                self._kept[epoch] = self._prepared[epoch]
                self._kept = dict(sorted(self._kept.items())[-self._keep :])
            self._prepared = {number: one for number, one in self._prepared.items() if number > epoch}
            complete_at, _ = self._kept[max(self._kept)]
            needed = {
                segment.blob.name
                for _, segments in (*self._kept.values(), *self._prepared.values())
                for segment in segments
            }
            outdated = {name: self._files.pop(name) for name in list(self._files) if name not in needed}
        for name, store in outdated.items():
            if store.location == complete_at:  # others are of a savepoint, which isn't ours to remove
                store.delete(name)

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
        blob = Blob(name, store.write(name, into.getvalue()), rows)
        self._files[name] = store
        return _Segment(blob, start, start + len(batches))

    def _read(self, before: Output, store: BlobStore | None, *, own: bool) -> None:
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
            if own:
                self._files[blob.name] = store
        self._kept = {before.epoch: (store.location, tuple(segments))}
