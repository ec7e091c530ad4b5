"""A coordinator or a new replica dies at each step of a change: it is ended or undone, nothing is lost (R11, J17)."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import rayelastic as rel
from rayelastic.errors import ChangeError, JobExistsError, JobFailedError, LinkError, PELostError
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.runtime.element.host import InProcessHandle, InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.job.job_cluster import RETIRE_TIMEOUT
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.runtime.remote import Call, Remote, perform
from rayelastic.runtime.rescale import performer
from rayelastic.runtime.values.specs import PESpec
from tests.component.rescale.rescaling import Feed, check, topology_of
from tests.component.runtime.dying_coordinator import bury
from tests.file_store import FileStore
from tests.raising import raises
from tests.waiting import wait_until_received

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi

STEPS = ["begin", "start", "attach", "hold", "flush", "copy", "commit", "forget", "route", "end"]
BACK = ["undo", "route back", "detach", "end undo"]
ELASTIC = rel.JobConfig(regions="manual", elasticity="off", threads=2)


class Died(BaseException):
    """A coordinator that is gone catches nothing."""


class MortalHandle(InProcessHandle):
    dead = False

    def within(self, timeout: float) -> ElementApi:
        return cast("ElementApi", Remote(self.answer))

    def answer(self, call: Call) -> Any:
        if self.dead:
            raise PELostError(f"the process of {self.pe} is gone")
        return perform(self._element, call)

    def die(self) -> None:
        self.dead = True
        self._element.close()


class MortalHost(InProcessHost):
    def __init__(self) -> None:
        super().__init__()
        self.handles: dict[str, MortalHandle] = {}

    def start_pe(self, spec: PESpec) -> MortalHandle:
        element = super().start_pe(spec)._element
        self.handles[spec.pe] = MortalHandle(element)
        return self.handles[spec.pe]

    def find_pes(self) -> Sequence[MortalHandle]:
        return list(self.handles.values())


class Run:
    """A job under load, with its coordinator at hand."""

    def __init__(self, keys: int = 200) -> None:
        self.feed = Feed(keys)
        topology = topology_of(self.feed, "compiled")
        self.host = MortalHost()
        self.coordinator = Coordinator(prepare(topology, ELASTIC), self.host)
        self.job = Job("crashes", LocalControl(self.coordinator), topology)
        self.job._start()
        self.steps: list[str] = []

    def at(self, step: str, occurrence: int, act: Any) -> None:
        """Calls `act` when the coordinator comes to a step for the given time."""
        seen = 0

        def passing(name: str) -> None:
            nonlocal seen
            self.steps.append(name)
            if name == step:
                seen += 1
                if seen == occurrence:
                    act()

        self.coordinator._rescaling._performer._passing = passing

    def flows(self, tuples: int = 100) -> None:
        before = self.job.metrics().operator("out").tuples_in
        wait_until_received(self.job, "out", before + tuples)

    def finish(self) -> None:
        self.feed.enough.set()
        check(self.job.wait(timeout=60)["out"], self.feed)


@contextmanager
def running() -> Iterator[Run]:
    run = Run()
    try:
        run.flows()
        yield run
    finally:
        run.feed.enough.set()
        run.job.close()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performer, "BATCH_BYTES", 2000)


def die() -> None:
    raise Died


@pytest.mark.parametrize("step", STEPS)
def test_another_coordinator_ends_what_one_has_begun(step: str) -> None:
    with running() as run:
        for occurrence, replicas in ((1, 2), (2, 1)):
            run.at(step, occurrence, die)
            try:
                plan = run.job.rescale("r1", replicas)
            except Died:
                plan = run.coordinator.recover()
                assert step == "begin" or plan.region("r1").replicas == replicas
            if plan.region("r1").replicas != replicas:
                run.job.rescale("r1", replicas)
            run.flows()
        run.finish()


@pytest.mark.parametrize("step", ["attach", "hold", "flush", "copy", "commit"])
def test_a_new_replica_that_dies_before_it_has_keys_is_given_up(step: str) -> None:
    with running() as run:
        run.at(step, 1, lambda: run.host.handles["pe1"].die())
        if step == "commit":  # its state was copied: only the next step finds out
            with pytest.raises((ChangeError, PELostError)):
                run.job.rescale("r1", 2)
            with pytest.raises(JobFailedError):
                run.job.wait(timeout=60)
            return
        with raises(ChangeError, "change-failed"):
            run.job.rescale("r1", 2)
        assert run.job.plan().region("r1").replicas == 1
        run.flows()
        assert run.job.rescale("r1", 2).region("r1").replicas == 2
        run.flows()
        run.finish()


@pytest.mark.parametrize("dies", [False, True])
def test_a_new_replica_that_cannot_be_started_is_given_up(dies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(self: MortalHandle, call: Call) -> Any:
        if call.method == "connect" and self.pe == "pe1":
            if not dies:
                raise LinkError("nobody answers")
            self.die()
        return living(self, call)

    living = MortalHandle.answer
    with running() as run:
        with monkeypatch.context() as patch:
            patch.setattr(MortalHandle, "answer", answer)
            with raises(ChangeError, "change-failed"):
                run.job.rescale("r1", 2)
        run.flows()
        run.job.rescale("r1", 2)
        run.flows()
        run.finish()


def test_a_new_replica_that_stops_answering_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may take a minute to know that its host is gone."""
    gone = False

    def answer(self: MortalHandle, call: Call) -> Any:
        if gone and self.pe == "pe1":
            raise TimeoutError(f"{call.method} isn't answered")
        return living(self, call)

    def goes() -> None:
        nonlocal gone
        gone = True
        raise LinkError("nobody answers")

    living = MortalHandle.answer
    monkeypatch.setattr(MortalHandle, "answer", answer)
    with running() as run:
        run.at("copy", 1, goes)
        with raises(ChangeError, "change-failed"):
            run.job.rescale("r1", 2)
        run.flows()
        run.finish()


@pytest.mark.parametrize("step", ["forget", "route", "detach", "end"])
def test_a_replica_that_dies_once_it_has_given_its_keys_is_no_loss(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performer, "BATCH_BYTES", 1 << 20)  # all at once
    with running() as run:
        run.job.rescale("r1", 2)
        run.flows()
        handle = run.host.handles["pe1"]

        def dies() -> None:
            handle.die()
            run.coordinator._watchers.lose(handle, "its watcher saw it go")

        run.at(step, 1, dies)
        assert run.job.rescale("r1", 1).region("r1").replicas == 1
        run.flows()
        run.finish()


@pytest.mark.parametrize("step", BACK)
def test_a_change_is_undone_by_another_coordinator_too(step: str) -> None:
    with running() as run:
        crashed = False

        def passing(name: str) -> None:
            nonlocal crashed
            if name == "copy":
                run.host.handles["pe1"].die()
            if name == step and not crashed:
                crashed = True
                raise Died

        run.coordinator._rescaling._performer._passing = passing
        with pytest.raises(Died):
            run.job.rescale("r1", 2)
        assert run.coordinator.recover().region("r1").replicas == 1
        run.flows()
        run.finish()


def test_a_replica_that_nobody_attached_is_not_waited_for() -> None:
    """Who was to tell it the end died, or had ended, before it was told of it."""
    with running() as run:
        run.at("attach", 1, die)
        with pytest.raises(Died):
            run.job.rescale("r1", 2)
        cluster = run.coordinator._cluster
        assert cluster.is_running("pe1")
        before = time.monotonic()
        cluster.retire("pe1")
        assert time.monotonic() - before < RETIRE_TIMEOUT / 2
        assert "pe1" not in cluster.handles


def test_keys_that_died_with_their_replica_fail_the_job_and_say_so() -> None:
    with running() as run:
        run.job.rescale("r1", 2)
        run.flows()
        run.host.handles["pe1"].die()
        with raises(JobFailedError, "pe-lost", "count"):
            run.job.wait(timeout=60)


@pytest.mark.parametrize("step", ["start", "commit", "end"])
def test_the_next_coordinator_takes_over_elements_that_run_on(step: str, tmp_path: Path) -> None:
    feed, host, store = Feed(200), MortalHost(), tmp_path / "journal"
    topology = topology_of(feed, "compiled")
    spec = prepare(topology, ELASTIC)
    first = Coordinator(spec, host, journal=ChangeJournal(FileStore(store)))
    job = Job("crashes", LocalControl(first), topology)
    try:
        job._start()
        with pytest.raises(JobExistsError):
            FileStore(store)
        before = host.handles["pe0"]
        first._rescaling._performer._passing = lambda name: die() if name == step else None
        with pytest.raises(Died):
            job.rescale("r1", 2)
        bury(first)
        second = Coordinator(spec, host, journal=ChangeJournal(FileStore(store)))
        second.resume()
        job = Job("crashes", LocalControl(second), topology)
        assert job.plan().region("r1").replicas == 2
        assert host.handles["pe0"] is before
        job.rescale("r1", 1)
        feed.enough.set()
        check(job.wait(timeout=60)["out"], feed)
    finally:
        feed.enough.set()
        job.close()


@pytest.mark.parametrize("step", ["attach", "hold", "flush", "copy", "commit", "forget", "route", "end"])
def test_a_new_replica_that_dies_with_the_coordinator_is_replaced_or_its_keys_are_missed(
    step: str, tmp_path: Path
) -> None:
    feed, host, store = Feed(200), MortalHost(), tmp_path / "journal"
    topology = topology_of(feed, "compiled")
    spec = prepare(topology, ELASTIC)
    first = Coordinator(spec, host, journal=ChangeJournal(FileStore(store)))
    job = Job("crashes", LocalControl(first), topology)
    try:
        job._start()
        wait_until_received(job, "out", 100)
        first._rescaling._performer._passing = lambda name: die() if name == step else None
        with pytest.raises(Died):
            job.rescale("r1", 2)
        host.handles["pe1"].die()  # nobody watches
        bury(first)
        second = Coordinator(spec, host, journal=ChangeJournal(FileStore(store)))
        second.resume()
        job = Job("crashes", LocalControl(second), topology)
        if step in ("forget", "route", "end"):
            with raises(JobFailedError, "pe-lost", "count"):
                job.wait(timeout=60)
            return
        assert job.plan().region("r1").replicas == 2
        wait_until_received(job, "out", job.metrics().operator("out").tuples_in + 100)
        feed.enough.set()
        check(job.wait(timeout=60)["out"], feed)
    finally:
        feed.enough.set()
        job.close()


def test_a_coordinator_that_died_before_the_start_leaves_a_job_that_says_so(tmp_path: Path) -> None:
    feed = Feed(1)
    spec = prepare(topology_of(feed, "compiled"), ELASTIC)
    Coordinator(spec, MortalHost(), journal=ChangeJournal(FileStore(tmp_path / "journal")))._journal.close()
    second = Coordinator(spec, MortalHost(), journal=ChangeJournal(FileStore(tmp_path / "journal")))
    second.resume()
    failure = second.status().failure
    assert failure is not None
    assert "before the job started" in failure.reason
    second.close()


def random_rescales(seed: int, changes: int) -> None:
    dice = random.Random(seed)
    with running() as run:
        for _ in range(changes):
            replicas = dice.choice([n for n in (1, 2, 3) if n != run.job.plan().region("r1").replicas])
            run.at(dice.choice(STEPS), dice.randint(1, 6), die)
            try:
                run.job.rescale("r1", replicas)
            except Died:
                run.coordinator.recover()
        run.flows()
        run.finish()


def test_random_rescales_with_coordinators_that_die_now_and_then() -> None:
    random_rescales(seed=0, changes=5)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100))
def test_500_random_rescales(seed: int) -> None:
    random_rescales(seed, changes=5)


def test_a_replica_that_has_been_retired_is_no_loss() -> None:
    """Who watches it may see it go before the change has returned."""
    with running() as run:
        run.job.rescale("r1", 2)
        handle = run.host.handles["pe1"]
        kill = handle.kill

        def seen_to_go(*, at_once: bool = False) -> None:
            run.coordinator._watchers.lose(handle, "its watcher saw it go")
            kill()

        handle.kill = seen_to_go  # type: ignore[method-assign]
        run.job.rescale("r1", 1)
        run.flows()
        run.finish()
