"""Carries out what users and policies want of a running job's plan, live where that can be, else from a checkpoint.

Must not know how either is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic.errors import ChangeError
from rayelastic.runtime.rescale.possible import checked_change, plan_without

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.host import PEHost
    from rayelastic.runtime.rescale.change_journal import ChangeJournal

__all__ = ["PlanChanges"]


class PlanChanges:
    """Changes of the plan of one job.

    Args:
        placed: gives the plan in force, with the nodes where its elements are.
        host: knows the nodes.
        journal: of the job.
        elastic: regions that may have several replicas.
        live: carries out a plan that differs by numbers of replicas.
        planned: carries out any other one, from a checkpoint, with another secret if told so; None: the job takes none.
        problem: says why it takes none, if there is a reason.
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
        """Carries out another plan: live where only numbers of replicas differ, else from a checkpoint of now.

        Args:
            wanted: made of the plan in force.

        Returns:
            The plan in force then.

        Raises:
            ConfigError: it is no plan of this job's regions, or one that can't be had.
            ChangeError: it couldn't be done, and has been undone; the job goes on as it was.
        """
        if checked_change(self._placed(), wanted, self._elastic, self._host.nodes()).is_live:
            return self._live(wanted)
        return self._from_checkpoint("operators change their processes")(wanted, False)

    def renew_secret(self) -> None:
        """Has the job go on by the same plan with another secret, from a checkpoint of now.

        Raises:
            ChangeError: it couldn't be done; the job goes on as it was.
        """
        self._from_checkpoint("a job gets another secret")(self._placed(), True)

    def leave(self, node: str) -> ExecPlan:
        """Has the job leave a node, for good: its processing elements go on elsewhere, from a checkpoint of now.

        Args:
            node: its name.

        Returns:
            The plan in force then.

        Raises:
            ConfigError: there is no such node, or no other.
            ChangeError: it couldn't be done; the job goes on as it was.
        """
        before = self._journal.left
        wanted = plan_without(self._placed(), node, self._host.nodes())
        self._host.avoid(frozenset((*before, node)))
        try:
            plan = self.change(wanted)
            if stays := [pe for pe, at in plan.nodes.items() if at == node]:
                raise ChangeError(f"{', '.join(stays)} found no room outside {node}", hint="Add a node")
        except BaseException:
            self._host.avoid(frozenset(before))
            raise
        self._host.avoid(frozenset((*before, node)))  # processes that elements have left since
        self._journal.leaves((*before, node))
        return plan

    def _from_checkpoint(self, what: str) -> Callable[[ExecPlan, bool], ExecPlan]:
        if self._planned is None:
            raise ChangeError(
                f"{what} at a checkpoint, and the job takes none: "
                + (self._problem() or "JobConfig(checkpoint=...) says so"),
                hint="Give JobConfig(checkpoint=rel.Checkpoint())",
            )
        return self._planned
