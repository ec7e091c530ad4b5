"""A step of the load asks for few replicas too many; a slow node gets fewer keys, and the rest grows on."""

from __future__ import annotations

import pytest

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds

COST = 10e-6  # s
PERIOD = 5.0  # s
STEP = 300.0  # s


def played(nodes: list[SimulatedNode], low: float, high: float, seed: int) -> ClusterSimulation:
    job = ClusterJob.chain("steps", 1e-7, [COST])
    policy = OrganicAdaptation(
        thresholds=OrganicThresholds.of_running_jobs(0.8), actuation=Actuation.of_running_jobs(["r1"], 128)
    )
    return ClusterSimulation(
        ClusterPlant(job, nodes, ClusterConstants()),
        policy,
        lambda time: {"r0": low if time < STEP else high},
        period=PERIOD,
        noise=0.05,
        seed=seed,
        offered_known=False,
    )


@pytest.mark.parametrize("seed", range(16))
def test_a_step_of_ten_times_the_load_takes_two_changes_and_few_replicas_too_many(seed: int) -> None:
    """560,000 tuples/s need seven replicas at 80 % of their time."""
    simulation = played([SimulatedNode(f"n{i}", 8) for i in range(16)], 56e3, 560e3, seed)
    simulation.run(180)
    assert len(simulation.changes()) <= 2
    assert max(step.plan.region("r1").replicas for step in simulation.trace) <= 1.3 * 7
    assert simulation.trace[-1].throughput == pytest.approx(560e3)


@pytest.mark.parametrize("speeds", [(1.0, 0.5), (1.0, 0.25), (1.0, 1.0, 0.25), (1.0, 0.25, 1.0)])
@pytest.mark.parametrize("seed", range(10))
def test_a_slow_node_is_no_dead_end(speeds: tuple[float, ...], seed: int) -> None:
    """The load is 70 % of what the CPUs can carry."""
    load = 0.7 * 4 * sum(speeds) / COST
    simulation = played([SimulatedNode(f"n{i}", 4, speed) for i, speed in enumerate(speeds)], load, load, seed)
    simulation.run(180)
    late = [step.throughput for step in simulation.trace[-40:]]
    assert sum(late) / len(late) >= 0.95 * load
