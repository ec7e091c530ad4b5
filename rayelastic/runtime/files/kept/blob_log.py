"""An append-only list whose items a checkpoint keeps in files: each checkpoint writes what is new, in few files.

A file that would be no smaller than the one before takes it in. So n rows are in about log2(n) files, and each row was
written about as often. Files that no checkpoint counts on any more, and those of checkpoints that were never complete,
are removed when the next checkpoint is complete. Knows neither what the items are nor how they become bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from rayelastic.errors import StateError
from rayelastic.runtime.files.outputs import Blob, BlobStore, Output

__all__ = ["BlobLog", "ItemCodec"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ItemCodec(Generic[T]):
    """How items become bytes.

    Args:
        encode: items as bytes.
        decode: the same back; raises StateError for items of another kind.
        rows: how many rows an item has.
    """

    encode: Callable[[list[T]], bytes]
    decode: Callable[[bytes], Iterable[T]]
    rows: Callable[[T], int]


@dataclass(frozen=True, slots=True)
class _Segment:
    """A file, and which items it has: from one number up to another."""

    blob: Blob
    start: int
    stop: int


class BlobLog(Generic[T]):
    """Keeps items in memory, and what is new of them in checkpoints.

    One thread at a time calls its methods but `commit`.

    Args:
        codec: how items become bytes.
        name: prefix of the names of its files.
        before: what an earlier run had taken, if this one goes on from it.
        store: where that is.
        keep: how many complete checkpoints may be restored.
        own: whether that earlier run was of the same job, whose files are removed when nothing counts on them.

    Raises:
        StateError: a file is damaged or missing, or has items of another kind.
    """

    def __init__(
        self,
        codec: ItemCodec[T],
        name: str = "",
        before: Output | None = None,
        store: BlobStore | None = None,
        keep: int = 1,
        *,
        own: bool = True,
    ) -> None:
        self.items: list[T] = []
        self._codec = codec
        self._name = name
        self._lock = threading.Lock()  # guards what follows
        self._keep = keep
        # Of the last complete checkpoints, in order; where they are, as one elsewhere can't count on these.
        self._kept: dict[int, tuple[str, tuple[_Segment, ...]]] = {0: ("", ())}
        self._files: dict[str, BlobStore] = {}  # the files that this job has written
        self._prepared: dict[int, tuple[str, tuple[_Segment, ...]]] = {}
        if before is not None:
            self._read(before, store, own=own)

    @property
    def rows(self) -> int:
        """How many rows all items have."""
        return sum(map(self._codec.rows, self.items))

    def prepare(self, epoch: int, store: BlobStore) -> tuple[Blob, ...]:
        """Write the items that no complete checkpoint at the same place has; return the files that have all items."""
        with self._lock:
            at, kept = self._kept[max(self._kept)]
            segments = list(kept) if at == store.location else []
            start = segments[-1].stop if segments else 0
            rows = sum(map(self._codec.rows, self.items[start:]))
            while rows and segments and segments[-1].blob.rows <= rows:
                last = segments.pop()
                start, rows = last.start, rows + last.blob.rows
            if rows:
                segments.append(self._written(epoch, start, rows, store))
            self._prepared[epoch] = store.location, tuple(segments)
        return tuple(segment.blob for segment in segments)

    def commit(self, epoch: int) -> None:
        """Have checkpoints count on what was prepared for an epoch; safe to repeat, from any thread."""
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

    def write_all(self, store: BlobStore) -> tuple[Blob, ...]:
        """Write all items into one file, for a snapshot that no checkpoint follows."""
        rows = self.rows
        if not rows:
            return ()
        name = f"{self._name}-all.rows"
        return (Blob(name, store.write(name, self._codec.encode(self.items)), rows),)

    def _written(self, epoch: int, start: int, rows: int, store: BlobStore) -> _Segment:
        name = f"{self._name}-{epoch:06}.rows"
        blob = Blob(name, store.write(name, self._codec.encode(self.items[start:])), rows)
        self._files[name] = store
        return _Segment(blob, start, len(self.items))

    def _read(self, before: Output, store: BlobStore | None, *, own: bool) -> None:
        if store is None:
            raise StateError(
                "what it wrote is listed in a checkpoint, which isn't at hand",
                hint="Restore the job from the checkpoint itself",
            )
        segments = []
        files = [(one.name, one.digest) for one in before.blobs]
        for blob, data in zip(before.blobs, store.chunks(files), strict=True):
            start = len(self.items)
            self.items += self._codec.decode(data)
            segments.append(_Segment(blob, start, len(self.items)))
            if own:
                self._files[blob.name] = store
        self._kept = {before.epoch: (store.location, tuple(segments))}
