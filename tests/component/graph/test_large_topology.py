"""What declaring and planning does for an operator doesn't grow with the graph, up to the largest of the papers.

Work is counted in calls, which are the same on every machine; 500 for each of 2,305 operators is about half a second.
"""

from __future__ import annotations

import sys
from types import FrameType

from rayelastic.connectors import registry as connectors
from rayelastic.fluent.topology import Topology
from rayelastic.graph.operators import aggregates
from rayelastic.plan.config import JobConfig
from rayelastic.plan.explain import explain
from rayelastic.plan.fusion import plan_topology
from tests.unit.graph.fakes import FakeCompiler

OPERATORS = 2305
BRANCHES = 16
MOST_CALLS = 600  # for an operator
MOST_GROWTH = 1.05  # of the calls for an operator, from a graph an eighth as large


def declared(operators: int) -> Topology:
    topology = Topology("large", compiler=FakeCompiler())
    start = topology.source(connectors.sequence(10), name="numbers")
    per_branch, left = divmod(operators - 1 - BRANCHES, BRANCHES)
    for branch in range(BRANCHES):
        stream = start
        for i in range(per_branch + (branch < left)):
            name = f"b{branch}_{i}"
            if i % 10 == 9:
                stream = stream.key_by("value").aggregate(name=name, emit="update", count=aggregates.count())
            else:
                stream = stream.map(lambda t: t, name=name)
        stream.sink(aggregates.count(), name=f"out{branch}")
    return topology


def calls_for_an_operator(operators: int) -> float:
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        topology = declared(operators)
        topology.validate()
        explain(topology, plan_topology(topology, JobConfig(pes=8)))
    finally:
        sys.setprofile(before)
    assert len(topology.operators) == operators
    return calls / operators


def test_work_for_an_operator_does_not_grow_with_the_graph() -> None:
    calls_for_an_operator(BRANCHES + 1)  # imports, caches
    small, large = calls_for_an_operator(OPERATORS // 8), calls_for_an_operator(OPERATORS)
    assert large < MOST_CALLS
    assert large < MOST_GROWTH * small
