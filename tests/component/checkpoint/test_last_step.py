"""The end of a job is as safe as the rest of it: each number once, no row lost or doubled, whatever fails there."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

import rayelastic as rel
from rayelastic.connectors.output.folder import OutputFolder
from rayelastic.errors import JobFailedError
from rayelastic.job import LocalControl, prepare
from rayelastic.job.job import Job
from rayelastic.runtime.checkpoint.files import MANIFEST
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import State
from tests.component.connectors.ledger import ROWS, Amount, Ledger, Paced, await_checkpoints, paced, read
from tests.raising import raises

pytestmark = pytest.mark.edges

ALL = list(range(ROWS))
PATIENCE = 60.0
NEVER = 600.0  # seconds between two checkpoints: only the first one is taken, after a second, and the last one
LEAST = 0.2
KEY = b"0123456789abcdef"


class Told(Ledger):  # type: ignore[misc]
    """The ledger of the guide, which notes its calls, and raises in some of them."""

    calls: ClassVar[list[str]] = []
    faults: ClassVar[dict[str, int]] = {}

    def note(self, call: str, epoch: int) -> None:
        Told.calls.append(f"{call} {epoch}")
        if Told.faults.get(call, 0):
            Told.faults[call] -= 1
            raise OSError("the disk is gone for a moment")

    def prepare(self, epoch: int) -> None:
        self.note("prepare", epoch)
        super().prepare(epoch)

    def commit(self, epoch: int) -> None:
        self.note("commit", epoch)
        super().commit(epoch)


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    Told.calls.clear()
    Told.faults.clear()


def prepared() -> list[int]:
    return [int(call.split()[1]) for call in Told.calls if call.startswith("prepare")]


def amounts(rows: int = ROWS) -> Any:
    return rel.rows([Amount(n) for n in range(rows)])


def topology_of(sink: Any, *others: tuple[str, Any, Any]) -> rel.Topology:
    """The amounts into a sink, and other sources into others."""
    made = rel.Topology("booked")
    made.source(amounts(), name="amounts").sink(sink, name="ledger")
    for name, source, into in others:
        made.source(source, name=name).sink(into, name=f"out of {name}")
    return made


def config(folder: Path, every: float = NEVER, restarts: int = 10, **settings: Any) -> rel.JobConfig:
    checkpoint = rel.Checkpoint(folder / "checkpoints", every=every, restarts=restarts, key=KEY)
    return rel.JobConfig(checkpoint=checkpoint, **settings)


def await_rows(job: Job, rows: int) -> None:
    looked = threading.Event()
    while job.metrics().operator("ledger").tuples_in < rows:
        assert not job.status.state.is_final, job.status
        looked.wait(0.01)


@pytest.mark.parametrize("elements", [1, 2])
def test_e1_the_ledger_of_the_guide_ends_before_its_job_does(tmp_path: Path, elements: int) -> None:
    pins = {"amounts": 0, "slow": elements - 1}
    made = topology_of(rel.call(Told(tmp_path / "ledger")), ("slow", paced(), rel.count()))
    job = rel.start(made, config(tmp_path, LEAST, pes=pins))
    try:
        await_checkpoints(job, 3)
        Paced.limit = ROWS
        result = job.wait(PATIENCE)
    finally:
        job.close()
    assert result["ledger"] == ROWS
    assert sorted(read(tmp_path / "ledger")) == ALL
    assert prepared() == sorted(set(prepared())), "a number was given twice"
    assert len(prepared()) >= 4


def test_e1_a_checkpoint_under_way_while_the_job_ends(tmp_path: Path) -> None:
    taking = threading.Event()

    class Slow(Told):
        def prepare(self, epoch: int) -> None:
            taking.set()
            ended.wait(0.2)  # the end waits for this checkpoint
            super().prepare(epoch)

    ended = threading.Event()
    made = rel.Topology("booked")
    made.source(paced(), name="amounts").sink(rel.call(Slow(tmp_path / "ledger")), name="ledger")
    job = rel.start(made, config(tmp_path, LEAST))
    try:
        Paced.limit = ROWS // 2
        assert taking.wait(PATIENCE)
        Paced.limit = ROWS
        job.wait(PATIENCE)
    finally:
        job.close()
    assert sorted(read(tmp_path / "ledger")) == ALL
    assert prepared() == sorted(set(prepared()))


def test_e1_a_job_that_is_stopped_and_restored_gives_no_number_twice(tmp_path: Path) -> None:
    def made() -> rel.Topology:
        topology = rel.Topology("booked")
        topology.source(paced(), name="amounts").sink(rel.call(Told(tmp_path / "ledger")), name="ledger")
        return topology

    job = rel.start(made(), config(tmp_path, LEAST))
    saved = rel.Snapshot(tmp_path / "saved", key=KEY)
    try:
        Paced.limit = ROWS // 3
        await_rows(job, ROWS // 3)
        await_checkpoints(job, 2)
        Paced.limit = ROWS // 2
        job.stop(saved)
    finally:
        job.close()
    left = sorted(read(tmp_path / "ledger"))
    assert left == ALL[: len(left)]
    assert len(left) >= ROWS // 3
    again = made()
    Paced.limit = ROWS
    assert rel.run(again, restore=saved)["ledger"] == ROWS
    assert sorted(read(tmp_path / "ledger")) == ALL
    assert prepared() == sorted(set(prepared()))


@pytest.mark.parametrize("call", ["prepare", "commit"])
@pytest.mark.parametrize("times", [1, 3])
def test_e6_a_failure_at_the_very_end_recovers(tmp_path: Path, call: str, times: int) -> None:
    Told.faults[call] = times
    made = topology_of(rel.call(Told(tmp_path / "ledger")), ("others", rel.sequence(7), rel.list()))
    job = rel.start(made, config(tmp_path, pes={"amounts": 0, "others": 1}))
    try:
        result = job.wait(PATIENCE)
        assert job.status.checkpoints.restarts >= times - (call == "commit")  # a commit is tried twice
    finally:
        job.close()
    assert sorted(read(tmp_path / "ledger")) == ALL
    assert result["ledger"] == ROWS
    assert [t.value for t in result["out of others"]] == list(range(7))


def test_e6_a_job_that_is_stopped_and_cannot_show_its_last_rows_is_restored(tmp_path: Path) -> None:
    def made() -> rel.Topology:
        topology = rel.Topology("booked")
        topology.source(paced(), name="amounts").sink(rel.call(Told(tmp_path / "ledger")), name="ledger")
        return topology

    job = rel.start(made(), config(tmp_path))
    saved = rel.Snapshot(tmp_path / "saved", key=KEY)
    Paced.limit = ROWS // 2
    try:
        await_rows(job, ROWS // 2)
        Told.faults["commit"] = 1_000
        with raises(JobFailedError, "sink-failed", "the disk is gone for a moment") as failed:
            job.stop(saved)
        assert failed.value.operator == "ledger"
    finally:
        job.close()
    Told.faults.clear()
    again = made()
    Paced.limit = ROWS
    rel.run(again, restore=saved)
    assert sorted(read(tmp_path / "ledger")) == ALL


def test_e6_a_job_whose_sources_stand_still_for_checkpoints_ends_with_one(tmp_path: Path) -> None:
    Told.faults["commit"] = 2
    made = rel.Topology("channels")
    rows = made.source(amounts(), name="amounts").parallel(
        2, lambda s: s.map(lambda t: t, name="same", schema=Amount), name="both"
    )
    rows.sink(rel.call(Told(tmp_path / "ledger")), name="ledger")
    job = rel.start(made, config(tmp_path))
    try:
        job.wait(PATIENCE)
        assert "stage" in job.status.checkpoints.standstill
    finally:
        job.close()
    assert sorted(read(tmp_path / "ledger")) == ALL


@pytest.mark.parametrize("name", ["all.csv", "all.parquet", "parts"])
def test_e6_a_file_that_cannot_be_shown_at_the_end(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    show, left = OutputFolder.show, [2]

    def failing(folder: OutputFolder, *names: str) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError("the disk is gone for a moment")
        show(folder, *names)

    monkeypatch.setattr(OutputFolder, "show", failing)
    sink = rel.csv if name == "all.csv" else rel.parquet
    rel.run(topology_of(sink(str(tmp_path / name))), config(tmp_path))
    back = rel.Topology("back")
    back.source(sink(str(tmp_path / name)), name="rows").sink(rel.list(), name="out")
    assert sorted(t.amount for t in rel.run(back)["out"]) == ALL
    assert not left[0]


def test_e6_what_fails_for_good_is_named_and_another_run_completes_it(tmp_path: Path) -> None:
    Told.faults["commit"] = 1_000
    made = topology_of(rel.call(Told(tmp_path / "ledger")))
    with raises(JobFailedError, "sink-failed", "the disk is gone for a moment") as failed:
        rel.run(made, config(tmp_path, restarts=2))
    assert failed.value.operator == "ledger"
    assert read(tmp_path / "ledger") == []
    newest = max((tmp_path / "checkpoints").rglob(MANIFEST), key=lambda file: file.parent.name).parent
    Told.faults.clear()
    result = rel.run(made, restore=rel.Snapshot(newest, key=KEY))
    assert sorted(read(tmp_path / "ledger")) == ALL
    assert result["ledger"] == ROWS


@pytest.mark.parametrize("call", ["prepare", "commit"])
def test_e6_without_checkpoints_the_operator_is_named(tmp_path: Path, call: str) -> None:
    Told.faults[call] = 1
    with raises(JobFailedError, "sink-failed", "the disk is gone for a moment") as failed:
        rel.run(topology_of(rel.call(Told(tmp_path / "ledger"))), rel.JobConfig(checkpoint=False))
    assert failed.value.operator == "ledger"
    assert Told.calls == ["prepare 1", "commit 1"][: 1 + (call == "commit")]


def test_e10_each_start_has_an_object_of_its_own(tmp_path: Path) -> None:
    """Losses all the time, while the ledger keeps rows that no checkpoint has."""
    ours, looked, steps = Ledger(tmp_path / "ledger"), threading.Event(), 10
    made = rel.Topology("booked")
    made.source(paced(), name="amounts").sink(rel.call(ours), name="ledger")
    coordinator = Coordinator(prepare(made, config(tmp_path)), InProcessHost())
    job = Job("booked", LocalControl(coordinator), made)
    job._start()
    try:
        for step in range(1, steps):
            Paced.limit = ROWS * step // steps
            await_rows(job, 1)
            restarts = job.status.checkpoints.restarts
            if step % 2:
                coordinator._lose(Failure("somebody was lost"))
                while job.status.checkpoints.restarts == restarts or job.status.state is not State.RUNNING:
                    looked.wait(0.01)
            else:
                assert coordinator._checkpoints.loop.take() is None  # type: ignore[union-attr]
        Paced.limit = ROWS
        job.wait(PATIENCE)
        assert job.status.checkpoints.restarts == steps // 2
    finally:
        job.close()
    assert sorted(read(tmp_path / "ledger")) == ALL
    assert ours.amounts == []


class Overlapping:
    """Notes calls that come while it prepares, and waits there until others have given the checkpoint up."""

    in_prepare, abandoned, meanwhile = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, t: Any) -> None:
        if self.in_prepare.is_set():
            self.meanwhile.set()

    def prepare(self, epoch: int) -> None:
        self.in_prepare.set()
        self.abandoned.wait(PATIENCE)
        self.meanwhile.wait(0.3)  # long enough for those that wait in front of it
        self.in_prepare.clear()

    def commit(self, epoch: int) -> None:
        """Shows nothing."""

    def abort(self) -> None:
        """Drops nothing."""


class Refuses(Overlapping):
    """Can't prepare, once, while the other one does."""

    refused = threading.Event()

    def __call__(self, t: Any) -> None:
        """Takes it."""

    def prepare(self, epoch: int) -> None:
        self.in_prepare.wait(PATIENCE)
        if not self.refused.is_set():
            self.refused.set()
            raise OSError("the disk is gone for a moment")


def test_e7_a_sink_that_prepares_is_not_let_go_when_the_checkpoint_is_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rayelastic.runtime.checkpoint.element import ElementCheckpoint

    abandon, enough = ElementCheckpoint.abandon, threading.Event()

    def watched(saving: ElementCheckpoint, epoch: int) -> None:
        if Refuses.refused.is_set():
            Overlapping.abandoned.set()
        abandon(saving, epoch)

    def endless() -> Any:
        while not enough.is_set():
            yield (1,)

    monkeypatch.setattr(ElementCheckpoint, "abandon", watched)
    made = rel.Topology("overlapping")
    made.source(rel.callable(endless, {"n": int}), name="rows").sink(rel.call(Overlapping()), name="out")
    made.source(rel.callable(endless, {"n": int}), name="others").sink(rel.call(Refuses()), name="refuses")
    job = rel.start(made, config(tmp_path, LEAST, pes={"rows": 0, "others": 1}))
    try:
        assert Overlapping.abandoned.wait(PATIENCE)
        await_checkpoints(job, 1)
        enough.set()
        job.wait(PATIENCE)
        assert job.status.checkpoints.restarts == 1
    finally:
        enough.set()
        job.close()
    assert not Overlapping.meanwhile.is_set(), "it was called while it prepared"


def test_an_object_that_cannot_be_copied_is_told_before_anything_starts(tmp_path: Path) -> None:
    class Locked(Ledger):  # type: ignore[misc]
        def __init__(self, folder: Path) -> None:
            super().__init__(folder)
            self.lock = threading.Lock()

    made = topology_of(rel.call(Locked(tmp_path / "ledger")))
    with raises(rel.errors.StateError, "not-copyable", "Locked") as told:
        rel.run(made, config(tmp_path))
    assert told.value.operator == "ledger"
    assert not (tmp_path / "ledger").exists()
    rel.run(made)  # without checkpoints it is used itself
    assert json.loads((tmp_path / "ledger" / "1.json").read_text()) == ALL
