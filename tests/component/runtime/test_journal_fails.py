"""A line of the journal can't be written, or may have been: the checkpoint that it names last is there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.journal import ChangeJournal, JournalStore
from rayelastic.runtime.values.specs import JobSpec
from tests.component.checkpoint.test_checkpoint_crashes import NEVER, check, lose, take, topology
from tests.component.runtime.dying_coordinator import PATIENCE, bury
from tests.component.runtime.test_full_disk import disk, fill
from tests.file_store import FileStore

__all__ = ["disk"]


class Failing(FileStore):
    """Fails on the next lines of some kinds, once each, after they were written or before."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.fails: list[str] = []
        self.after = True

    def append(self, line: str, *, alone: bool) -> None:
        kind = json.loads(line)["kind"]
        if kind not in self.fails:
            super().append(line, alone=alone)
            return
        self.fails.remove(kind)
        if self.after:
            super().append(line, alone=alone)
        raise OSError(5, "Input/output error")


class Run:
    """A job whose coordinator can be followed by another one.

    Args:
        gates: that its source stops at.
        checkpoint: its settings.
        store: of its first coordinator's journal.
    """

    def __init__(self, gates: Sequence[testing.Gate], checkpoint: rel.Checkpoint | None, store: JournalStore) -> None:
        self._gates = gates
        self._made, self._host = topology(gates), InProcessHost()
        config = rel.JobConfig(pes={"rows": 0, "counts": 1}, checkpoint=checkpoint)
        self._spec: JobSpec = prepare(self._made, config)
        self.coordinator = Coordinator(self._spec, self._host, journal=ChangeJournal(store))
        self.job = Job("crashes", LocalControl(self.coordinator), self._made)
        self.job._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for gate in self._gates:
            gate.open()
        self.job.close()

    def follow(self, journal: Path) -> None:
        """The coordinator dies, and another one reads the journal."""
        bury(self.coordinator)
        self.coordinator = Coordinator(self._spec, self._host, journal=ChangeJournal(FileStore(journal)))
        self.coordinator.resume()
        self.job = Job("crashes", LocalControl(self.coordinator), self._made)


@pytest.fixture
def gates() -> Iterator[list[testing.Gate]]:
    made = [testing.Gate(), testing.Gate()]
    yield made
    for gate in made:
        gate.open()


@pytest.mark.parametrize("after", [True, False], ids=["written", "not written"])
@pytest.mark.parametrize("also", ["goes on", "nothing else"])
def test_a_checkpoint_whose_line_is_in_doubt_stays(
    after: bool, also: str, gates: list[testing.Gate], tmp_path: Path
) -> None:
    saved, journal = tmp_path / "saved", tmp_path / "journal"
    store = Failing(journal)
    with Run(gates, rel.Checkpoint(saved, every=NEVER, keep=1), store) as run:
        assert gates[0].wait_reached(PATIENCE)
        take(run.coordinator)
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        store.fails, store.after = ["checkpoint", also], after
        take(run.coordinator)
        counted = run.job.status.checkpoints
        assert (counted.last, counted.abandoned) == (1, 1)
        assert "Input/output error" in counted.problem
        run.follow(journal)
        named = [Path(one.location) for one in run.coordinator._journal.checkpoints]
        assert [one.name for one in named] == ["00000002" if after else "00000001"]
        assert all((one / "manifest.json").exists() for one in named)
        lose(run.job, run.coordinator)
        gates[1].open()
        check(run.job.wait(PATIENCE)["out"])


def test_what_was_in_doubt_goes_with_the_next_checkpoint(gates: list[testing.Gate], tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    store = Failing(tmp_path / "journal")
    with Run(gates, rel.Checkpoint(saved, every=NEVER, keep=1), store) as run:
        assert gates[0].wait_reached(PATIENCE)
        take(run.coordinator)
        for _ in range(2):
            store.fails = ["checkpoint"]
            take(run.coordinator)
        assert sorted(one.name for one in saved.glob("0*")) == ["00000001", "00000002", "00000003"]
        take(run.coordinator)
        assert [one.name for one in saved.glob("0*")] == ["00000004"]
        assert run.job.status.checkpoints.problem == ""


def test_a_checkpoint_that_cannot_be_begun_leaves_no_folder(gates: list[testing.Gate], tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    store = Failing(tmp_path / "journal")
    with Run(gates, rel.Checkpoint(saved, every=NEVER, keep=1), store) as run:
        assert gates[0].wait_reached(PATIENCE)
        take(run.coordinator)
        for store.after in (True, False):
            store.fails = ["stop"]
            take(run.coordinator)
        assert run.job.status.checkpoints.abandoned == 2
        assert [one.name for one in saved.glob("0*")] == ["00000001"]
        run.follow(tmp_path / "journal")
        lose(run.job, run.coordinator)
        for gate in gates:
            gate.open()
        check(run.job.wait(PATIENCE)["out"])


def test_the_journal_of_a_full_disk_can_be_read_and_written_again(
    gates: list[testing.Gate], disk: Path, tmp_path: Path
) -> None:
    """Half a line is taken back: neither the next line nor the next coordinator reads it."""
    journal, rest = disk / "journal", disk / "rest"
    with Run(gates, rel.Checkpoint(tmp_path / "saved", every=NEVER, keep=1), FileStore(journal)) as run:
        assert gates[0].wait_reached(PATIENCE)
        take(run.coordinator)
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        fill(rest)
        while run.job.status.checkpoints.abandoned < 2:  # its last page may have room for some lines
            take(run.coordinator)
        assert "No space left" in run.job.status.checkpoints.problem
        assert all(json.loads(line) for line in journal.read_text().splitlines())
        rest.unlink()
        take(run.coordinator)
        assert run.job.status.checkpoints.problem == ""
        fill(rest)
        with contextlib.suppress(OSError):
            while True:
                run.coordinator._journal.stops("x" * 1000)
        rest.unlink()
        run.follow(journal)
        lose(run.job, run.coordinator)
        gates[1].open()
        check(run.job.wait(PATIENCE)["out"])


def test_a_savepoint_that_can_not_be_noted_is_none(gates: list[testing.Gate], tmp_path: Path) -> None:
    """The next coordinator would take it for one that failed, and discard it: so nobody may count on it."""
    store = Failing(tmp_path / "journal")
    with Run(gates, None, store) as run:
        assert gates[0].wait_reached(PATIENCE)
        store.fails, store.after = ["goes on"], False
        with pytest.raises(OSError, match="Input/output error"):
            run.job.snapshot(tmp_path / "one")
        assert not (tmp_path / "one" / "manifest.json").exists()
        run.job.snapshot(tmp_path / "two")
        saved = rel.read_snapshot(tmp_path / "two")
        assert (saved.positions, saved.location) == ({"rows": 200}, str(tmp_path / "two"))
        run.follow(tmp_path / "journal")
        assert (tmp_path / "two" / "manifest.json").exists()
        for gate in gates:
            gate.open()
        check(run.job.wait(PATIENCE)["out"])


@pytest.mark.parametrize("after", [True, False], ids=["written", "not written"])
def test_a_stop_that_can_not_be_noted_lets_the_job_go_on(
    after: bool, gates: list[testing.Gate], tmp_path: Path
) -> None:
    store = Failing(tmp_path / "journal")
    with Run(gates, None, store) as run:
        assert gates[0].wait_reached(PATIENCE)
        store.fails, store.after = ["saved"], after
        with pytest.raises(OSError, match="Input/output error"):
            run.job.stop(tmp_path / "one")
        assert not (tmp_path / "one" / "manifest.json").exists()
        run.follow(tmp_path / "journal")
        for gate in gates:
            gate.open()
        check(run.job.wait(PATIENCE)["out"])
