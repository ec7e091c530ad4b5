"""Rules that change, and patterns, in replicas that come and go in processes of their own."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.runtime.values.status import State
from tests.waiting import wait_until, wait_until_received

pytestmark = pytest.mark.timeout(300)

PAUSE = 0.005  # seconds after 100 events: other processes need the CPU, too


class Event(NamedTuple):
    key: int
    at: int
    number: int


class Rule(NamedTuple):
    rule: int
    at: int
    number: int


def events(enough: Path | None, count: int = 0) -> Iterator[Event]:
    """Without end, until a file is there, with a pause after each 100; or so many."""
    dice, nobody = random.Random(7), threading.Event()
    for number in itertools.count():
        if number == count > 0 or (number % 100 == 0 and enough is not None and enough.exists()):
            return
        if number % 100 == 0 and enough is not None:
            nobody.wait(PAUSE)
        yield Event(dice.randrange(50), number, number)


def topology_of(source: Any, name: str = "rules-on-ray") -> rel.Topology:
    topology = rel.Topology(name)
    made = topology.source(source, name="events")
    plain = made.filter(lambda t: t.number % 100 == 0, name="hundredth").map(
        lambda t: Rule(0, 0, t.number), name="plain"
    )
    joined = made.cross_join(plain, name="all", how="left", by="arrival")
    joined.sink(rel.count(), name="all_count")
    joined.filter(lambda t: t.rule is None, name="ruleless").sink(rel.list(), name="ruleless_rows")
    known = topology.source(rel.rows([Rule(7, 0, 1)]), name="known")  # ends at once
    fixed = made.cross_join(known, name="fixed", how="left", by="arrival")
    fixed.sink(rel.count(), name="fixed_count")
    fixed.filter(lambda t: t.rule is None, name="unknown").sink(rel.list(), name="unknown_rows")
    timed = made.event_time("at", name="time")
    timed.sink(rel.count(), name="count")
    now = timed.filter(lambda t: t.number % 1000 == 0, name="tenth")
    rules = now.map(lambda t: Rule(t.key % 3, t.at, t.number), name="rules").key_by("rule")
    timed.key_by("key").cross_join(rules, name="each").sink(rel.count(), name="out")
    fives = rel.Pattern("a", lambda t: t.number % 50 == 0).then("b", lambda t: t.number % 70 == 0, within=20_000)
    timed.key_by("key").match(fives, name="found", how="left").sink(rel.list(), name="found_rows")
    return topology


def check_turns(result: rel.JobResult, count: int) -> None:
    """Replicas took turns at all tuples, and no replica was without the rule once it was known."""
    for counted, without in (("all_count", "ruleless_rows"), ("fixed_count", "unknown_rows")):
        assert result[counted] == count
        ruleless = [t.number for t in result[without]]
        assert ruleless == list(range(len(ruleless)))


def flows(job: rel.Job, tuples: int = 3000) -> None:
    before = job.metrics().operator("each").tuples_in
    wait_until_received(job, "each", before + tuples)


def test_rules_and_patterns_in_replicas_on_ray(ray_cluster: str, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    source = rel.callable(lambda: events(enough), Event)
    job = rel.submit(topology_of(source), rel.JobConfig(regions="manual"), address=ray_cluster)
    try:
        for operator, replicas in (("each", 2), ("found", 2), ("all", 2), ("fixed", 2)):
            flows(job)
            region = job.plan().region_of(operator).region.name
            assert job.rescale(region, replicas).region(region).replicas == replicas
        flows(job)
        enough.touch()
        result = job.wait(timeout=120)
        count = job.metrics().operator("events").tuples_out
    finally:
        enough.touch()
        job.close()
    expected = rel.run(topology_of(rel.callable(lambda: events(None, count), Event)))
    check_turns(result, count)
    assert result["out"] == expected["out"] > 0
    assert sorted(map(str, result["found_rows"])) == sorted(map(str, expected["found_rows"]))


def test_rules_and_patterns_come_back_when_their_process_is_killed(ray_cluster: str, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    source = rel.callable(lambda: events(enough), Event)
    pins = {"events": 0, "each": 1, "found": 1, "all": 1, "fixed": 1}
    config = rel.JobConfig(pes=pins, checkpoint=rel.Checkpoint(every=0.5, restarts=20))
    job = rel.submit(topology_of(source, "rules-lost"), config, address=ray_cluster)
    try:
        taken = job.status.checkpoints.taken
        while job.status.checkpoints.taken == taken:
            flows(job, 100)
        os.kill(next(one.pid for one in job.status.pes if one.pe == job.plan().pe_of("each")), signal.SIGKILL)
        wait_until(job, lambda: job.status.checkpoints.restarts != 0 and job.status.state is State.RUNNING)
        flows(job)
        enough.touch()
        result = job.wait(timeout=120)
        count = result["count"]
    finally:
        enough.touch()
        job.close()
    expected = rel.run(topology_of(rel.callable(lambda: events(None, count), Event)))
    check_turns(result, count)
    assert result["out"] == expected["out"] > 0
    assert sorted(map(str, result["found_rows"])) == sorted(map(str, expected["found_rows"]))
