"""A job that only tells what it would do with its regions, and one whose elasticity is paused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import rayelastic as rel
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.plan.config import RegionsName
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.journal import ChangeJournal
from tests.component.rescale.test_rescale_crashes import MortalHost
from tests.component.runtime.dying_coordinator import bury
from tests.file_store import FileStore
from tests.reasons import region_passes
from tests.waiting import wait_until, wait_until_received

PATIENCE = 60.0
PERIOD = 0.3  # seconds between two decisions; a run of 256 tuples waits for half of that
ANSWER = 0.0005  # seconds that each tuple waits for its answer


class Number(NamedTuple):
    value: int


def asks(enough: threading.Event, regions: RegionsName) -> tuple[rel.Topology, rel.JobConfig]:
    """Asks for each number: more replicas would do that side by side."""

    def numbers() -> Iterator[Number]:
        value = 0
        while not enough.is_set():
            yield Number(value)
            value += 1

    def ask(t: Number) -> Number:
        threading.Event().wait(ANSWER)
        return t

    topology = rel.Topology("asks")
    topology.source(rel.callable(numbers, Number), name="numbers").map(ask, name="ask", lane="python").sink(
        rel.list(), name="out"
    )
    elasticity = rel.Elasticity(region_period=PERIOD, thread_period=PERIOD, max_processes=4)
    return topology, rel.JobConfig(elasticity=elasticity, regions=regions)


def asking(enough: threading.Event, regions: RegionsName) -> Job:
    return rel.start(*asks(enough, regions))


def finish(job: Job, enough: threading.Event) -> None:
    enough.set()
    rows = job.wait(PATIENCE)["out"]
    assert [t.value for t in rows] == list(range(len(rows)))


def test_advice_is_told_and_not_taken() -> None:
    enough = threading.Event()
    job = asking(enough, regions="advise")
    try:
        wait_until(job, lambda: any(done.changed for done in region_passes(job)), PERIOD)
        advice = next(done for done in region_passes(job) if done.changed)
        assert advice.decision.plan.region_of("ask").replicas > 1
        assert "advice: JobConfig(regions='advise')" in str(advice)
        assert job.plan().region_of("ask").replicas == 1
        plan = job.change(advice.decision.plan)  # who follows it
        assert plan.region_of("ask").replicas == advice.decision.plan.region_of("ask").replicas
        finish(job, enough)
    finally:
        enough.set()
        job.close()


def test_a_job_whose_elasticity_is_paused_stays_as_it_is_until_it_is_resumed() -> None:
    enough = threading.Event()
    job = asking(enough, regions="elastic")
    try:
        job.pause_elasticity()
        before = sum(1 for _ in job.adaptations(every_pass=True))
        start = job.metrics().operator("ask").tuples_in
        wait_until_received(job, "ask", start + 3000)  # five periods and more
        # Passes that were under way when it was paused may have come since: one of each loop.
        assert sum(1 for _ in job.adaptations(every_pass=True)) <= before + 2
        assert len(job.plan().pes) == 1
        job.resume_elasticity()
        wait_until(job, lambda: job.plan().region_of("ask").replicas > 1, PERIOD)
        finish(job, enough)
    finally:
        enough.set()
        job.close()


def test_the_next_coordinator_keeps_the_pause(tmp_path: Path) -> None:
    enough, store = threading.Event(), tmp_path / "journal"
    topology, config = asks(enough, regions="elastic")
    spec, host = prepare(topology, config), MortalHost()
    first = Coordinator(spec, host, journal=ChangeJournal(FileStore(store)))
    job = Job("asks", LocalControl(first), topology)
    try:
        job._start()
        job.pause_elasticity()
        bury(first)
        second = Coordinator(spec, host, journal=ChangeJournal(FileStore(store)))
        second.resume()
        job = Job("asks", LocalControl(second), topology)
        start = job.metrics().operator("ask").tuples_in
        wait_until_received(job, "ask", start + 3000)  # five periods and more
        assert not region_passes(job)
        job.resume_elasticity()
        wait_until(job, lambda: bool(region_passes(job)), PERIOD)
        finish(job, enough)
    finally:
        enough.set()
        job.close()
