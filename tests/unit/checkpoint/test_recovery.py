"""How often a job goes back, where what it works on crashes its processes, and where nodes have gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

import rayelastic as rel
from rayelastic.errors import PELostError
from rayelastic.runtime.checkpoint import restarts
from rayelastic.runtime.element.host import PEHandle
from rayelastic.runtime.job.context import JobContext
from rayelastic.runtime.job.job_cluster import JobCluster
from rayelastic.runtime.job.life import JobLife
from rayelastic.runtime.job.plan_in_force import PlanInForce
from rayelastic.runtime.job.recovery import Recovery
from rayelastic.runtime.job.rescaling import Rescaling
from rayelastic.runtime.job.telemetry import JobTelemetry
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.specs import JobSpec, PESpec
from rayelastic.runtime.values.status import PEStatus, State
from tests.unit.runtime.performing import GROW, Run

RESTARTS = 10
IN_VAIN = RESTARTS // restarts.IN_VAIN_SHARE
CRASH = "its process is gone"


@pytest.fixture(autouse=True)
def at_once(threads_run_here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "FIRST_PAUSE", 0.0)


class Element:
    """An element that may be lost, or stay silent, at a call; its own handle."""

    def __init__(self, job: Job, pe: str) -> None:
        self._job, self.pe = job, pe

    def within(self, timeout: float) -> Element:
        assert timeout > 0
        return self

    def open(self) -> None:
        self._job.called("open")

    def connect(self, peers: object) -> None:
        self._job.called("connect")

    def start(self) -> None:
        self._job.called("start")

    def status(self) -> PEStatus:
        return PEStatus(self.pe, State.RUNNING)

    def kill(self, *, at_once: bool = False) -> None:
        pass


class Host:
    """One node that has any number of elements."""

    can_lose = True

    def __init__(self, job: Job) -> None:
        self._job = job

    def start_pe(self, spec: PESpec) -> Element:
        return Element(self._job, spec.pe)

    def recycle(self, handle: object) -> None:
        pass

    def make_ready(self, count: int, node: str = "") -> None:
        pass

    def nodes(self) -> tuple[()]:
        return ()

    def hosts(self) -> frozenset[str]:
        return frozenset()

    silent: frozenset[str] = frozenset()


class Job:
    """A job that goes back when `lose` says so, on elements each of whose calls may go wrong."""

    def __init__(self) -> None:
        run = Run(GROW)
        spec = JobSpec("job", run.cluster.operators, run.change.old, rel.JobConfig(regions="manual"))
        self.goes_wrong: Callable[[str], Exception | None] = lambda _: None
        self.lost_later = 0  # attempts whose elements are lost once they have all answered, while one is under way
        self.life = JobLife("job", spec.plan.pes, lambda *_: None, lambda: 0.0)
        self.life.runs()
        host, plan = cast("Any", Host(self)), PlanInForce(spec, run.journal)
        cluster = JobCluster(spec, host, self._started)
        telemetry = JobTelemetry("job", cluster, self.life)
        self.changes = changes = Rescaling(spec, cluster, host, run.journal, self.life, plan, {}, lambda: 0.0)
        settings = rel.Checkpoint(restarts=RESTARTS)
        context = JobContext(spec, settings, host, run.journal, cluster, self.life, plan, telemetry, changes)
        self.recovery = Recovery(context, lambda: 0.0)

    @property
    def restarts(self) -> int:
        return self.life.checkpoints.restarts

    def lose(self) -> None:
        self.recovery.lose(Failure("pe0 was lost"))

    def called(self, method: str) -> None:
        if (error := self.goes_wrong(method)) is not None:
            raise error

    def _started(self, handle: PEHandle, status: PEStatus) -> None:
        self.life.begins(status)
        if self.lost_later > 0:
            self.lost_later -= 1
            self.lose()


def crashes_at(method: str, times: int = 1000) -> Callable[[str], Exception | None]:
    left = [times]

    def goes_wrong(called: str) -> Exception | None:
        if called != method or left[0] == 0:
            return None
        left[0] -= 1
        return PELostError(CRASH)

    return goes_wrong


def test_a_job_whose_elements_crash_while_they_start_is_given_up_as_early_as_any() -> None:
    job = Job()
    job.goes_wrong = crashes_at("start")
    job.lose()
    assert job.life.state is State.FAILED
    assert job.life.failure is not None
    assert job.life.failure.reason == f"pe0 was lost; it has gone back {IN_VAIN} times, the last time: {CRASH}"
    assert job.restarts == IN_VAIN


def test_a_replica_that_a_change_began_while_the_job_waited_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with the others: a job that counts on it never ends."""
    job = Job()
    standing_still = job.changes.standing_still

    @contextmanager
    def after_a_change() -> Iterator[None]:
        with standing_still():
            job.life.begins(PEStatus("replica", State.RUNNING))
            yield

    monkeypatch.setattr(job.changes, "standing_still", after_a_change)
    job.lose()
    assert job.life.state is State.RUNNING
    elements = set(job.life.elements())
    assert elements
    assert "replica" not in elements


def test_so_is_one_whose_elements_crash_as_soon_as_they_have_started() -> None:
    job = Job()
    job.lost_later = 1000
    job.lose()
    assert job.life.state is State.FAILED
    assert job.restarts == IN_VAIN


def test_crashes_at_the_start_and_those_later_count_together() -> None:
    job = Job()
    job.goes_wrong = crashes_at("start", IN_VAIN - 1)
    job.lose()
    assert (job.life.state, job.restarts) == (State.RUNNING, IN_VAIN)
    job.lose()
    assert (job.life.state, job.restarts) == (State.FAILED, IN_VAIN)


@pytest.mark.parametrize(
    ("method", "error"),
    [("open", PELostError(CRASH)), ("connect", PELostError(CRASH)), ("start", TimeoutError("it didn't answer"))],
)
def test_nodes_that_have_gone_are_waited_for_as_often_as_the_job_may_go_back(method: str, error: Exception) -> None:
    """The last attempt that it has finds them."""
    job, left = Job(), [RESTARTS - 1]

    def goes_wrong(called: str) -> Exception | None:
        left[0] -= called == method
        return error if called == method and left[0] >= 0 else None

    job.goes_wrong = goes_wrong
    job.lose()
    assert (job.life.state, job.restarts) == (State.RUNNING, RESTARTS)


def test_a_checkpoint_between_shows_that_it_is_not_in_vain() -> None:
    job = Job()
    for number in range(RESTARTS):
        job.life.checkpoints = replace(job.life.checkpoints, taken=number)
        job.lose()
        assert job.life.state is State.RUNNING
    job.lose()
    assert job.life.state is State.FAILED
