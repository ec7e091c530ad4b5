"""The level of regions in a running job: a loop that adapts its plan, if the job asked for that."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.errors import PELostError
from rayelastic.graph.spec.operator_spec import OperatorKind
from rayelastic.plan.config import Regions
from rayelastic.plan.hash_ring import MAX_REPLICAS
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.runtime.job.job_cluster import CALL_TIMEOUT
from rayelastic.runtime.loops.region_loop import RegionLoop
from rayelastic.runtime.operators.sources import seeks
from rayelastic.runtime.values.region_adaptation import REGIONS, RegionJournal

if TYPE_CHECKING:
    from collections.abc import Callable

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.host import PEHost
    from rayelastic.runtime.job.job_cluster import JobCluster
    from rayelastic.runtime.job.life import JobLife
    from rayelastic.runtime.job.plan_in_force import PlanInForce
    from rayelastic.runtime.job.rescaling import Rescaling
    from rayelastic.runtime.job.telemetry import JobTelemetry
    from rayelastic.runtime.values.specs import JobSpec

__all__ = ["region_level"]


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
    """Returns the loop over the parts of a coordinator; None if nothing is to be adapted.

    Args:
        job: what runs.
        cluster: its elements.
        host: says which nodes there are.
        life: of the job.
        plan: in force.
        telemetry: counts.
        rescaling: keeps processes ready.
        change: carries out a plan.
        saves: whether the job takes checkpoints.
    """
    config = job.config
    apart = saves and goes_apart(job)
    if config.regions not in (Regions.ELASTIC, Regions.ADVISE) or not (cluster.elastic or apart):
        return None

    def reset_levels() -> None:
        for handle in cluster.handles.values():
            with suppress(PELostError, TimeoutError):  # its watcher reports a loss
                handle.within(CALL_TIMEOUT).reset_levels()

    path = Path(config.journal.format(pe=REGIONS)) if config.journal is not None else None
    return RegionLoop(
        OrganicAdaptation(
            thresholds=OrganicThresholds.of_running_jobs(config.region_target, config.max_replicas or MAX_REPLICAS),
            actuation=Actuation.of_running_jobs(cluster.elastic, config.max_processes, restarts=apart),
        ),
        sample=lambda: {sample.pe: sample for sample in telemetry.metrics().pes},
        plan=lambda: plan.placed(life.elements()),
        change=change,
        nodes=host.nodes,
        period=config.region_period,
        reset=reset_levels,
        request=host.request,
        prepare=rescaling.prepare,
        journal=RegionJournal(path),
        advises=config.regions is Regions.ADVISE,
    )


def goes_apart(job: JobSpec) -> bool:
    """Tells whether operators of a job may change their processes by themselves, which has its sources begin again.

    Only where all sources go on where they were without giving everything before that again, where nobody has said
    which operators go where, and where there is Python code that a second process would help.
    """
    config, operators = job.config, job.operators.values()
    said = config.pes > 1 or bool(config.pins)
    sources = [spec for spec in operators if spec.kind is OperatorKind.SOURCE]
    python = [spec for spec in operators if spec.lane.needs_python and spec.kind is not OperatorKind.SOURCE]
    return not said and bool(python) and all(seeks(spec) for spec in sources)
