"""A policy of regions beside a simulated cluster: a job of one operator, a large node, and what is decided there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation, ClusterStep
from rayelastic.policy.regions.actions import Verdict
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds

MICRO = 1e-6
ONE = ClusterJob.chain("one", 0.05 * MICRO, [10 * MICRO])  # 100,000 tuples/s with one replica
BIG = [SimulatedNode("big", 64)]


def simulation(
    job: ClusterJob,
    load: float | Callable[[float], float],
    nodes: list[SimulatedNode] = BIG,
    constants: ClusterConstants | None = None,
    thresholds: OrganicThresholds | None = None,
    **settings: Any,
) -> ClusterSimulation:
    rate = load if callable(load) else lambda time: load
    plant = ClusterPlant(job, nodes, constants or ClusterConstants(visit=0.0))
    policy = OrganicAdaptation(thresholds=thresholds)
    return ClusterSimulation(plant, policy, lambda time: {"r0": rate(time)}, period=5.0, **settings)


def verdicts(trace: list[ClusterStep]) -> list[str]:
    return [step.decision.verdict.value for step in trace if step.decision.verdict is not Verdict.HOLD]
