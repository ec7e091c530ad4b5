"""The command line ends quietly, restores the latest, and says what was saved; its journals are their owner's."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import PELostError, StateError, UnavailableError
from rayelastic.job.control import saved
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.values.snapshot import Manifest, Snapshot
from tests.raising import raises

pytestmark = pytest.mark.edges

FILE = """
import rayelastic as rel

def build():
    topology = rel.Topology("wide")
    numbers = topology.source(rel.sequence(10), name="numbers")
    for i in range(2000):
        numbers.filter(lambda t: True, name=f"filter{i}", lane="python").sink(rel.count(), name=f"out{i}")
    return topology
"""


def test_a_reader_that_goes_ends_it_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "wide.py").write_text(FILE)
    process = subprocess.Popen(
        [sys.executable, "-m", "rayelastic", "plan", str(tmp_path / "wide.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()  # as `head -1` does; what it prints is more than a pipe holds
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_ctrl_c_while_it_imports_is_no_traceback(tmp_path: Path) -> None:
    slow = tmp_path / "click.py"  # imported by rayelastic.cli, and by nothing before it
    slow.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise SystemExit(7)\n")
    done = subprocess.run(
        [sys.executable, "-m", "rayelastic", "jobs"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, b"stopped\n")


def test_ctrl_c_in_a_topology_file_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGINT)})\n")
    command = [sys.executable, "-m", "rayelastic", "run", str(tmp_path / "slow.py")]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"stopped\n")


def test_journals_are_their_owners(tmp_path: Path) -> None:
    topology = rel.Topology("told")
    topology.source(rel.sequence(10), name="numbers").sink(rel.count(), name="out")
    config = rel.JobConfig(elasticity=rel.Elasticity(journal=str(tmp_path / "journal-{pe}")), regions="elastic")
    rel.run(topology, config)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes
    assert set(modes.values()) == {0o600}


class Dying:
    """A coordinator that dies in a call; the next one answers after some calls, or never."""

    def __init__(self, silent: int | None) -> None:
        self._silent = silent

    def within(self, timeout: float) -> Any:
        assert timeout > 0
        return self

    def status(self) -> None:
        if self._silent is None:
            raise PELostError("gone")
        if self._silent:
            self._silent -= 1
            raise UnavailableError("not there")

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("silent", "there", "said"),
    [
        (0, True, None),
        (2, True, None),
        (1, False, "no snapshot was taken. Ask again: the job goes on"),
        (None, True, "a snapshot is there. Restore it: it is complete. If the job still runs, ask again with another"),
        (None, False, "no snapshot was taken. If the job still runs, ask again with another folder"),
    ],
)
def test_a_coordinator_that_dies_while_it_saves_says_what_is_there(
    silent: int | None, there: bool, said: str | None, tmp_path: Path
) -> None:
    snapshot = Snapshot(tmp_path / "saved")

    def save() -> None:
        if there:
            SnapshotFolder(snapshot).make()
            SnapshotFolder(snapshot).write_manifest(Manifest.of_parts("job", {}, [], signed=False))
        raise UnavailableError("the actor is unavailable")

    if said is None:
        saved(Dying(silent), "job", snapshot, save)
        return
    with raises(StateError, "interrupted-savepoint", "job") as told:
        saved(Dying(silent), "job", snapshot, save)
    assert said in str(told.value)


@pytest.mark.parametrize("times", [1, 2])
def test_the_command_line_restores_the_latest(times: int, tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(
        "import rayelastic as rel\n"
        "def build():\n"
        "    topology = rel.Topology('small')\n"
        f"    topology.source(rel.sequence(10)).sink(rel.csv({str(tmp_path / 'out.csv')!r}), name='out')\n"
        "    return topology\n"
    )
    from rayelastic.cli import main

    for _ in range(times):
        where = ["--checkpoint", str(tmp_path / "saved")]
        assert main(["run", str(tmp_path / "small.py"), "--quiet", "--restore", "latest", *where]) == 0
    assert (tmp_path / "out.csv").read_text().count("\n") == 11
    assert (tmp_path / "saved" / "key").exists()


def test_without_a_location_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rayelastic.cli import main

    (tmp_path / "small.py").write_text(
        "import rayelastic as rel\n"
        "def build():\n"
        "    topology = rel.Topology('small')\n"
        "    topology.source(rel.sequence(10), name='numbers').sink(rel.count(), name='out')\n"
        "    return topology\n"
    )
    assert main(["run", str(tmp_path / "small.py"), "--quiet", "--restore", "latest"]) == 2
    assert "[bad-location]" in capsys.readouterr().err
