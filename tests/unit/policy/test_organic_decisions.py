"""Decisions of organic adaptation as values: they replay byte for byte, and whatever is measured gives a sound plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plant.cluster.job import SimulatedNode
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.random_jobs import random_job
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.papers.joker import PaperAdaptation
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.node_placement import Node
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import AdaptationDecision
from rayelastic.policy.regions.observation import (
    ObservationWindow,
    PipelineObservation,
    PlanObservation,
    RegionObservation,
)
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.reasons import Code
from tests.unit.policy.clusters import ONE, simulation


def test_a_journal_replays_byte_for_byte() -> None:
    lines: list[tuple[str, str]] = []

    class Recorder(OrganicAdaptation):
        def step(self, seen: PlanObservation) -> AdaptationDecision:
            decision = super().step(seen)
            lines.append((json.dumps(seen.as_dict()), json.dumps(decision.as_dict())))
            return decision

    def load(time: float) -> Mapping[str, float]:
        return {"r0": 150e3 if time < 100 else 700e3}

    nodes = [SimulatedNode(name, 4, zone="x") for name in "abc"]
    ClusterSimulation(ClusterPlant(ONE, nodes), Recorder(), load, period=5.0, noise=0.05, seed=7).run(60)
    again = OrganicAdaptation()
    for seen, decided in lines:
        decision = again.step(PlanObservation.from_dict(json.loads(seen)))
        assert json.dumps(decision.as_dict()) == decided
        assert AdaptationDecision.from_dict(json.loads(decided)) == decision
    assert sum(json.loads(decided)["verdict"] != "hold" for _, decided in lines) >= 2


def test_an_idle_job_stays_as_it_is() -> None:
    sim = simulation(ONE, 0.0)
    sim.run(20)
    assert sim.changes() == []
    assert sim.trace[-1].decision.reasons[-1] == Code.STABLE()


@st.composite
def observations(draw: st.DrawFn) -> PlanObservation:
    """Anything that could be measured, and some that couldn't."""
    plan = random_job(draw(st.integers(0, 50))).plan()
    for planned in plan.regions:
        if planned.region.kind is RegionKind.DATA_PARALLEL:
            plan = plan.with_replicas(planned.region.name, draw(st.integers(1, 4)))
    share, rate = st.floats(0, 1), st.one_of(st.just(0.0), st.floats(0, 1e7))
    regions = []
    for planned in plan.regions:
        pipelines = []
        for p in planned.pipelines:
            count = len(p.operators)
            cpu, costs = (tuple(draw(st.lists(share, min_size=n, max_size=n))) for n in (len(p.pes), count))
            pipelines.append(PipelineObservation(p.operators, cpu, costs, (draw(rate),) * count, draw(rate)))
        offered = draw(st.none() | rate)
        regions.append(
            RegionObservation(planned.region.name, draw(rate), tuple(pipelines), offered, draw(share), draw(share))
        )
    nodes = tuple(Node(f"n{i}", draw(st.floats(0.5, 8))) for i in range(draw(st.integers(0, 3))))
    plan = plan.with_nodes({"pe0": draw(st.sampled_from(["n0", "n9"]))})
    return PlanObservation(draw(st.floats(0, 1e6)), 5.0, plan, tuple(regions), nodes, draw(st.booleans()))


def _under(plan: ExecPlan, seen: PlanObservation) -> PlanObservation:
    """The same measurements under another plan."""
    regions = []
    for planned, region in zip(plan.regions, seen.regions, strict=True):
        cpus = [cpu for p in region.pipelines for cpu in p.cpu]
        costs = [cost for p in region.pipelines for cost in p.costs]
        pipelines = []
        for p in planned.pipelines:
            mine = tuple(costs[planned.region.operators.index(o)] for o in p.operators)
            cpu = tuple(cpus[i % len(cpus)] for i in range(len(p.pes)))
            taken = (region.throughput,) * len(p.operators)
            pipelines.append(PipelineObservation(p.operators, cpu, mine, taken, region.throughput))
        regions.append(replace(region, pipelines=tuple(pipelines)))
    return replace(seen, plan=plan, regions=tuple(regions))


@given(observations(), st.sampled_from([OrganicAdaptation, PaperAdaptation]))
def test_whatever_is_measured_gives_a_plan_that_can_be_applied(seen: PlanObservation, kind: Any) -> None:
    policy = kind()
    for i in range(8):
        decision = policy.step(seen)
        assert decision.reason
        change = plan_change(seen.plan, decision.plan)
        assert bool(change.regions or decision.plan.nodes != seen.plan.nodes) == decision.changes
        plan = seen.plan
        for action in decision.reverted:
            plan = action.revert(plan)
        for action in decision.actions:
            plan = action.apply(plan)
        assert plan.regions == decision.plan.regions
        for action in reversed(decision.actions):
            plan = action.revert(plan)
        assert decision.reverted or plan.regions == seen.plan.regions
        if i % 3:  # otherwise the old plan stays in force, as after a change that was rolled back
            seen = _under(decision.plan, seen)


def test_observations_are_averages_of_samples() -> None:
    """J18: the averages of a window are those of its samples, number by number."""
    plan = ONE.plan()
    window = ObservationWindow(samples=2, warm_up=1)

    def sample(time: float, rate: float, cpu: float) -> PlanObservation:
        regions = tuple(
            RegionObservation(
                p.region.name, rate, (PipelineObservation(p.region.operators, (cpu,), (cpu / 2,), (rate,), rate),)
            )
            for p in plan.regions
        )
        return PlanObservation(time, 1.0, plan, regions, (Node("a", 4.0),))

    assert window.add(sample(1, 1e9, 1.0)) is None  # warming up
    assert window.add(sample(2, 100.0, 0.25)) is None
    seen = window.add(sample(3, 200.0, 0.75))
    assert seen is not None
    assert (seen.time, seen.period, seen.of("r1").throughput, seen.of("r1").offered) == (3, 2.0, 150.0, None)
    assert seen.of("r1").pipelines[0] == PipelineObservation(("o0_0",), (0.5,), (0.25,), (150.0,), 150.0)
    changed = replace(sample(4, 1.0, 1.0), plan=replace(plan, epoch=1))
    assert window.add(changed) is None  # another plan warms up again
    with pytest.raises(ValueError, match="samples=0"):
        ObservationWindow(samples=0)
