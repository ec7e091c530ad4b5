"""A job that is closed while a checkpoint is written leaves nobody behind who writes: its place may be removed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from tests.component.rescale.rescaling import Feed, topology_of

SLOW = 0.5  # seconds that a file takes
PATIENCE = 60.0


class SlowDisk:
    """A file takes long; counts those that are being written."""

    def __init__(self) -> None:
        self.begun, self.writing = threading.Event(), 0
        self._lock = threading.Lock()
        self._write = SnapshotFolder.write

    def write(self, folder: SnapshotFolder, name: str, data: bytes) -> str:
        with self._lock:
            self.writing += 1
        self.begun.set()
        try:
            threading.Event().wait(SLOW)
            return self._write(folder, name, data)
        finally:
            with self._lock:
                self.writing -= 1


def test_nobody_writes_behind_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, feed, place = SlowDisk(), Feed(50), tmp_path / "saved"
    before = set(threading.enumerate())  # other tests have coordinators that died
    job = rel.start(topology_of(feed, "python"), rel.JobConfig(checkpoint=rel.Checkpoint(place, every=0.2)))
    try:
        monkeypatch.setattr(SnapshotFolder, "write", lambda *arguments: disk.write(*arguments))
        assert disk.begun.wait(PATIENCE)
        assert disk.writing
    finally:
        feed.enough.set()
        job.close()
    assert not disk.writing
    left = set(threading.enumerate()) - before
    assert not [thread.name for thread in left if thread.name.startswith("checkpoints-")]
