"""Joker's algorithms within what a running job can carry out: a process for each replica, as many as there may be."""

from __future__ import annotations

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.papers.joker import PaperAdaptation
from rayelastic.plan.plan_change import plan_change
from rayelastic.policy.regions.actions import RebalanceRegion
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.runtime.rescale.performer import check_performable

LOAD = 900e3  # tuples/s; one replica carries 100,000


def grown(cpus: float, **can: object) -> ClusterSimulation:
    job = ClusterJob.chain("one", 1e-8, [5e-6, 5e-6])
    actuation = Actuation.of_running_jobs(["r1", "r2"], **can)  # type: ignore[arg-type]
    policy = PaperAdaptation(OrganicThresholds.of_running_jobs(0.8), actuation)
    plant = ClusterPlant(job, [SimulatedNode("a", cpus)], ClusterConstants(visit=0.0))
    simulation = ClusterSimulation(plant, policy, lambda _: {"r0": LOAD}, period=30.0)
    simulation.run(60)
    return simulation


def test_replicas_come_one_at_a_time_each_in_an_element_and_pipelines_stay() -> None:
    simulation = grown(64)
    replicas = [step.plan.region("r1").replicas for step in simulation.trace]
    assert max(replicas) > 4
    assert all(after - before <= 1 for before, after in zip(replicas, replicas[1:], strict=False))
    actions = [action for step in simulation.trace for action in step.decision.actions]
    assert actions
    assert all(isinstance(action, RebalanceRegion) for action in actions)
    for before, after in zip(simulation.trace, simulation.trace[1:], strict=False):
        if before.plan.regions != after.plan.regions:
            check_performable(plan_change(before.plan, after.plan))


def test_no_more_elements_than_there_may_be() -> None:
    assert len(grown(64, processes=3).trace[-1].plan.pes) == 3
    assert len(grown(4).trace[-1].plan.pes) == 4, "one for each CPU"
    assert grown(64, bounds={"r1": (1, 2), "r2": (1, 2)}).trace[-1].plan.region("r1").replicas <= 2
