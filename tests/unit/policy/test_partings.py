"""Python operators without replicas get processes of their own where one token holds them back, and give them back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code
from tests.reasons import codes

MICRO = 1e-6
PERIOD = 5.0  # s


def chain(*costs: float) -> SimulatedRegion:
    """A region without keys, of Python functions."""
    operators = tuple(SimulatedOperator(f"f{i}", cost, token=True) for i, cost in enumerate(costs))
    return SimulatedRegion(operators, kind=RegionKind.PIPELINE)


def simulated(
    job: ClusterJob,
    load: Callable[[float], float],
    *,
    restarts: bool = True,
    cpus: float = 4.0,
    going_on: float = 0.0,
) -> ClusterSimulation:
    policy = OrganicAdaptation(
        thresholds=OrganicThresholds.of_running_jobs(0.8),
        actuation=Actuation.of_running_jobs((), 8, restarts=restarts, going_on=going_on),
    )
    plant = ClusterPlant(job, [SimulatedNode(f"n{i}", cpus) for i in range(2)], ClusterConstants())
    return ClusterSimulation(
        plant, policy, lambda time: {"r0": load(time)}, period=PERIOD, noise=0.02, seed=1, offered_known=False
    )  # fmt: skip


def test_two_python_functions_in_a_row_get_a_process_each() -> None:
    simulation = simulated(ClusterJob.chain("two", 1e-7, chain(100 * MICRO, 100 * MICRO)), lambda _: 20e3)
    simulation.run(60)
    first, last = simulation.trace[0], simulation.trace[-1]
    assert len(last.plan.pes) == 2
    assert last.plan.region("r1").cuts == ("f1",)
    assert last.throughput >= 1.6 * first.throughput
    assert not any(step.decision.changes for step in simulation.trace[20:])
    told = next(step.decision for step in simulation.trace if step.decision.changes)
    assert Code.GIL_FULL(operators=["f1"]) in told.reasons


def test_sources_that_would_read_for_longer_than_it_pays_keep_functions_together() -> None:
    job = ClusterJob.chain("two", 1e-7, chain(100 * MICRO, 100 * MICRO))
    for seconds, processes in ((10.0, 2), (100.0, 1)):
        simulation = simulated(job, lambda _: 20e3, going_on=seconds)
        simulation.run(60)
        assert len(simulation.trace[-1].plan.pes) == processes
    assert any(Code.NOT_WORTH_IT in codes(step.decision.reasons) for step in simulation.trace)


def test_without_leave_to_restart_nothing_goes_apart() -> None:
    job = ClusterJob.chain("two", 1e-7, chain(100 * MICRO, 100 * MICRO))
    simulation = simulated(job, lambda _: 20e3, restarts=False)
    simulation.run(60)
    assert len(simulation.trace[-1].plan.pes) == 1


def test_more_than_two_go_apart_one_after_the_other() -> None:
    simulation = simulated(ClusterJob.chain("four", 1e-7, chain(*[100 * MICRO] * 4)), lambda _: 40e3)
    simulation.run(120)
    assert len(simulation.trace[-1].plan.pes) == 4
    assert simulation.trace[-1].throughput >= 3.2 * simulation.trace[0].throughput


def test_one_cpu_gains_nothing_and_is_left_alone() -> None:
    job = ClusterJob.chain("two", 1e-7, chain(100 * MICRO, 100 * MICRO))
    plant = ClusterPlant(job, [SimulatedNode("n0", 1.0)], ClusterConstants())
    policy = OrganicAdaptation(
        thresholds=OrganicThresholds.of_running_jobs(0.8), actuation=Actuation.of_running_jobs((), restarts=True)
    )
    simulation = ClusterSimulation(
        plant, policy, lambda _: {"r0": 20e3}, period=PERIOD, noise=0.02, seed=1, offered_known=False
    )
    simulation.run(120)
    assert len(simulation.trace[-1].plan.pes) == 1
    assert not any(step.decision.changes for step in simulation.trace[60:])


@pytest.mark.parametrize("regions", [1, 2])
def test_they_come_together_again_when_the_load_is_gone(regions: int) -> None:
    parts = [chain(100 * MICRO, 100 * MICRO)]
    if regions == 2:
        second = (SimulatedOperator("g", 100 * MICRO, token=True),)
        parts = [chain(100 * MICRO), SimulatedRegion(second, kind=RegionKind.PIPELINE, inputs=(1,))]
    simulation = simulated(ClusterJob.chain("falls", 1e-7, *parts), lambda time: 9e3 if time < 200 else 1e3)
    simulation.run(120)
    assert max(len(step.plan.pes) for step in simulation.trace) == 2
    assert len(simulation.trace[-1].plan.pes) == 1
    assert simulation.trace[-1].throughput >= 0.95e3
