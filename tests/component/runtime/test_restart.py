"""One command for first start and restart, and what a checkpoint's location keeps for another job (E4, A9)."""

from __future__ import annotations

import errno
import fcntl
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors.output.owner import OutputOwner
from rayelastic.connectors.output.processes import ProcessId
from rayelastic.errors import ConfigError, DamagedError, JobFailedError, StateError
from tests.component.connectors.store_that_goes import serve
from tests.raising import raises
from tests.waiting import wait_until_taken

pytestmark = pytest.mark.edges

PATIENCE = 60.0
ROWS = [(n % 7, n) for n in range(3000)]
SCHEMA = {"key": int, "n": int}
SIGNS = b"0123456789abcdef"


def totals(source: Any, out: Path) -> rel.Topology:
    """Return a topology with state in Python by key, and rows in files."""
    topology = rel.Topology("totals")

    def add(t: Any, state: dict[str, int]) -> Any:
        state["all"] = state.get("all", 0) + t.n
        return t.key, state["all"]

    keyed = topology.source(source, name="rows").key_by("key")
    added = keyed.map(add, name="totals", state=dict, schema={"key": int, "all": int})
    added.sink(rel.parquet(str(out)), name="out")
    return topology


def expected() -> list[tuple[int, int]]:
    state: dict[int, int] = {}
    found = []
    for key, n in ROWS:
        state[key] = state.get(key, 0) + n
        found.append((key, state[key]))
    return sorted(found)


def written(out: Path) -> list[tuple[int, int]]:
    back = rel.Topology("back")
    back.source(rel.parquet(str(out / "*.parquet")), name="rows").sink(rel.list(), name="out")
    return sorted(tuple(row) for row in rel.run(back)["out"])


def stopped_half_way(saved: Path, out: Path, checkpoints: int = 1) -> None:
    """Run a job up to its middle, with so many checkpoints and more, and have it end there as a process would."""
    gate = testing.Gate()
    config = rel.JobConfig(checkpoint=rel.Checkpoint(saved, every=0.2))
    job = rel.start(totals(testing.script([*ROWS[:1500], gate, *ROWS[1500:]], SCHEMA), out), config)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_taken(job, checkpoints)
        job.cancel(drain=False)
    finally:
        gate.open()
        job.close()


def again(saved: Path, out: Path, restore: Any = "latest") -> None:
    config = rel.JobConfig(checkpoint=rel.Checkpoint(saved, every=0.2))
    rel.run(totals(rel.rows(ROWS, schema=SCHEMA), out), config, restore=restore)


def test_the_same_command_starts_restores_and_runs_again(tmp_path: Path) -> None:
    saved, out = tmp_path / "saved", tmp_path / "out"
    again(saved, out)  # there is no folder
    assert written(out) == expected()
    shutil.rmtree(saved)
    shutil.rmtree(out)
    stopped_half_way(saved, out)
    assert 0 < len(written(out)) < len(ROWS)
    again(saved, out)
    assert written(out) == expected()
    again(saved, out)  # it had finished
    assert written(out) == expected()


@pytest.mark.parametrize("left", ["an empty folder", "a first checkpoint that was begun"])
def test_where_no_checkpoint_was_ever_complete_the_job_begins_at_its_start(left: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir(mode=0o700)
    if left != "an empty folder":
        (saved / "00000001").mkdir(mode=0o700)
        (saved / "00000001" / "pe0-0001.state").write_bytes(b"half")
    again(saved, tmp_path / "out")
    assert written(tmp_path / "out") == expected()


@pytest.mark.parametrize("harm", ["a byte", "no manifest", "no checkpoint"])
def test_checkpoints_that_are_all_damaged_are_an_error_and_nothing_starts(harm: str, tmp_path: Path) -> None:
    saved, out = tmp_path / "saved", tmp_path / "out"
    stopped_half_way(saved, out, checkpoints=2)
    before = written(out)
    for folder in saved.glob("0*"):
        if harm == "no checkpoint":
            shutil.rmtree(folder)
        elif harm == "no manifest":
            (folder / "manifest.json").unlink()
        else:
            manifest = folder / "manifest.json"
            manifest.write_bytes(manifest.read_bytes().replace(b"totals", b"totale", 1))
    with pytest.raises(DamagedError):
        again(saved, out)
    assert written(out) == before


def test_of_several_the_newest_whole_one_counts(tmp_path: Path) -> None:
    saved, out = tmp_path / "saved", tmp_path / "out"
    stopped_half_way(saved, out, checkpoints=3)
    newest = max(saved.glob("0*"))
    (newest / "manifest.json").write_bytes(b"{}")
    again(saved, out)
    assert written(out) == expected()


@pytest.mark.parametrize("checkpoint", [None, False, rel.Checkpoint()])
def test_it_needs_a_location(checkpoint: Any, tmp_path: Path) -> None:
    topology = totals(rel.rows(ROWS, schema=SCHEMA), tmp_path / "out")
    with raises(ConfigError, "bad-location", "latest", "restore="):
        rel.run(topology, rel.JobConfig(checkpoint=checkpoint), restore="latest")


LOOP = """
import sys
import rayelastic as rel

saved, out = sys.argv[1:]
topology = rel.Topology("loop")
rows = rel.rows([(n % 7, n) for n in range(2000)], schema={"key": int, "n": int})
keyed = topology.source(rows, name="rows").throttle(name="slow", per_second=500).key_by("key")

def add(t, state):
    state["all"] = state.get("all", 0) + t.n
    return t.key, state["all"]

keyed.map(add, name="totals", state=dict, schema={"key": int, "all": int}).sink(rel.parquet(out), name="out")
job = rel.start(topology, rel.JobConfig(checkpoint=rel.Checkpoint(saved, every=0.2)), restore="latest")
while not job.status.state.is_final:
    job.pause(0.05)
    print("taken" if job.status.checkpoints.taken else "none", flush=True)
job.wait()
"""


def test_killed_in_a_loop_the_same_command_comes_to_the_exact_end(tmp_path: Path) -> None:
    saved, out, program = tmp_path / "saved", tmp_path / "out", tmp_path / "loop.py"
    program.write_text(LOOP)
    command = [sys.executable, str(program), str(saved), str(out)]
    for signal in (SIGKILL, SIGTERM, SIGKILL):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert "taken\n" in iter(process.stdout.readline, "")
        process.send_signal(signal)
        process.communicate()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    state: dict[int, int] = {}
    wanted = []
    for n in range(2000):
        state[n % 7] = state.get(n % 7, 0) + n
        wanted.append((n % 7, state[n % 7]))
    assert written(out) == sorted(wanted)


def test_python_values_are_restored_by_another_job_without_a_key_of_the_user(tmp_path: Path) -> None:
    saved, out = tmp_path / "below" / "saved", tmp_path / "out"
    stopped_half_way(saved, out)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (saved.parent, saved, saved / "key")}
    assert modes == {saved.parent: 0o700, saved: 0o700, saved / "key": 0o600}
    table = rel.read_snapshot(saved)["totals"]
    assert sorted(table.column("key").to_pylist()) == list(range(7))
    again(tmp_path / "other", out, restore=rel.Checkpoint(saved))
    assert written(out) == expected()


def test_a_key_that_others_may_read_is_an_error(tmp_path: Path) -> None:
    saved, out = tmp_path / "saved", tmp_path / "out"
    stopped_half_way(saved, out)
    (saved / "key").chmod(0o644)
    with raises(StateError, "bad-signing-key"):
        again(saved, out)


def test_a_store_keeps_no_key_and_python_values_need_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = serve(monkeypatch, tmp_path / "store")
    topology = totals(rel.rows(ROWS, schema=SCHEMA), tmp_path / "out")
    with raises(StateError, "unsigned-values", "totals"):
        rel.run(topology, rel.JobConfig(checkpoint=rel.Checkpoint(store.uri("saved"))))
    signed = rel.Checkpoint(store.uri("saved"), key=SIGNS)
    rel.run(topology, rel.JobConfig(checkpoint=signed), restore="latest")
    assert written(tmp_path / "out") == expected()
    assert not list((tmp_path / "store").rglob("key"))


@pytest.fixture(params=["a local folder", "a folder without locks", "a store"])
def location(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    if request.param == "a store":
        return serve(monkeypatch, tmp_path / "store").uri("saved")
    if request.param == "a folder without locks":

        def lock(*_: object) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(fcntl, "flock", lock)
    return str(tmp_path / "saved")


def at_gate(location: str, out: Path, **options: Any) -> tuple[rel.Job, testing.Gate]:
    """Start a job that waits behind its first rows."""
    gate = testing.Gate()
    config = rel.JobConfig(checkpoint=rel.Checkpoint(location, key=SIGNS, **options))
    job = rel.start(totals(testing.script([*ROWS[:10], gate, *ROWS[10:]], SCHEMA), out), config)
    assert gate.wait_reached(PATIENCE)
    return job, gate


def test_two_jobs_do_not_share_a_location(location: str, tmp_path: Path) -> None:
    job, gate = at_gate(location, tmp_path / "out", every=0.2)
    second = totals(rel.rows(ROWS, schema=SCHEMA), tmp_path / "more")
    config = rel.JobConfig(checkpoint=rel.Checkpoint(location, key=SIGNS))
    try:
        with raises(StateError, "location-taken", "totals"):
            rel.run(second, config)
        assert not (tmp_path / "more").exists(), "who is rejected has touched something"
        wait_until_taken(job, 1)
    finally:
        gate.open()
        job.wait(PATIENCE)
    rel.run(second, config)
    assert written(tmp_path / "out") == written(tmp_path / "more") == expected()


def test_the_store_of_a_job_that_was_killed_is_free_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its record stays, and its process is gone."""
    store = serve(monkeypatch, tmp_path / "store")
    job, gate = at_gate(store.uri("saved"), tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(OutputOwner, "release", lambda owner, **_: owner._released.set())
        job.cancel(drain=False)
        gate.open()
        job.close()
    for record in tmp_path.rglob(".rayelastic/owner-*.json"):
        record.write_text(re.sub(r'"started": "[^"]*"', '"started": "long ago"', record.read_text()))
    job, gate = at_gate(store.uri("saved"), tmp_path / "out")
    gate.open()
    job.wait(PATIENCE)
    assert written(tmp_path / "out") == expected()


def test_a_job_whose_location_was_taken_over_fails_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As where it was cut off from a store for longer than its lease."""
    location = serve(monkeypatch, tmp_path / "store").uri("saved")
    job, gate = at_gate(location, tmp_path / "out", every=0.2)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(ProcessId, "is_alive", False)
            other, second = at_gate(location, tmp_path / "more", every=0.2)
        with raises(JobFailedError, "location-taken", "totals"):
            job.wait(PATIENCE)
        second.open()
        other.wait(PATIENCE)
    finally:
        gate.open()
        job.close()
    assert written(tmp_path / "more") == expected()
