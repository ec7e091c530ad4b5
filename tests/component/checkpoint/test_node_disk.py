"""A node's disk as other nodes use it: what it lacks, what it reads, and what it removes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from rayelastic.errors import DamagedError
from rayelastic.runtime.checkpoint.disk import NodeDisk
from rayelastic.runtime.checkpoint.files import CHUNK_BYTES
from rayelastic.runtime.checkpoint.location import local_folder
from rayelastic.runtime.values.snapshot import ROWS, STATE, File, Snapshot

JOB = "7f"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return local_folder(JOB)


def checkpoint(number: int) -> Snapshot:
    return Snapshot(local_folder(JOB) / f"{number:08}")


def file(name: str, content: bytes, place: str = STATE) -> tuple[File, bytes]:
    return File(place, name, hashlib.sha256(content).hexdigest()), content


def test_an_unchanged_file_is_stored_once(home: Path) -> None:
    disk, (same, content), (changed, _) = NodeDisk(JOB), file("pe0-a.state", b"a"), file("pe0-b.state", b"b")
    disk.write(checkpoint(1), [(same, content)])
    assert disk.lacking(checkpoint(2), [same, changed]) == [changed]
    assert (home / "00000001" / "pe0-a.state").samefile(home / "00000002" / "pe0-a.state")
    assert NodeDisk(JOB).lacking(checkpoint(2), [same]) == [], "another process checks what it finds"
    assert NodeDisk(JOB).lacking(checkpoint(3), [same, changed]) == [changed], (
        "it finds what an earlier one has written"
    )
    assert (home / "00000003" / "pe0-a.state").samefile(home / "00000001" / "pe0-a.state")


def test_a_damaged_or_changed_file_is_lacking(home: Path) -> None:
    disk, (sound, content) = NodeDisk(JOB), file("pe0-a.state", b"a")
    disk.write(checkpoint(1), [(sound, content)])
    (home / "00000001" / "pe0-a.state").write_bytes(b"other")
    assert NodeDisk(JOB).lacking(checkpoint(1), [sound]) == [sound]
    assert disk.read(checkpoint(1), [sound]) == [None]
    with pytest.raises(DamagedError, match=r"pe0-a\.state changed on its way"):
        disk.write(checkpoint(1), [(sound, b"other")])


def test_files_are_read_in_groups_of_some_megabytes() -> None:
    disk, files = (
        NodeDisk(JOB),
        [file(f"pe0-{number}.state", bytes([number]) * (CHUNK_BYTES // 2)) for number in range(3)],
    )
    disk.write(checkpoint(1), files)
    names = [one for one, _ in files]
    assert disk.read(checkpoint(1), names) == [content for _, content in files[:2]]
    assert disk.read(checkpoint(1), names[2:]) == [files[2][1]]
    assert disk.manifest(checkpoint(1)) is None


def test_copies_are_removed_as_the_originals_are(home: Path) -> None:
    disk = NodeDisk(JOB)
    for number in (1, 2, 3):
        state, rows = file("pe0-a.state", b"a%d" % number), file(f"out-{number}.rows", b"r%d" % number, ROWS)
        disk.write(checkpoint(number), [state, rows])
    own = home / "rows" / "own.rows"
    own.write_bytes(b"of an element of this node")
    disk.keep([str(checkpoint(number).location) for number in (2, 3)], ["out-2.rows", "out-3.rows"])
    left = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
    assert left == [
        "00000002/pe0-a.state", "00000003/pe0-a.state", "rows/out-2.rows", "rows/out-3.rows", "rows/own.rows",
    ]  # fmt: skip
    disk.keep([str(checkpoint(3).location)], None)
    assert (home / "rows" / "out-2.rows").exists(), "which rows are needed isn't known"
    disk.discard()
    assert not home.exists()
