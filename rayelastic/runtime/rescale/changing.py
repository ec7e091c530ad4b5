"""Applies plan changes of users and policies to a running job, live if possible, else by a restart from a checkpoint.

Must not know how either works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic.errors import ChangeError, ErrorCode
from rayelastic.runtime.rescale.possible import checked_change, plan_without

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.host import PEHost
    from rayelastic.runtime.journal import ChangeJournal


class PlanChanges:
    """Changes of the plan of one job.

    Args:
        placed: Returns the plan in force, with the nodes of its elements.
        host: Knows the nodes.
        journal: The job's journal.
        elastic: Regions that may have several replicas.
        live: Changes to a plan that differs only by numbers of replicas.
        planned: Changes to any other one, by a restart from a checkpoint, with another secret if requested; None: the
            job takes no checkpoints.
        problem: The reason why it takes none, if there is one.
    """

    def __init__(
        self,
        placed: Callable[[], ExecPlan],
        host: PEHost,
        journal: ChangeJournal,
        elastic: Collection[str],
        live: Callable[[ExecPlan], ExecPlan],
        planned: Callable[[ExecPlan, bool], ExecPlan] | None,
        problem: Callable[[], str],
    ) -> None:
        self._placed = placed
        self._host = host
        self._journal = journal
        self._elastic = elastic
        self._live = live
        self._planned = planned
        self._problem = problem

    def change(self, wanted: ExecPlan) -> ExecPlan:
        """Change to another plan: live if only numbers of replicas differ, else by a restart from a checkpoint.

        Args:
            wanted: A plan made from the one in force.

        Returns:
            The plan in force then.

        Raises:
            ConfigError: It isn't a plan of this job's regions, or an unsupported one.
            ChangeError: It failed, and has been undone; the job continues as it was.
        """
        if checked_change(self._placed(), wanted, self._elastic, self._host.nodes()).is_live:
            return self._live(wanted)
        return self._from_checkpoint("operators change their processes")(wanted, False)

    def renew_secret(self) -> None:
        """Restart the job by the same plan with another secret, from a checkpoint taken now.

        Raises:
            ChangeError: It failed; the job continues as it was.
        """
        self._from_checkpoint("a job gets another secret")(self._placed(), True)

    def leave(self, node: str) -> ExecPlan:
        """Move the job away from a node, for good, by a restart from a checkpoint taken now.

        Args:
            node: The node's name.

        Returns:
            The plan in force then.

        Raises:
            ConfigError: An unknown node, or the only one.
            ChangeError: It failed; the job continues as it was.
        """
        before = self._journal.left
        wanted = plan_without(self._placed(), node, self._host.nodes())
        self._host.avoid(frozenset((*before, node)))
        try:
            plan = self.change(wanted)
            if stays := [pe for pe, at in plan.nodes.items() if at == node]:
                raise ChangeError(
                    f"no node but {node} has room for {', '.join(stays)}", hint="Add a node", code=ErrorCode.NO_ROOM
                )
        except BaseException:
            self._host.avoid(frozenset(before))
            raise
        self._host.avoid(frozenset((*before, node)))  # processes that elements have left meanwhile
        self._journal.leaves((*before, node))
        return plan

    def _from_checkpoint(self, what: str) -> Callable[[ExecPlan, bool], ExecPlan]:
        if self._planned is None:
            raise ChangeError(
                f"{what} needs a checkpoint, and the job takes none: "
                + (self._problem() or "JobConfig(checkpoint=...) says so"),
                hint="Pass JobConfig(checkpoint=rel.Checkpoint())",
                code=ErrorCode.NO_CHECKPOINT,
            )
        return self._planned
