"""Replicas and processes that paid in an earlier run are tried first, and are forgotten if they don't pay."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import Verdict
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.policy.regions.tried.earlier import Earlier
from rayelastic.reasons import Code

MICRO = 1e-6
PERIOD = 2.0  # s
PROCESSES = 40
LOAD = 400e3  # tuples/s: far more than four times what one replica takes
DEAR = ClusterJob.chain("dear", 1e-7, [20 * MICRO])


def simulated(
    job: ClusterJob,
    earlier: Earlier | None,
    load: Callable[[float], float] = lambda _: LOAD,
    constants: ClusterConstants | None = None,
    **can: object,
) -> tuple[ClusterSimulation, OrganicAdaptation]:
    elastic = [p.region.name for p in job.plan().regions if p.region.kind.is_replicable]
    policy = OrganicAdaptation(
        thresholds=OrganicThresholds.of_running_jobs(0.8),
        actuation=Actuation.of_running_jobs(elastic, PROCESSES, **can),  # type: ignore[arg-type]
        earlier=earlier,
    )
    plant = ClusterPlant(job, [SimulatedNode(f"n{i}", 8) for i in range(4)], constants or ClusterConstants())
    simulation = ClusterSimulation(
        plant, policy, lambda time: {"r0": load(time)}, period=PERIOD, noise=0.02, seed=1, offered_known=False
    )
    return simulation, policy


def carried_from(simulation: ClusterSimulation, load: float = LOAD) -> int:
    """The first period in which all of the load is carried."""
    return next(i for i, step in enumerate(simulation.trace) if step.throughput >= 0.95 * load)


def test_what_one_run_learns_has_the_next_one_get_there_sooner() -> None:
    first, learning = simulated(DEAR, None)
    first.run(60)
    assert learning.learned.replicas == {"r1": first.trace[-1].plan.region("r1").replicas}
    second, _ = simulated(DEAR, learning.learned)
    second.run(60)
    assert carried_from(second) <= carried_from(first) / 2
    tries = [step.decision for step in second.trace if step.decision.verdict is Verdict.TRY]
    assert len(tries) == 1
    paid = learning.learned.replicas["r1"]
    assert tries[0].reasons[0] == Code.REPLICAS_EARLIER(replicas=paid, region="r1")
    assert second.trace[-1].plan.region("r1").replicas == first.trace[-1].plan.region("r1").replicas


def test_it_is_no_reason_to_grow() -> None:
    simulation, policy = simulated(DEAR, Earlier({"r1": 12}), load=lambda _: 20e3)
    simulation.run(40)
    assert not any(step.decision.changes for step in simulation.trace)
    assert policy.learned.replicas == {"r1": 12}


def test_what_does_not_pay_any_more_is_taken_back_and_forgotten() -> None:
    simulation, policy = simulated(DEAR, Earlier({"r1": 16}), constants=ClusterConstants(contention=5.0))
    simulation.run(60)
    assert Verdict.REVERT in [step.decision.verdict for step in simulation.trace]
    assert policy.learned.replicas.get("r1") != 16


@pytest.mark.parametrize("bounds", [{}, {"r1": (1, 3)}])
def test_bounds_of_today_count(bounds: dict[str, tuple[int, int]]) -> None:
    simulation, _ = simulated(DEAR, Earlier({"r1": 10_000, "gone": 5}), bounds=bounds)
    simulation.run(20)
    most = max(step.plan.region("r1").replicas for step in simulation.trace)
    assert most == (3 if bounds else PROCESSES)


def test_a_process_that_paid_comes_back_at_once() -> None:
    functions = tuple(SimulatedOperator(f"f{i}", 100 * MICRO, token=True) for i in range(2))
    job = ClusterJob.chain("two", 1e-7, SimulatedRegion(functions, kind=RegionKind.PIPELINE))
    first, learning = simulated(job, None, restarts=True)
    first.run(40)
    assert learning.learned == Earlier({}, ("f1",))
    second, _ = simulated(job, learning.learned, restarts=True)
    second.run(40)
    apart = [next(i for i, step in enumerate(run.trace) if len(step.plan.pes) == 2) for run in (first, second)]
    assert apart[1] < apart[0]
    tried = next(step.decision for step in second.trace if step.decision.changes)
    assert tried.reasons[0] == Code.PROCESS_EARLIER(operators=["f1"])
