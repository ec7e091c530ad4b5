"""Declaring and planning is quick: 2,305 operators, as in the largest graph of the papers, in less than a second."""

from __future__ import annotations

import time

from rayelastic.graph import Topology, aggregates, sources
from rayelastic.plan.config import JobConfig
from rayelastic.plan.explain import explain
from rayelastic.plan.fusion import plan_topology
from tests.unit.graph.fakes import FakeCompiler

OPERATORS = 2305
BRANCHES = 16


def declared() -> Topology:
    topology = Topology("large", compiler=FakeCompiler())
    start = topology.source("numbers", sources.sequence(10))
    per_branch, left = divmod(OPERATORS - 1 - BRANCHES, BRANCHES)
    for branch in range(BRANCHES):
        stream = start
        for i in range(per_branch + (branch < left)):
            name = f"b{branch}_{i}"
            if i % 10 == 9:
                stream = stream.key_by("value").aggregate(name, "update", count=aggregates.count())
            else:
                stream = stream.map(name, lambda t: t)
        stream.sink(f"out{branch}", aggregates.count())
    return topology


def test_2305_operators() -> None:
    began = time.process_time()
    topology = declared()
    topology.validate()
    built = time.process_time()
    plan = plan_topology(topology, JobConfig(pes=8))
    explain(topology, plan)
    ended = time.process_time()
    assert len(topology.operators) == OPERATORS
    assert ended - began < 1.0, f"declared in {built - began:.2f} s, planned in {ended - built:.2f} s"
