"""Functions in front of a union and behind it, in several replicas, where there is an event time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import rayelastic as rel
from tests.component.operators.test_splits import PATIENCE, WANTED, WINDOW, logs, parse

pytestmark = pytest.mark.edges
__all__ = ["logs"]


@pytest.mark.parametrize("before", [True, False], ids=["in front of the union", "behind the union"])
def test_functions_beside_a_union_keep_their_replicas(logs: list[Path], before: bool) -> None:
    """An event time makes an operator of the union: functions in front take turns as without it, and lose no split."""

    def regions(timed: bool) -> tuple[rel.Topology, set[tuple[str, str]]]:
        topology = rel.Topology("replicas")
        sources = [topology.source(rel.text(path), name=f"s{n}") for n, path in enumerate(logs)]
        if before:
            sources = [one.map(parse, name=f"p{n}", schema={"at": int}) for n, one in enumerate(sources)]
        first, *others = sources
        united = first.union(*others)
        united = united if before else united.map(parse, name="p", schema={"at": int})
        if timed:
            united.event_time("at", name="e").window(seconds=WINDOW).aggregate(name="n", n=rel.count()).sink(
                rel.list(), name="out"
            )
        else:
            united.sink(rel.list(), name="out")
        plan = topology.plan(rel.JobConfig(regions="manual"))
        return topology, {
            (name, region.region.kind.value)
            for region in plan.regions
            for name in region.region.operators
            if name.startswith("p") and not name.endswith(".union")
        }

    assert regions(timed=True)[1] == regions(timed=False)[1]
    topology, found = regions(timed=True)
    replicas = {name: 2 for name, kind in found if kind == "stateless"}
    job = rel.start(topology, rel.JobConfig(regions="manual", replicas=replicas, elasticity="off"))
    try:
        assert all(job.plan().region_of(name).replicas == 2 for name in replicas)
        counted: Counter[int] = Counter()
        for t in job.wait(PATIENCE)["out"]:
            counted[t.start] += t.n
    finally:
        job.close()
    assert counted == WANTED
    assert {kind for _, kind in found} == {"stateless"}
