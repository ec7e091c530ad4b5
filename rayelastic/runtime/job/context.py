"""The parts of a job that its checkpoints, its recovery and its completion use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.settings.checkpoint import Checkpoint
    from rayelastic.runtime.element.host import PEHost
    from rayelastic.runtime.job.job_cluster import JobCluster
    from rayelastic.runtime.job.life import JobLife
    from rayelastic.runtime.job.plan_in_force import PlanInForce
    from rayelastic.runtime.job.rescaling import Rescaling
    from rayelastic.runtime.job.telemetry import JobTelemetry
    from rayelastic.runtime.journal import ChangeJournal
    from rayelastic.runtime.values.specs import JobSpec


@dataclass(frozen=True, slots=True)
class JobContext:
    """A job that takes checkpoints.

    Args:
        job: The job.
        settings: The settings of its checkpoints, with the key.
        host: Makes its elements, and knows the nodes.
        journal: Records complete checkpoints.
        cluster: Its elements.
        life: Its life.
        plan: The plan in force.
        telemetry: Keeps the results and counters of elements.
        rescaling: Holds the plan.
    """

    job: JobSpec
    settings: Checkpoint
    host: PEHost
    journal: ChangeJournal
    cluster: JobCluster
    life: JobLife
    plan: PlanInForce
    telemetry: JobTelemetry
    rescaling: Rescaling

    def placed(self) -> ExecPlan:
        """Return the plan in force with the current node of each element."""
        return self.plan.placed(self.life.elements())
