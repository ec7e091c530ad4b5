"""The disk of a node, as other nodes use it: they read its files of checkpoints, and store second copies there.

Each file is checked against its digest when it is written and read. A file that hasn't changed since another checkpoint
is one file with two names, so it is copied once. Knows neither elements nor the other nodes.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import threading
from typing import TYPE_CHECKING

from rayelastic.errors import DamagedError, StateError
from rayelastic.runtime.checkpoint.files import CHUNK_BYTES, MANIFEST, SnapshotFolder, rows_of
from rayelastic.runtime.checkpoint.location import local_folder, remove_local
from rayelastic.runtime.values.snapshot import ROWS, Snapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rayelastic.runtime.values.snapshot import File


class NodeDisk:
    """The files of one run of a job on the disk of this node. Its methods are called from other processes.

    Args:
        job_id: The run.
    """

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._lock = threading.Lock()
        self._sound: dict[File, Snapshot] = {}  # files that this process has written or checked, and where

    def lacking(self, snapshot: Snapshot, files: Sequence[File]) -> list[File]:
        """Return the files of a checkpoint that are missing or damaged here, after links to unchanged ones."""
        with self._lock:
            return [file for file in files if not self._has(snapshot, file)]

    def read(self, snapshot: Snapshot, files: Sequence[File]) -> list[bytes | None]:
        """Return the first files of a list, of some megabytes in all; None for one that is missing or damaged."""
        contents: list[bytes | None] = []
        size = 0
        for file in files:
            content = self._read(snapshot, file)
            size += len(content or b"")
            if contents and size > CHUNK_BYTES:
                break
            contents.append(content)
        return contents

    def manifest(self, snapshot: Snapshot) -> bytes | None:
        """Return the manifest's file, unchecked; None if it is missing."""
        try:
            return SnapshotFolder(snapshot).raw(MANIFEST)
        except StateError:
            return None

    def write(self, snapshot: Snapshot, files: Sequence[tuple[File, bytes]]) -> None:
        """Write files of another node's share.

        Raises:
            StateError: The disk has no room, or a file isn't what its owner wrote.
        """
        with self._lock:
            for file, content in files:
                if hashlib.sha256(content).hexdigest() != file.digest:
                    raise DamagedError(f"{file.name} changed on its way to another node")
                folder = _folder(snapshot, file)
                folder.make()  # not `prepare`: the coordinator's disk may have the whole checkpoint
                folder.write(file.name, content)
                self._sound[file] = snapshot

    def keep(self, locations: Collection[str], rows: Collection[str] | None) -> None:
        """Remove other checkpoints, and rows that this process has written and no checkpoint needs.

        Args:
            locations: The locations of the checkpoints that can be restored.
            rows: The names of the files of rows in them; None: unknown.
        """
        remove_local(self._job_id, [location.rstrip("/").rpartition("/")[2] for location in locations])
        with self._lock:
            for file, snapshot in list(self._sound.items()):
                is_needed = rows is None or file.name in rows if file.place == ROWS else snapshot.location in locations
                if not is_needed:
                    del self._sound[file]
                    _folder(snapshot, file).delete(file.name)

    def discard(self) -> None:
        """Remove the job's checkpoints from this disk."""
        shutil.rmtree(local_folder(self._job_id), ignore_errors=True)

    # -- implementation -------------------------------------------------------------------------------------------

    def _has(self, snapshot: Snapshot, file: File) -> bool:
        folder, known = _folder(snapshot, file), self._sound.get(file)
        if known is not None:
            other = _folder(known, file)
            with contextlib.suppress(StateError):
                if other.location == folder.location and folder.has(file.name):
                    return True
                folder.make()
                if other.location != folder.location and folder.take(file.name, other):
                    self._sound[file] = snapshot
                    return True
        if self._read(snapshot, file) is None and not self._is_in_another(snapshot, file):
            return False
        self._sound[file] = snapshot
        return True

    def _is_in_another(self, snapshot: Snapshot, file: File) -> bool:
        """Link a file that an earlier process has written for another checkpoint; return whether there is one."""
        if file.place == ROWS:
            return False
        for folder in sorted(local_folder(self._job_id).glob("[0-9]*"), reverse=True):
            other = Snapshot(folder)
            if self._read(other, file) is not None:
                target = _folder(snapshot, file)
                with contextlib.suppress(StateError):
                    target.make()
                return target.take(file.name, _folder(other, file))
        return False

    @staticmethod
    def _read(snapshot: Snapshot, file: File) -> bytes | None:
        try:
            return next(_folder(snapshot, file).chunks([(file.name, file.digest)]))
        except StateError:
            return None


def _folder(snapshot: Snapshot, file: File) -> SnapshotFolder:
    return SnapshotFolder(rows_of(snapshot) if file.place == ROWS else snapshot)
