"""What users say of replicas: a latency that is to be reached, and bounds for regions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import Job
from rayelastic.reasons import Code
from tests.reasons import region_passes, values
from tests.waiting import wait_until

PATIENCE = 60.0
PERIOD = 0.3  # seconds between two decisions
ANSWER = 0.004  # seconds that each tuple waits for its answer
BURST = 8  # tuples that come at once, the last of which waits for seven others
LULL = 0.08  # seconds between two bursts: less than half of what one replica can


class Number(NamedTuple):
    value: int


def asking(enough: threading.Event, pause: float, **config: Any) -> Job:
    """Bursts of numbers, for each of which something is asked: more replicas do that side by side."""

    def numbers() -> Iterator[Number]:
        value = 0
        while not enough.wait(pause):
            for _ in range(BURST):
                yield Number(value)
                value += 1

    def ask(t: Number) -> Number:
        threading.Event().wait(ANSWER)
        return t

    topology = rel.Topology("asks")
    topology.source(rel.callable(numbers, Number), name="numbers").map(ask, name="ask", lane="python").sink(
        rel.list(), name="out"
    )
    elasticity = rel.Elasticity("off", region_period=PERIOD, max_processes=6)
    threads = rel.Threads(model="dynamic")
    return rel.start(topology, rel.JobConfig(regions="elastic", elasticity=elasticity, threads=threads, **config))


def finish(job: Job, enough: threading.Event) -> None:
    enough.set()
    rows = job.wait(PATIENCE)["out"]
    assert [t.value for t in rows] == list(range(len(rows)))


@pytest.mark.timeout(150)
def test_a_goal_of_latency_gets_replicas_where_the_load_alone_would_not() -> None:
    enough = threading.Event()
    job = asking(enough, LULL, goal=rel.Latency(p99=0.014))
    try:
        wait_until(job, lambda: job.plan().region_of("ask").replicas > 1, PERIOD)
        grown = next(done for done in region_passes(job) if done.changed)
        assert values(grown.decision.reasons, Code.LATENCY)["goal"] == 0.014
        assert sum(grown.observation.latencies) > 0
        finish(job, enough)
    finally:
        enough.set()
        job.close()


@pytest.mark.timeout(150)
def test_without_one_the_same_load_leaves_it_as_it_is() -> None:
    enough = threading.Event()
    job = asking(enough, LULL)
    try:
        wait_until(job, lambda: len(region_passes(job)) > 10, PERIOD)
        assert job.plan().region_of("ask").replicas == 1, "\n".join(map(str, region_passes(job)))
        finish(job, enough)
    finally:
        enough.set()
        job.close()


@pytest.mark.timeout(150)
def test_a_region_keeps_within_its_bounds_from_the_start() -> None:
    enough = threading.Event()
    job = asking(enough, 0.0, replicas={"ask": (2, 3)})
    try:
        assert job.plan().region_of("ask").replicas == 2
        assert len(job.status.pes) == 2
        wait_until(job, lambda: job.plan().region_of("ask").replicas == 3, PERIOD)
        settled = len(region_passes(job)) + 5
        wait_until(job, lambda: len(region_passes(job)) > settled, PERIOD)
        assert {done.in_force.region_of("ask").replicas for done in region_passes(job)} == {2, 3}
        finish(job, enough)
    finally:
        enough.set()
        job.close()


@pytest.mark.timeout(150)
def test_a_region_does_not_shrink_below_what_it_is_to_have() -> None:
    enough = threading.Event()
    job = asking(enough, LULL * 4, replicas={"ask": (2, 3)})
    try:
        job.rescale(job.plan().region_of("ask").region.name, 3)
        wait_until(job, lambda: job.plan().region_of("ask").replicas == 2, PERIOD)
        settled = len(region_passes(job)) + 7
        wait_until(job, lambda: len(region_passes(job)) > settled, PERIOD)
        assert job.plan().region_of("ask").replicas == 2
        finish(job, enough)
    finally:
        enough.set()
        job.close()
