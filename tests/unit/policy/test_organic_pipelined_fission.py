"""The model-based baseline (J35)."""

from __future__ import annotations

from bench.plant.cluster.job import ClusterJob, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.pipelined_fission import FissionModel, PipelinedFission
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.model import RegionModel

MICRO = 1e-6


def planned(job: ClusterJob, model: FissionModel, threads: int) -> ExecPlan:
    plan = job.plan()
    models = {}
    for p, region in zip(plan.regions, job.regions, strict=True):
        gives, times = 1.0, []
        for operator in region.operators:
            times.append(gives * operator.cost)
            gives *= operator.selectivity
        models[p.region.name] = RegionModel(p.region, tuple(times), 0.0, gives)
    return PipelinedFission(model, threads).plan(plan, models, {"r0": 1.0})


def test_it_splits_when_replicas_are_dear_and_replicates_when_threads_are() -> None:
    job = ClusterJob.chain("two", 0.01 * MICRO, [5 * MICRO, 5 * MICRO])
    dear_replicas = planned(job, FissionModel(0.1 * MICRO, replication=0.5), 3).region("r1")
    assert (dear_replicas.cuts, dear_replicas.replicas) == (("o0_1",), 1)
    dear_threads = planned(job, FissionModel(3 * MICRO, replication=0.01), 3).region("r1")
    assert (dear_threads.cuts, dear_threads.replicas) == ((), 2)


def test_it_uses_no_more_threads_than_it_may() -> None:
    job = ClusterJob.chain("two", 0.01 * MICRO, [10 * MICRO], [30 * MICRO])
    plan = planned(job, FissionModel(0.1 * MICRO, 0.02), 9)
    assert plan.threads == 9
    assert [p.replicas for p in plan.regions] == [1, 2, 6]


def test_it_stops_at_what_can_not_be_replicated() -> None:
    stateful = SimulatedRegion((SimulatedOperator("s", 10 * MICRO),), RegionKind.PIPELINE)
    plan = planned(ClusterJob.chain("s", 0.01 * MICRO, [2 * MICRO], stateful), FissionModel(0.1 * MICRO, 0.02), 20)
    assert plan.threads == 3


def test_selectivity_decides_where_the_bottleneck_is() -> None:
    front = SimulatedRegion((SimulatedOperator("front", 10 * MICRO, 0.1),))
    plan = planned(ClusterJob.chain("s", 0.01 * MICRO, front, [20 * MICRO]), FissionModel(0.1 * MICRO, 0.02), 8)
    assert plan.region("r1").replicas >= 5 > plan.region("r2").replicas
