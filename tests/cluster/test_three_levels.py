"""Replicas, queues and threads are found at the same time in one job on Ray, with nothing but defaults, up and down.

One replica can't carry the load whatever its queues and threads are, so regions must grow; three functions that wait in
a row need a queue in front of two and two threads beside, so each element must adapt; and all is given back in a lull.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import Job
from rayelastic.runtime.values.status import PESample
from tests.cluster.conftest import CPUS
from tests.waiting import wait_until

pytestmark = [pytest.mark.alone, pytest.mark.timeout(400)]

KEYS = 97
ANSWER = 0.003  # seconds that each of the three functions waits for its answer
LULL = 0.1  # seconds between two tuples when there is little to do
PATIENCE = 180.0  # seconds for the job to find what it needs, on a machine with other work
LOOK = 0.5  # seconds
WAITING = ("first", "second", "third")


class Event(NamedTuple):
    key: int
    sequence: int


class Seen(NamedTuple):
    seen: int = 0


def events(folder: Path) -> Iterator[Event]:
    """Keys by turns as fast as they are taken, few once 'lull' is there, until 'enough' is."""
    pause, value = threading.Event(), 0
    while not (folder / "enough").exists():
        lull = (folder / "lull").exists()
        for _ in range(1 if lull else 50):
            yield Event(value % KEYS, value // KEYS)
            value += 1
        if lull:
            pause.wait(LULL)


def first(t: Event, s: Any) -> Event:
    threading.Event().wait(ANSWER)
    assert s.seen == t.sequence, f"{t} came where {s.seen} was due"
    s.seen += 1
    return t


def ask(t: Event) -> Event:
    threading.Event().wait(ANSWER)
    return t


def topology_of(folder: Path) -> rel.Topology:
    topology = rel.Topology("levels")
    keyed = topology.source(rel.callable(lambda: events(folder), Event), name="events").key_by("key")
    once = keyed.map(first, name="first", state=Seen, schema=Event, lane="python")
    twice = once.map(ask, name="second", schema=Event, lane="python")
    twice.map(ask, name="third", schema=Event, lane="python").sink(rel.list(), name="out")
    return topology


def hosting(job: Job) -> list[PESample]:
    """The elements that wait for answers."""
    return [pe for pe in job.metrics().pes if any(operator.name == "first" for operator in pe.operators)]


def queues(pe: PESample) -> int:
    return sum(operator.model == "dynamic" for operator in pe.operators if operator.name in WAITING)


def test_three_levels_adapt_in_one_job_up_and_down_with_all_defaults(ray_cluster: str, tmp_path: Path) -> None:
    job = rel.submit(topology_of(tmp_path), address=ray_cluster)
    try:
        assert len(job.status.pes) == 1
        [alone] = hosting(job)
        assert (alone.threads, queues(alone)) == (1, 0)
        wait_until(job, lambda: 2 <= job.plan().region_of("first").replicas <= CPUS, LOOK, PATIENCE)
        wait_until(job, lambda: any(queues(pe) >= 2 for pe in hosting(job)), LOOK, PATIENCE)
        wait_until(job, lambda: any(pe.threads >= 2 for pe in hosting(job)), LOOK, PATIENCE)
        assert job.plan().region_of("first").replicas >= 2, "queues and threads came with the replicas, not instead"
        (tmp_path / "lull").touch()
        wait_until(job, lambda: job.plan().region_of("first").replicas == 1, LOOK, PATIENCE)
        wait_until(job, lambda: all(pe.threads == 1 for pe in hosting(job)), LOOK, PATIENCE)
        assert len(job.status.pes) == 1
        (tmp_path / "enough").touch()
        rows = job.wait(timeout=60)["out"]
        made = job.metrics().operator("events").tuples_out
    finally:
        (tmp_path / "enough").touch()
        job.close()
    following = [0] * KEYS
    for t in rows:
        assert t.sequence == following[t.key], f"{t} came where {following[t.key]} was due"
        following[t.key] += 1
    assert sum(following) == made
    told = "\n".join(str(one) for one in job.adaptations() if one.pe == "regions")
    assert "from 1 replica to " in told, "what was adapted is known behind the end"
