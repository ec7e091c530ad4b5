"""Files of sinks: what is written stays hidden until it is shown, and what can't be ended says so."""

from __future__ import annotations

from pathlib import Path

from rayelastic.connectors.output.folder import OutputFolder, hidden_name
from rayelastic.errors import SinkError
from tests.raising import raises


def test_a_file_is_hidden_until_it_is_shown(tmp_path: Path) -> None:
    folder = OutputFolder(str(tmp_path / "out"))
    file = folder.open("part")
    file.write(b"rows")
    folder.close(file, "part")
    hidden = tmp_path / "out" / hidden_name("part")
    assert hidden.read_bytes() == b"rows"
    for _ in range(2):
        folder.show("part", "part")
    assert not hidden.exists()
    assert (tmp_path / "out" / "part").read_bytes() == b"rows"


def test_a_file_whose_end_cant_be_written_is_told(tmp_path: Path) -> None:
    folder = OutputFolder(str(tmp_path / "out"))
    file = folder.open("part")
    file.write(b"rows")
    (tmp_path / "out" / hidden_name("part")).unlink()
    with raises(SinkError, "sink-failed"):
        folder.close(file, "part")
