"""Rules that change, and patterns, in replicas that come and go in processes of their own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel

pytestmark = pytest.mark.timeout(300)


class Event(NamedTuple):
    key: int
    at: int
    number: int


class Rule(NamedTuple):
    rule: int
    at: int
    number: int


def events(enough: Path | None, count: int = 0) -> Iterator[Event]:
    """Without end, until a file is there; or so many."""
    dice = random.Random(7)
    for number in itertools.count():
        if number == count > 0 or (number % 100 == 0 and enough is not None and enough.exists()):
            return
        yield Event(dice.randrange(50), number, number)


def topology_of(source: Any) -> rel.Topology:
    topology = rel.Topology("rules-on-ray")
    timed = topology.source("events", source).event_time("time", "at")
    now = timed.filter("tenth", lambda t: t.number % 1000 == 0)
    rules = now.map("rules", lambda t: Rule(t.key % 3, t.at, t.number)).key_by("rule")
    timed.key_by("key").cross_join("each", rules).sink("out", rel.count())
    fives = rel.Pattern("a", lambda t: t.number % 50 == 0).then("b", lambda t: t.number % 70 == 0, within=20_000)
    timed.key_by("key").match("found", fives, how="left").sink("found_rows", rel.list())
    return topology


def flows(job: rel.Job, tuples: int = 3000) -> None:
    before = job.metrics().operator("each").tuples_in
    while job.metrics().operator("each").tuples_in < before + tuples:
        assert not job.status.state.is_final, job.status


def test_rules_and_patterns_in_replicas_on_ray(ray_cluster: str, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    source = rel.callable(lambda: events(enough), Event)
    job = rel.submit(topology_of(source), rel.JobConfig(regions="manual"), address=ray_cluster)
    try:
        for operator, replicas in (("each", 2), ("found", 2)):
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
    assert result["out"] == expected["out"] > 0
    assert sorted(map(str, result["found_rows"])) == sorted(map(str, expected["found_rows"]))
