"""The level of regions in a running job: a loop that adapts its plan, if the job asked for that."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.errors import PELostError
from rayelastic.plan.config import Regions
from rayelastic.plan.hash_ring import MAX_REPLICAS
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.runtime.job.job_cluster import CALL_TIMEOUT
from rayelastic.runtime.loops.region_loop import RegionLoop
from rayelastic.runtime.values.region_adaptation import REGIONS, RegionJournal

if TYPE_CHECKING:
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
) -> RegionLoop | None:
    """Returns the loop over the parts of a coordinator; None if nothing is to be adapted."""
    config = job.config
    if config.regions is not Regions.ELASTIC or not cluster.elastic:
        return None

    def reset_levels() -> None:
        for handle in cluster.handles.values():
            with suppress(PELostError, TimeoutError):  # its watcher reports a loss
                handle.within(CALL_TIMEOUT).reset_levels()

    path = Path(config.journal.format(pe=REGIONS)) if config.journal is not None else None
    return RegionLoop(
        OrganicAdaptation(
            thresholds=OrganicThresholds.of_running_jobs(config.region_target, config.max_replicas or MAX_REPLICAS),
            actuation=Actuation.of_running_jobs(cluster.elastic, config.max_processes),
        ),
        sample=lambda: {sample.pe: sample for sample in telemetry.metrics().pes},
        plan=lambda: plan.placed(life.elements()),
        change=rescaling.change,
        nodes=host.nodes,
        period=config.region_period,
        reset=reset_levels,
        request=host.request,
        prepare=rescaling.prepare,
        journal=RegionJournal(path),
    )
