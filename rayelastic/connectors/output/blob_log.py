"""An append-only list that checkpoints store in files: each checkpoint writes the new items, in few files.

A file that would be no smaller than the previous one absorbs it. So n rows are in about log2(n) files, and each row was
written about as often. When a checkpoint is complete, files are removed that no checkpoint refers to, and those of
checkpoints that never completed. Knows neither the items nor their encoding.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from rayelastic.connectors.output.record import Blob, BlobStore, Output
from rayelastic.errors import ErrorCode, StateError

__all__ = ["BlobLog", "ItemCodec"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ItemCodec(Generic[T]):
    """The encoding of items.

    Args:
        encode: Encodes items as bytes.
        decode: Decodes them; raises StateError for items of another kind.
        rows: Returns the number of rows of an item.
    """

    encode: Callable[[list[T]], bytes]
    decode: Callable[[bytes], Iterable[T]]
    rows: Callable[[T], int]


@dataclass(frozen=True, slots=True)
class _Segment:
    """A file, and the range of numbers of its items."""

    blob: Blob
    start: int
    stop: int


class BlobLog(Generic[T]):
    """Keeps items in memory, and writes the new ones to checkpoints.

    One thread at a time calls its methods except `commit`.

    Args:
        codec: The encoding of items.
        name: The prefix of its files' names.
        before: The output of the earlier run that this one continues, if any.
        store: The store of that output.
        keep: The number of complete checkpoints that can be restored.
        own: Whether that run was of the same job, whose unreferenced files are removed.

    Raises:
        StateError: A file is damaged or missing, or has items of another kind.
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
        self._lock = threading.Lock()  # guards the fields below
        self._keep = keep
        # Of the last complete checkpoints, in order, with their location: one elsewhere can't refer to these.
        self._kept: dict[int, tuple[str, tuple[_Segment, ...]]] = {0: ("", ())}
        self._files: dict[str, BlobStore] = {}  # the files that this job has written
        self._prepared: dict[int, tuple[str, tuple[_Segment, ...]]] = {}
        if before is not None:
            self._read(before, store, own=own)

    @property
    def rows(self) -> int:
        """The number of rows of all items."""
        return sum(map(self._codec.rows, self.items))

    def prepare(self, epoch: int, store: BlobStore) -> tuple[Blob, ...]:
        """Write the items that no complete checkpoint at the same location has; return the files with all items."""
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
        """Allow checkpoints to refer to what was prepared for an epoch; safe to repeat, from any thread."""
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
            if store.location == complete_at:  # others belong to a savepoint, which must stay
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
                "its output is listed in a checkpoint that is missing",
                hint="Restore the job from the checkpoint itself",
                code=ErrorCode.MISSING_OUTPUT,
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
