"""In running jobs, replicas of a region never share a process: a router reaches one replica in each."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.node_placement import Node
from rayelastic.plan.plan_change import growth_steps, plan_change
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.model import RegionModel
from rayelastic.policy.regions.parting import joined, parted
from rayelastic.policy.regions.proposal import propose
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.runtime.rescale.performer import check_performable

PES = [f"pe{number}" for number in range(5)]
KINDS = [RegionKind.DATA_PARALLEL, RegionKind.STATELESS, RegionKind.PIPELINE]


@st.composite
def plans(draw: st.DrawFn) -> ExecPlan:
    """Return a plan of regions one behind the other, whose replicas and pipelines are anywhere, but apart."""
    regions = []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(KINDS))
        operators = tuple(f"o{number}{at}" for at in range(draw(st.integers(1, 3))))
        keys = ("key",) if kind is RegionKind.DATA_PARALLEL else ()
        token = tuple(draw(st.sets(st.sampled_from(operators))))
        region = Region(f"r{number}", kind, operators, keys, token_bound=token)
        replicas = draw(st.integers(1, 4)) if kind.is_replicable else 1
        apart = st.lists(st.sampled_from(PES), min_size=replicas, max_size=replicas, unique=True).map(tuple)
        cut = draw(st.integers(1, len(operators)))
        pipelines = [Pipeline(operators[:cut], draw(apart))]
        if operators[cut:]:
            pipelines.append(Pipeline(operators[cut:], draw(apart)))
        regions.append(RegionPlan(region, tuple(pipelines)))
    return ExecPlan("random", tuple(regions))


def sizing_of(plan: ExecPlan, time: float, processes: int | None) -> Sizing:
    models = {
        p.region.name: RegionModel(p.region, (time,) * len(p.region.operators), overhead=0.0) for p in plan.regions
    }
    elastic = [p.region.name for p in plan.regions if p.region.kind.is_replicable]
    return Sizing(
        plan, models, offered=2e5, carried=5e4, possible=2e5, need=dict.fromkeys(models, 2e5), missing=0.0,
        replica_cpus={}, replica_use={}, full_nodes={}, rejected={},
        thresholds=OrganicThresholds.of_running_jobs(0.8),
        can=Actuation.of_running_jobs(elastic, processes, restarts=True),
    )  # fmt: skip


def check(plan: ExecPlan) -> None:
    for planned in plan.regions:
        for pipeline in planned.pipelines:
            assert len(set(pipeline.pes)) == planned.replicas, f"{planned.region.name}: {pipeline.pes}"


@given(
    plans(),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.lists(st.floats(1.0, 8.0), max_size=3),
    st.one_of(st.none(), st.integers(1, 12)),
    st.sampled_from([1e-6, 5e-6, 2e-5]),
)
def test_no_plan_for_a_running_job_has_two_replicas_in_one_process(
    plan: ExecPlan, replicas: list[int], cpus: list[float], processes: int | None, time: float
) -> None:
    nodes = [Node(f"n{number}", room) for number, room in enumerate(cpus)]
    if nodes:
        plan = plan.with_nodes({pe: nodes[number % len(nodes)].name for number, pe in enumerate(plan.pes)})
    sizing = sizing_of(plan, time, processes)
    fewer = replace(sizing, carried=2e5)
    for moved in (parted(sizing, nodes), joined(fewer, nodes)):
        if moved is not None:
            check(moved.plan)
    wanted = {
        planned.region.name: (planned.cuts, count)
        for planned, count in zip(plan.regions, replicas, strict=False)
        if sizing.can.replicates(planned)
    }
    assume(wanted)
    proposed = propose(sizing, wanted, nodes).plan
    check(proposed)
    for step in growth_steps(plan, proposed):
        check(step)
        check_performable(plan_change(plan, step))
        plan = step
