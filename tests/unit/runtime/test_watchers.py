"""What becomes of a job when one of its elements ends, fails, falls silent or loses a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from rayelastic.errors import PELostError
from rayelastic.runtime.element.host import PEHandle
from rayelastic.runtime.job import watchers
from rayelastic.runtime.job.life import JobLife
from rayelastic.runtime.job.telemetry import JobTelemetry
from rayelastic.runtime.job.watchers import Watchers
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import OperatorSample, PESample, PEStatus, SinkResult, State

PATIENCE = 10.0  # seconds


@dataclass(eq=False)
class Element:
    """An element that says one thing after the other when it is waited for; its own handle."""

    pe: str
    says: list[PEStatus | Exception]
    alive: bool = False
    reachable: bool = True
    time: float = 0.0  # seconds, which go by while nobody answers

    def is_reachable(self) -> bool:
        return self.reachable

    def is_alive(self) -> bool:
        return self.alive

    def within(self, timeout: float) -> Element:
        assert timeout > 0
        return self

    def wait(self, timeout: float) -> PEStatus:
        said = self.says.pop(0)
        if isinstance(said, TimeoutError):
            self.time += 5.0
        if isinstance(said, Exception):
            raise said
        return said

    def status(self) -> PEStatus:
        return self.wait(0.0)

    operators: tuple[OperatorSample, ...] = ()

    def sample(self) -> PESample:
        return PESample(self.pe, 1.0, 0, 0.0, self.operators)

    def adaptations(self) -> tuple[()]:
        return ()

    def results(self) -> dict[str, SinkResult]:
        return {f"out of {self.pe}": SinkResult("out", 1)}


@dataclass
class Cluster:
    handles: dict[str, Element]
    ended: list[str] = field(default_factory=list)
    takes_checkpoints: bool = False
    can_lose_one: bool = True

    def ends(self, pe: str) -> None:
        self.ended.append(pe)

    loses = ends


@dataclass
class Plan:
    dispensable: set[str]

    def is_dispensable(self, pe: str) -> bool:
        return pe in self.dispensable

    def loss(self, reason: str, pe: str = "") -> Failure:
        return Failure(f"{reason}; what was in {pe} is lost")


class Job:
    """Two elements; what the first one says is watched."""

    def __init__(self, *says: PEStatus | Exception, dispensable: set[str] | None = None) -> None:
        self.element = Element("pe0", list(says))
        self.cluster = Cluster({"pe0": self.element, "pe1": Element("pe1", [])})
        self.results_at_the_end: dict[str, SinkResult] = {}
        self.life = JobLife("job", ("pe0", "pe1"), self._ending, lambda: 0.0)
        self.life.runs()
        self.telemetry = JobTelemetry("job", cast("Any", self.cluster), self.life)
        plan = cast("Any", Plan(dispensable or set()))
        parts = cast("Any", self.cluster), self.life, plan, self.telemetry, self.life.fail
        self.watchers = Watchers(*parts, PATIENCE, lambda: self.element.time)

    def _ending(self, state: State, failure: Failure | None) -> None:
        self.results_at_the_end = self.telemetry.results()

    def watch(self) -> Failure | None:
        self.watchers._stay_with(cast("PEHandle", self.element))
        assert not self.element.says, "it was left before it had said all"
        return self.life.failure


@pytest.fixture(autouse=True)
def no_wait(threads_run_here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchers, "CAUSE_WAIT", 0.0)


RUNS, FINISHED = PEStatus("pe0", State.RUNNING), PEStatus("pe0", State.FINISHED)
BROKEN = PEStatus("pe0", State.FAILED, Failure("it raised", "work"))


def test_one_that_finishes_leaves_its_results_before_the_job_ends() -> None:
    job = Job(RUNS, FINISHED)
    job.life.progresses(PEStatus("pe1", State.FINISHED))
    assert job.watch() is None
    assert job.life.state is State.FINISHED
    assert list(job.results_at_the_end) == ["out of pe0"]
    assert job.cluster.ended == ["pe0"]


def test_one_that_finishes_while_another_runs_leaves_the_job_running() -> None:
    job = Job(FINISHED)
    assert job.watch() is None
    assert job.life.state is State.RUNNING


def test_one_that_fails_fails_the_job() -> None:
    job = Job(RUNS, BROKEN)
    assert job.watch() == BROKEN.failure
    assert job.life.elements()["pe0"] == BROKEN


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TimeoutError("20 s"), "PE pe0 stopped answering; what was in pe0 is lost"),
        (PELostError("its process is gone"), "PE pe0 was lost: its process is gone; what was in pe0"),
        (ValueError("a fault of ours"), "PE pe0 was lost: a fault of ours; what was in pe0"),
    ],
    ids=str,
)
def test_one_that_is_lost_fails_the_job(error: Exception, why: str) -> None:
    job = Job(RUNS, error)
    failure = job.watch()
    assert failure is not None
    assert failure.reason.startswith(why)
    assert job.life.elements()["pe0"].state is State.FAILED
    assert job.cluster.ended == ["pe0"]


def test_one_that_is_busy_is_waited_for() -> None:
    job = Job(RUNS, TimeoutError("20 s"), TimeoutError("20 s"), RUNS, BROKEN)
    job.cluster.handles["pe0"].alive = True
    assert job.watch() == BROKEN.failure
    assert job.cluster.handles["pe0"].says == []


@pytest.mark.parametrize("reachable", [True, False])
def test_one_is_lost_whose_machine_does_not_answer_either(*, reachable: bool) -> None:
    silent: list[PEStatus | Exception] = [TimeoutError("5 s")] * round(PATIENCE / 5.0)
    job = Job(*silent, *silent, FINISHED) if reachable else Job(*silent)
    job.element.alive, job.element.reachable = True, reachable
    failure = job.watch()
    assert (failure is None) is reachable
    assert failure is None or failure.reason.startswith("PE pe0 stopped answering")


@pytest.mark.parametrize("says", [BROKEN, PELostError("gone"), TimeoutError("silent")], ids=["fails", "lost", "silent"])
def test_one_that_nobody_needs_may_go(says: PEStatus | Exception) -> None:
    job = Job(says, dispensable={"pe0"})
    assert job.watch() is None
    assert job.life.state is State.RUNNING
    assert job.cluster.ended == ["pe0"]


def test_a_lost_link_is_the_loss_of_the_peer() -> None:
    job = Job(PEStatus("pe0", State.RUNNING, lost_peers={"pe1": "the link to pe1 broke"}))
    assert job.watch() == Failure("the link to pe1 broke; what was in pe1 is lost", lost_link=True)
    assert job.cluster.ended == [], "it is asked no more"


def test_a_lost_link_to_one_that_nobody_needs_is_no_loss() -> None:
    job = Job(PEStatus("pe0", State.RUNNING, lost_peers={"pe1": "it broke"}), FINISHED, dispensable={"pe1"})
    assert job.watch() is None
    assert job.life.state is State.RUNNING


@pytest.mark.parametrize("over", [False, True])
def test_the_word_of_one_that_was_retired_or_comes_late_counts_no_more(over: bool) -> None:
    job = Job(BROKEN)

    def first(act: Callable[[], None]) -> None:
        wait = job.element.wait
        job.element.wait = lambda timeout: (act(), wait(timeout))[1]  # type: ignore[method-assign, func-returns-value]

    if over:
        first(lambda: job.life.end(State.CANCELLED))
    else:
        first(lambda: job.cluster.handles.update(pe0=Element("pe0", [])))
    assert job.watch() is None
    assert job.life.state is (State.CANCELLED if over else State.RUNNING)
    assert job.cluster.ended == (["pe0"] if over else [])


def test_while_others_take_over_the_last_counters_are_told() -> None:
    """Elements that don't run yet know no operators: whoever asks for one meanwhile isn't told that there is none."""
    job, counted = Job(), OperatorSample("work", "manual", 3, 2, 0)
    job.element.operators = (counted,)
    assert job.telemetry.metrics().operator("work").tuples_in == 3
    assert job.life.recovers()
    job.element.operators = ()
    job.life.begins(PEStatus("pe0", State.CREATED))
    job.life.begins(PEStatus("pe2", State.CREATED))
    job.cluster.handles["pe2"] = Element("pe2", [])
    assert job.telemetry.metrics().operator("work").tuples_in == 3
    job.element.operators = (OperatorSample("work", "manual", 4, 2, 0),)
    job.life.runs_again()
    assert job.telemetry.metrics().operator("work").tuples_in == 4
    assert [sample.pe for sample in job.telemetry.metrics().pes] == ["pe0", "pe2"]


def test_the_last_counters_are_told_where_a_job_goes_back_just_as_its_elements_are_asked() -> None:
    job = Job()
    job.element.operators = (OperatorSample("work", "manual", 3, 2, 0),)
    assert job.telemetry.metrics().operator("work").tuples_in == 3
    answer = job.element.sample

    def goes_back() -> PESample:
        if not job.life.is_recovering:
            assert job.life.recovers()
            job.element.operators = ()
        return answer()

    job.element.sample = goes_back  # type: ignore[method-assign]
    assert job.telemetry.metrics().operator("work").tuples_in == 3
    assert job.telemetry.metrics().operator("work").tuples_in == 3


@pytest.mark.edges
@pytest.mark.parametrize("alive", [True, False])
def test_one_that_has_ended_is_watched_until_the_job_is_completed(alive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sinks hide their rows until then: who is lost there is lost, once."""
    monkeypatch.setattr(watchers, "WATCH_PERIOD", 0.0)
    job = Job(RUNS, FINISHED, FINISHED, TimeoutError("20 s"), *([PELostError("gone")] if alive else []))
    job.cluster.takes_checkpoints, job.cluster.handles["pe0"].alive = True, alive
    failure = job.watch()
    assert failure is not None
    assert failure.reason.startswith(f"PE pe0 {'was lost: gone' if alive else 'stopped answering'}")
    assert not job.results_at_the_end
