"""The level of regions in a running job: a loop that adapts its plan, if the configuration asks for it."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.connectors.description import restart_seconds
from rayelastic.graph.operators.aggregation import can_have_two_steps
from rayelastic.graph.spec.operator_spec import StateKind
from rayelastic.plan.config import Regions
from rayelastic.plan.hash_ring import MAX_REPLICAS, PARTITIONS
from rayelastic.plan.replica_bounds import bounds_of_regions
from rayelastic.plan.settings.replicas import bounds_at, span_of
from rayelastic.plan.settings.schedule import Schedule
from rayelastic.policy.published import published
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.goal.latency import LatencyAim
from rayelastic.policy.regions.observation import ObservationWindow
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code, Reason
from rayelastic.runtime.config import state_directory
from rayelastic.runtime.loops.earlier_plans import EarlierPlans, key_of_job
from rayelastic.runtime.loops.region_loop import EARLY, RegionLoop
from rayelastic.runtime.values.region_adaptation import REGIONS, RegionJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.settings.bounds import Bounds
    from rayelastic.plan.settings.replicas import ReplicaBounds
    from rayelastic.runtime.element.host import PEHost
    from rayelastic.runtime.job.job_cluster import JobCluster
    from rayelastic.runtime.job.life import JobLife
    from rayelastic.runtime.job.plan_in_force import PlanInForce
    from rayelastic.runtime.job.rescaling import Rescaling
    from rayelastic.runtime.job.telemetry import JobTelemetry
    from rayelastic.runtime.values.specs import JobSpec

LINK_TUPLE = 20e-9  # s of CPU at each end of a link for a tuple of any size
LINK_BYTE, SECURE_BYTE = 0.3e-9, 0.6e-9  # and for each byte: the more expensive end (docs/decisions/encryption.md)
PAPER_SAMPLES = 3  # periods in one observation of the paper's algorithms, because a burst may follow a change


def region_level(
    job: JobSpec,
    cluster: JobCluster,
    host: PEHost,
    life: JobLife,
    plan: PlanInForce,
    telemetry: JobTelemetry,
    rescaling: Rescaling,
    change: Callable[[ExecPlan], ExecPlan],
    *,
    saves: bool,
) -> RegionLoop | None:
    """Return the loop over the parts of a coordinator; None if nothing is to be adapted.

    Args:
        job: The job.
        cluster: Its elements.
        host: Knows the nodes.
        life: The job's life.
        plan: The plan in force.
        telemetry: Its counters.
        rescaling: Keeps spare processes.
        change: Changes the plan.
        saves: Whether the job takes checkpoints.
    """
    config, elasticity = job.config, job.config.elasticity
    paper = config.regions is Regions.PAPER
    together = None if paper else why_together(job, saves=saves)
    apart = together is None and not paper
    if config.regions in (None, Regions.FIXED, Regions.MANUAL) or (paper and not cluster.elastic):
        return None

    replicas = bounds_of_regions(job.plan, config.replicas)
    path = Path(elasticity.journal.format(pe=REGIONS)) if elasticity.journal is not None else None
    plans = EarlierPlans(state_directory() / "plans", key_of_job(job)) if elasticity.remember and not paper else None
    most = elasticity.max_replicas or (MAX_REPLICAS if paper else PARTITIONS)
    thresholds = OrganicThresholds.of_running_jobs(elasticity.region_target, most)
    if elasticity.cool_down is not None:
        thresholds = replace(thresholds, shrink_periods=math.ceil(elasticity.cool_down / elasticity.region_period))
    actuation = Actuation.of_running_jobs(
        cluster.elastic,
        elasticity.max_processes,
        restarts=apart,
        bounds={name: span_of(bounds) for name, bounds in replicas.items()},
        together=together,
        going_on=max(map(restart_seconds, sources_of(job)), default=0.0) if apart else 0.0,
        in_steps=aggregates_for_two_steps(job),
        links=link_seconds(job),
    )
    ours = OrganicAdaptation(
        thresholds=thresholds,
        actuation=actuation,
        latency=LatencyAim(config.goal.p99, elasticity.region_target) if config.goal is not None else None,
        earlier=plans.paid() if plans is not None else None,
    )
    window = ObservationWindow(samples=PAPER_SAMPLES, warm_up=1)
    policy = published("joker").PaperAdaptation(thresholds, actuation, window) if paper else ours
    return RegionLoop(
        policy,
        sample=lambda: {sample.pe: sample for sample in telemetry.metrics().pes},
        plan=lambda: plan.placed(life.elements()),
        change=change,
        nodes=host.nodes,
        period=elasticity.region_period,
        early=1 if paper else EARLY,
        request=host.request,
        prepare=rescaling.prepare,
        journal=RegionJournal(path),
        advises=config.regions is Regions.ADVISE,
        learned=(lambda: plans.keep(ours.learned)) if plans is not None else lambda: None,
        age=lambda: life.seconds,
        bounds=(lambda: bounds_now(replicas)) if any(isinstance(one, Schedule) for one in replicas.values()) else None,
    )


def bounds_now(replicas: Mapping[str, ReplicaBounds]) -> dict[str, Bounds]:
    """Return the fewest and the most replicas of each region at this time of the day."""
    now = datetime.now(UTC)
    return {name: bounds_at(bounds, now) for name, bounds in replicas.items()}


def why_together(job: JobSpec, *, saves: bool) -> Reason | None:
    """Return why operators of a job may not move between processes automatically; None if they may.

    Such a move restarts the sources. So all sources have to rewind without emitting everything again. The user mustn't
    have placed operators.

    Args:
        job: The job.
        saves: Whether it takes checkpoints.
    """
    config, operators = job.config, job.operators.values()
    if config.pes != 1:
        return Code.PLACED_BY_CONFIG()
    if alone := next((spec for spec in operators if spec.remembers), None):
        return Code.REMEMBERS(operator=alone.name, names=list(alone.remembers))
    again = [source.name for source in sources_of(job) if math.isinf(restart_seconds(source))]
    if again:
        return Code.CANT_SEEK(sources=again)
    return None if saves else Code.NO_CHECKPOINTS()


def link_seconds(job: JobSpec) -> dict[str, float]:
    """Estimate what links between hosts cost: {operator: s of CPU at each end for a tuple that it emits}."""
    each = SECURE_BYTE if job.config.network.secure else LINK_BYTE
    return {
        spec.name: LINK_TUPLE + each * spec.output_schema.record_size
        for spec in job.operators.values()
        if spec.output_schema is not None
    }


def sources_of(job: JobSpec) -> list[OperatorSpec]:
    """Return the sources of a job."""
    return [spec for spec in job.operators.values() if spec.is_source]


def aggregates_for_two_steps(job: JobSpec) -> dict[str, str]:
    """Find the aggregates that could be declared in two steps and are the only keyed operators of their regions.

    Args:
        job: The job.

    Returns:
        {region: the aggregate}.
    """
    aggregates = {}
    for planned in job.plan.regions:
        members = [job.operators[name] for name in planned.region.operators]
        keyed = [spec for spec in members if spec.state_kind is StateKind.PARTITIONED]
        if len(keyed) == 1 and can_have_two_steps(keyed[0], job.operators):
            aggregates[planned.region.name] = keyed[0].name
    return aggregates
