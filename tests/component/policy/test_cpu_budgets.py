"""Elements of one job on one host get parts of its CPUs from their coordinator, keep to them, and say so."""

from __future__ import annotations

import functools
import os
import statistics
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.policy.element.cpu_budgets import BudgetThresholds, CpuBudget, CpuBudgets
from rayelastic.reasons import Code
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.element.processing_element import ProcessingElement
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.job.levels import budget_loop
from rayelastic.runtime.loops.elasticity import replay
from rayelastic.runtime.values.adaptation import Adaptation
from tests.component.policy.computing import computing
from tests.component.rescale.rescaling import Feed, topology_of
from tests.reasons import codes

PERIOD = 0.2  # seconds between two decisions, and between two looks of the coordinator
PATIENCE = 100  # periods


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has threads that are started from here use two CPUs, whatever the machine has: two elements fill them.

    Other tests may take some of that: a fifth of it counts as full, and nobody's part becomes less for it.
    """
    kept = BudgetThresholds(full=0.2, patience=10_000)
    monkeypatch.setattr(budget_loop, "CpuBudgets", functools.partial(CpuBudgets, thresholds=kept))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:2])
    yield
    os.sched_setaffinity(0, before)


def config(threads: int | None = None, **elasticity: Any) -> rel.JobConfig:
    return rel.JobConfig(pes=2, threads=threads, elasticity=rel.Elasticity(thread_period=PERIOD, **elasticity))


def of_elements(job: Job) -> list[Adaptation]:
    return [done for done in job.adaptations(every_pass=True) if isinstance(done, Adaptation)]


def await_parts(job: Job) -> None:
    for _ in range(PATIENCE):
        if all(pe.budget is not None for pe in job.status.pes):
            return
        job.pause(PERIOD)
    raise AssertionError("\n".join(map(str, of_elements(job))))


def await_passes(job: Job, wanted: int) -> list[Adaptation]:
    """Passes of elements that have parts, of each so many."""
    for _ in range(PATIENCE):
        found = [done for done in of_elements(job) if done.observation.budget is not None]
        if all(sum(done.pe == pe.pe for done in found) >= wanted for pe in job.status.pes):
            return found
        job.pause(PERIOD)
    raise AssertionError("\n".join(map(str, of_elements(job))))


def await_pass(job: Job, wanted: Callable[[Adaptation], bool]) -> Adaptation:
    for _ in range(PATIENCE):
        for done in of_elements(job):
            if wanted(done):
                return done
        job.pause(PERIOD)
    raise AssertionError("\n".join(map(str, of_elements(job))))


@pytest.mark.usefixtures("two_cpus")
def test_two_elements_that_fill_a_host_get_half_of_it_each(tmp_path: Path) -> None:
    job = rel.start(computing(8), config(journal=str(tmp_path / "{pe}.jsonl")))
    try:
        await_parts(job)
        assert [(pe.budget.cpus, pe.budget.of) for pe in job.status.pes if pe.budget is not None] == [(1, 2), (1, 2)]
        seen = await_passes(job, 4)
    finally:
        job.cancel(drain=False)
        job.close()
    first = {pe.pe: next(done for done in seen if done.pe == pe.pe) for pe in job.status.pes}
    for done in first.values():
        assert done.decision.reasons[0] == Code.CPU_BUDGET(cpus=1)
    for done in seen:
        assert (done.observation.cpu_count, done.observation.maximum_threads) == (1, 1)
        assert done.decision.thread_count == 1
    own = [statistics.fmean(done.observation.own_cpu for done in seen if done.pe == pe) for pe in first]
    assert sum(own) < 3, "there are two, and what its sibling in this process uses isn't its own"
    for pe in job.status.pes:
        assert [again for _, again in replay(tmp_path / f"{pe.pe}.jsonl")]
        assert all(done.decision == again for done, again in replay(tmp_path / f"{pe.pe}.jsonl"))


@pytest.mark.usefixtures("two_cpus")
def test_queues_stay_where_the_part_is_one_cpu_and_the_sibling_leaves_its_own_idle() -> None:
    spec, host = (
        prepare(computing(8), rel.JobConfig(pes=1, elasticity=rel.Elasticity(remember=False, thread_period=PERIOD))),
        InProcessHost(),
    )
    coordinator = Coordinator(spec, host)
    job = Job("numbers", LocalControl(coordinator), computing(8))
    try:
        job._start()
        element = host.find_pes()[0].within(10)
        assert isinstance(element, ProcessingElement)
        assert element._running is not None
        element.pause_levels(True)
        element._running.scheduler.apply(1, {element._running.ids["map4"]: "dynamic"})
        element.share_host(CpuBudget(1, 2, siblings=0.3))
        element.pause_levels(False)
        begun = await_pass(job, lambda done: Code.CPU_BUDGET(cpus=1) in done.decision.reasons)
        then = await_pass(job, lambda done: done.number == begun.number + 1).observation
        assert (begun.observation.queued, then.queued) == ({"map4"}, {"map4"}), "it would use less than there is"
    finally:
        job.cancel(drain=False)
        job.close()
        coordinator.close()


@pytest.mark.usefixtures("two_cpus")
def test_the_next_coordinator_goes_on_with_the_parts_that_were_given() -> None:
    spec, host = prepare(computing(8), config()), InProcessHost()
    first = Coordinator(spec, host)
    job = Job("numbers", LocalControl(first), computing(8))
    try:
        job._start()
        await_parts(job)
        first._loops.stop()
        second = Coordinator(spec, host, journal=first._journal)
        second.resume()
        job = Job("numbers", LocalControl(second), computing(8))
        searches = sum(Code.CPU_BUDGET in codes(done.decision.reasons) for done in of_elements(job))
        await_passes(job, len(of_elements(job)) // 2 + 6)
        assert all(pe.budget is not None and pe.budget.cpus == 1 for pe in job.status.pes)
        assert sum(Code.CPU_BUDGET in codes(done.decision.reasons) for done in of_elements(job)) == searches
    finally:
        job.cancel(drain=False)
        job.close()
        first.close()


@pytest.mark.parametrize("settings", [{"algorithm": "off"}, {"algorithm": "paper"}, {"threads": 2}])
@pytest.mark.usefixtures("two_cpus")
def test_nothing_is_shared_out_where_threads_are_chosen_otherwise(settings: dict[str, Any]) -> None:
    job = rel.start(computing(8), config(**settings))
    try:
        for _ in range(12):
            job.pause(PERIOD)
        assert all(pe.budget is None for pe in job.status.pes)
    finally:
        job.cancel(drain=False)
        job.close()


def sharing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "share-hosts"]


def test_an_element_alone_costs_no_thread_that_shares_out_and_a_second_one_starts_it() -> None:
    feed, before = Feed(10), sharing()
    job = rel.start(topology_of(feed, "compiled"), rel.JobConfig(pes=1, regions="manual"))
    try:
        assert len(job.status.pes) == 1
        assert sharing() == before
        job.rescale("r1", 2)
        assert len(sharing()) == len(before) + 1
    finally:
        feed.enough.set()
        job.close()
    assert sharing() == before
