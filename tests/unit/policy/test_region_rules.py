"""Single rules of regions' adaptation: who moves at once, what counts as skew, how few replicas there may be."""

from __future__ import annotations

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, Placement, RegionPlan
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.learning import Known
from rayelastic.policy.regions.observation import PipelineObservation, PlanObservation, RegionObservation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds

MICRO = 1e-6
NODES = [SimulatedNode(f"n{i}", 4.0) for i in range(2)]


def keyed(name: str, *, token: bool) -> SimulatedRegion:
    return SimulatedRegion((SimulatedOperator(name, 100 * MICRO, token=token),), kind=RegionKind.DATA_PARALLEL)


def test_all_that_is_too_much_for_one_token_moves_at_once() -> None:
    """Three regions need half of a token each: two leave, and not one after the other."""
    job = ClusterJob.chain("three", 1e-7, *(keyed(f"f{i}", token=True) for i in range(3)))
    simulation = ClusterSimulation(
        ClusterPlant(job, NODES, ClusterConstants()), OrganicAdaptation(), lambda _: {"r0": 5e3}, period=5.0, seed=1
    )
    simulation.run(20)
    first = next(step.decision for step in simulation.trace if step.decision.changes)
    assert len({first.plan.region(name).pipelines[0].pes for name in ("r1", "r2", "r3")}) == 3


def test_a_region_keeps_the_fewest_replicas_that_were_asked_for() -> None:
    job = ClusterJob.chain("falls", 1e-7, keyed("f", token=False))
    policy = OrganicAdaptation(
        thresholds=OrganicThresholds.of_running_jobs(0.8),
        actuation=Actuation.of_running_jobs(["r1"], 8, bounds={"r1": (2, 6)}),
    )
    simulation = ClusterSimulation(
        ClusterPlant(job, NODES, ClusterConstants()),
        policy,
        lambda time: {"r0": 40e3 if time < 300 else 1e3},
        period=5.0,
        seed=1,
    )
    simulation.run(160)
    replicas = [step.plan.region("r1").replicas for step in simulation.trace]
    assert max(replicas) > 3
    assert replicas[-1] == 2


def test_young_averages_are_skewed_only_if_much() -> None:
    """8 % above the mean is more than 5 %, but for the first periods, in which noise does that."""
    region = Region("r0", RegionKind.DATA_PARALLEL, ("f",), ("k",))
    plan = ExecPlan("skew", (RegionPlan(region, (Pipeline(("f",), ("pe0", "pe1")),)),))
    known, skews = Known(OrganicThresholds()), []
    pipeline = PipelineObservation(("f",), (0.54, 0.46), (1.0,), (540.0, 460.0), 1e3)
    for period in range(5):
        known.learn(PlanObservation(float(period), 1.0, plan, (RegionObservation("r0", 1e3, (pipeline,)),)))
        skews.append(round(known.models()["r0"].skew, 6))
    assert skews == [1.0, 1.0, 1.0, 1.08, 1.08]


def test_a_plan_of_which_nothing_is_said_is_close_together() -> None:
    assert ExecPlan("empty", ()).placement == Placement(cpus=0.25, spread=False)
