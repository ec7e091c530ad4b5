"""What users change about a running job: replicas, places, its secret, and whether it adapts by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic.errors import ChangeError, ErrorCode
from rayelastic.job.control import CONTROL_TIMEOUT

if TYPE_CHECKING:
    from rayelastic.errors import RayelasticError
    from rayelastic.job.control import Control
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.job.api import CoordinatorApi
    from rayelastic.runtime.values.status import JobStatus

RESCALE_TIMEOUT = 600.0  # seconds for all keys of a region to migrate


class Changing:
    """The part of a `Job` that changes it."""

    name: str
    _control: Control
    _final: JobStatus | None

    def _running(self, error: type[RayelasticError], timeout: float) -> CoordinatorApi:
        """Return the coordinator, as `Control.within` does, unless the job has ended, because it may be gone then.

        Raises:
            RayelasticError: The job has ended; of the passed class.
        """
        if self._final is not None:
            problem = f"job {self.name!r} is {self._final.state.value}: nothing of it can be read, saved or changed"
            raise error(problem, code=ErrorCode.JOB_NOT_RUNNING)
        return self._control.within(timeout)

    def rescale(self, region: str, replicas: int) -> ExecPlan:
        """Set the number of replicas of a region while the job runs; needs JobConfig(regions='manual').

        Its keys are partitioned anew. Migrating keys wait until their state has arrived; all others continue. No tuple
        is lost, doubled or reordered per key.

        Args:
            region: its name in the plan, such as 'r1'.
            replicas: 1 or more; each has a PE of its own.

        Returns:
            The plan in force then.

        Raises:
            ConfigError: the region can't have so many.
            ChangeError: it failed and was undone, and the job continues as before; or the job has ended.

        >>> job.rescale("r1", replicas=3).region("r1").replicas  # doctest: +SKIP
        3
        """
        return self._running(ChangeError, RESCALE_TIMEOUT).rescale(region, replicas)

    def change(self, plan: ExecPlan) -> ExecPlan:
        """Change the plan of the running job to one made from `job.plan()` by its `with_...` methods.

        Replicas alone change while the job runs, as by `rescale`. To move operators or PEs, the job
        takes a checkpoint, ends all elements and restores the checkpoint by the new plan. That is a pause of seconds,
        which the log reports. Sources rewind to the checkpoint, as after a loss.

        Args:
            plan: Of the same regions. Change replicas and places by two calls.

        Returns:
            The new plan.

        Raises:
            ConfigError: The job doesn't support this plan.
            ChangeError: It failed and was undone, and the job continues as before; or the job has ended.

        >>> plan = job.plan()  # doctest: +SKIP
        >>> job.change(plan.with_split("r1", "rate", plan.fresh_pes(1)))  # doctest: +SKIP
        """
        return self._running(ChangeError, RESCALE_TIMEOUT).change(plan)

    def leave(self, node: str) -> ExecPlan:
        """Move the job off a node of the cluster for good, for example before the machine is switched off.

        The job takes a checkpoint and restores it without the node: a pause of seconds for the whole job. Nothing of
        the job starts on the node again.

        Args:
            node: Its name, from `job.status.pes` or `job.plan().nodes`.

        Returns:
            The plan in force then.

        Raises:
            ConfigError: there is no such node, or no other.
            ChangeError: it failed, and the job continues where it is; or the job has ended.

        >>> job.leave("node:10.0.0.7").pes  # doctest: +SKIP
        """
        return self._running(ChangeError, RESCALE_TIMEOUT).leave(node)

    def renew_secret(self) -> None:
        """Replace the secret of the job, for example if the current one may have become known.

        The job takes a checkpoint and restores it by the same plan with new PEs: a pause of seconds,
        which the log reports. After it, the old secret opens no connection and decrypts no link. Spark and Ray tasks
        that push rows get the new one. Files of checkpoints keep their key: that of `Checkpoint(key=)`, or one derived
        from the job's first secret.

        Raises:
            ChangeError: The job takes no checkpoints; it failed, and the job continues as before; or it has ended.

        >>> job.renew_secret()  # doctest: +SKIP
        """
        self._running(ChangeError, RESCALE_TIMEOUT).renew_secret()

    def pause_elasticity(self) -> None:
        """Keep threads, queues, channels, replicas and processes as they are, until `resume_elasticity`.

        `rescale`, `change` and `leave` still work. After a loss the job recovers with the same plan.
        """
        self._running(ChangeError, CONTROL_TIMEOUT).pause_elasticity(True)

    def resume_elasticity(self) -> None:
        """Adapt to the load again, after `pause_elasticity`."""
        self._running(ChangeError, CONTROL_TIMEOUT).pause_elasticity(False)
