"""Somebody dies at each step of a checkpoint, or of the way back to one; each row counts once all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import ErrorCode, PELostError
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.element.host import InProcessHandle, InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.runtime.remote import Call, Remote, perform
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.values.status import State
from tests.component.runtime.dying_coordinator import PATIENCE, ROWS, Died, Doom, DoomedHost, Row, bury
from tests.file_store import FileStore
from tests.waiting import wait_until

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi

NEVER = 600.0  # seconds between two checkpoints: they are taken when the test says so


def topology(gates: Sequence[testing.Gate]) -> rel.Topology:
    """Counts by key in an element of its own; its source stops at each gate, each time that it comes there."""
    made = rel.Topology("crashes")
    script = testing.script([*ROWS[:200], gates[0], *ROWS[200:400], gates[1], *ROWS[400:]], Row)
    keyed = made.source(script, name="rows").key_by("key")
    keyed.aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count()).sink(rel.list(), name="out")
    return made


def check(rows: Any) -> None:
    assert [row.n for row in rows] == list(range(len(ROWS)))
    assert all(row.all == row.n // 7 + 1 for row in rows)


@pytest.fixture
def gates() -> Iterator[list[testing.Gate]]:
    made = [testing.Gate(), testing.Gate()]
    yield made
    for gate in made:
        gate.open()


def take(coordinator: Coordinator) -> None:
    assert coordinator._checkpoints is not None
    coordinator._checkpoints.loop.take()


def lose(job: Job, coordinator: Coordinator) -> None:
    """Has the job hear that an element is lost, and waits until it has gone back."""
    before = job.status.checkpoints.restarts
    coordinator._lose(Failure("PE pe1 was lost"))
    wait_until_back(job, before)


def wait_until_back(job: Job, before: int) -> None:
    wait_until(job, lambda: job.status.checkpoints.restarts != before and job.status.state is State.RUNNING)


# --- a coordinator, in a checkpoint ---------------------------------------------------------------------------------

STEPS = [
    (f"checkpoint.{method}", pe, after)
    for method in ("save_at_barriers", "commit")
    for pe in ("pe0", "pe1")
    for after in (False, True)
]


@pytest.mark.parametrize(("method", "pe", "after"), STEPS)
def test_a_coordinator_dies_in_a_checkpoint_and_the_next_one_goes_back(
    method: str, pe: str, after: bool, gates: list[testing.Gate], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doom, made = Doom("", "", after=False), topology(gates)
    saving = rel.Checkpoint(tmp_path / "saved", every=NEVER)
    spec, host = prepare(made, rel.JobConfig(pes={"rows": 0, "counts": 1}, checkpoint=saving)), DoomedHost(doom)
    first = Coordinator(spec, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
    job = Job("crashes", LocalControl(first), made)
    job._start()
    try:
        assert gates[0].wait_reached(PATIENCE)
        take(first)
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        removed = SnapshotFolder.remove
        monkeypatch.setattr(SnapshotFolder, "remove", lambda self: None if doom.died else removed(self))
        monkeypatch.setattr(first._journal, "resumes", lambda: None)  # it is dead
        doom.when, doom.after = (method, pe), after
        with pytest.raises(Died):
            take(first)
        monkeypatch.undo()
        bury(first)
        doom.died, doom.when = False, ("", "")
        second = Coordinator(spec, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
        second.resume()
        job = Job("crashes", LocalControl(second), made)
        take(second)
        assert job.status.checkpoints.problem == "", "another one can be taken"
        lose(job, second)
        gates[1].open()
        check(job.wait(PATIENCE)["out"])
    finally:
        for gate in gates:
            gate.open()
        job.close()


def test_where_no_checkpoint_can_be_restored_the_job_fails_at_once(gates: list[testing.Gate], tmp_path: Path) -> None:
    made, saving = topology(gates), rel.Checkpoint(tmp_path / "saved", every=NEVER, keep=1)
    spec = prepare(made, rel.JobConfig(pes={"rows": 0, "counts": 1}, checkpoint=saving))
    coordinator = Coordinator(spec, InProcessHost())
    job = Job("crashes", LocalControl(coordinator), made)
    job._start()
    try:
        assert gates[0].wait_reached(PATIENCE)
        take(coordinator)
        for manifest in (tmp_path / "saved").glob("*/manifest.json"):
            manifest.write_text("{}")
        coordinator._lose(Failure("PE pe1 was lost"))
        wait_until(job, lambda: job.status.state.is_final)
        failure = job.status.failure
        assert failure is not None
        assert failure.code is ErrorCode.CHECKPOINTS_GONE
        assert "PE pe1 was lost; no checkpoint can be restored: " in failure.reason
        assert job.status.checkpoints.restarts == 1, "no second attempt could find it"
    finally:
        for gate in gates:
            gate.open()
        job.close()


# --- an element, in a checkpoint and on the way back ----------------------------------------------------------------


@dataclass
class Loss:
    """When an element is lost: at the given call of one of its methods, before or after it is done; once.

    The call tells it, or whoever watches the element does.
    """

    method: str = ""
    pe: str = ""
    after: bool = False
    watcher: Callable[[Failure], None] | None = None
    came: bool = False

    def comes(self, method: str, pe: str, after: bool) -> bool:
        due = (method, pe, after) == (self.method, self.pe, self.after) and not self.came
        self.came = self.came or due
        if due and self.watcher is not None:
            self.watcher(Failure(f"PE {pe} was lost"))
        return due and self.watcher is None


class MortalHandle(InProcessHandle):
    """Of an element that doesn't answer any more once it is lost."""

    loss: Loss
    lost = False

    def within(self, timeout: float) -> ElementApi:
        def answer(call: Call) -> Any:
            for after in (False, True):
                self.lost = self.lost or self.loss.comes(call.method, self.pe, after)
                if self.lost:
                    raise PELostError(f"PE {self.pe} was lost")
                if not after:
                    done = perform(self._element, call)
            return done

        return cast("ElementApi", Remote(answer))


class MortalHost(InProcessHost):
    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    def start_pe(self, spec: PESpec) -> InProcessHandle:
        made = MortalHandle(super().start_pe(spec)._element)
        made.loss = self.loss
        return made


LOSSES = [
    *(
        (method, pe, after)
        for method in ("checkpoint.save_at_barriers", "checkpoint.commit")
        for pe in ("pe0", "pe1")
        for after in (False, True)
    ),
    *(
        (method, pe, after)
        for method in ("open", "connect", "start")
        for pe in ("pe0", "pe1")
        for after in (False, True)
    ),
]


def started(gates: list[testing.Gate], folder: Path, loss: Loss) -> tuple[Job, Coordinator]:
    made, saving = topology(gates), rel.Checkpoint(folder / "saved", every=NEVER)
    spec = prepare(made, rel.JobConfig(pes={"rows": 0, "counts": 1}, checkpoint=saving))
    coordinator = Coordinator(spec, MortalHost(loss))
    job = Job("crashes", LocalControl(coordinator), made)
    job._start()
    return job, coordinator


@pytest.mark.parametrize(("method", "pe", "after"), LOSSES)
def test_an_element_is_lost_in_a_checkpoint_or_on_the_way_back(
    method: str, pe: str, after: bool, gates: list[testing.Gate], tmp_path: Path
) -> None:
    loss = Loss()
    job, coordinator = started(gates, tmp_path, loss)
    try:
        assert gates[0].wait_reached(PATIENCE)
        take(coordinator)
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        loss.method, loss.pe, loss.after = method, pe, after
        if method in ("checkpoint.save_at_barriers", "checkpoint.commit"):
            taking = threading.Thread(target=take, args=(coordinator,))
            taking.start()
            taking.join(PATIENCE)
            assert not taking.is_alive(), "nobody waits for marks that won't come"
        lose(job, coordinator)
        assert loss.came
        gates[1].open()
        check(job.wait(PATIENCE)["out"])
    finally:
        for gate in gates:
            gate.open()
        job.close()


@pytest.mark.parametrize("pe", ["pe0", "pe1"])
def test_a_loss_that_is_told_while_the_job_goes_back_has_it_go_back_again(
    pe: str, gates: list[testing.Gate], tmp_path: Path
) -> None:
    loss = Loss()
    job, coordinator = started(gates, tmp_path, loss)
    try:
        assert gates[0].wait_reached(PATIENCE)
        take(coordinator)
        loss.method, loss.pe, loss.after, loss.watcher = "start", pe, True, coordinator._lose
        coordinator._lose(Failure("PE pe1 was lost"))
        wait_until_back(job, 0)
        wait_until(job, lambda: job.status.checkpoints.restarts >= 2)
        for gate in gates:
            gate.open()
        check(job.wait(PATIENCE)["out"])
        assert job.status.checkpoints.restarts == 2
    finally:
        for gate in gates:
            gate.open()
        job.close()
