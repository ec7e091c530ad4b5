"""The plan in force of a job, and what the loss of a PE means under it.

Knows the journal of changes, because during a change neither the old plan nor the new one knows the owner of each key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode
from rayelastic.errors.invariants import invariant
from rayelastic.runtime.rescale.batches import has_moved_all_keys
from rayelastic.runtime.values.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.journal import ChangeJournal
    from rayelastic.runtime.values.specs import JobSpec
    from rayelastic.runtime.values.status import PEStatus


class PlanInForce:
    """The current plan of one job.

    Args:
        job: The job, which begins with its own plan, unless the journal has a later one.
        journal: The journal of its changes.
    """

    def __init__(self, job: JobSpec, journal: ChangeJournal) -> None:
        self._operators = job.operators
        self._journal = journal
        self.now: ExecPlan = journal.plan or job.plan

    def placed(self, elements: Mapping[str, PEStatus]) -> ExecPlan:
        """Return the plan with the current node of each PE."""
        nodes = {pe: status.node for pe, status in elements.items() if pe in self.now.pes and status.node}
        invariant(nodes.keys() <= self.now.pes.keys(), "nodes are of PEs of the plan", nodes)
        if nodes != self.now.nodes:
            self.now = self.now.with_nodes(nodes)
        return self.now

    def is_dispensable(self, pe: str) -> bool:
        """Return whether the job can continue without an element, because it has no keys yet or any more."""
        here = self._journal.open_change
        if here is not None and pe in here.change.started_pes:
            return here.moved <= (here.undoing or 0)
        if here is not None and has_moved_all_keys(here, pe):
            return True
        in_force = self._journal.plan or self.now  # the journal's is newer when a change retires an element
        return pe not in in_force.pes

    def loss(self, reason: str, pe: str = "") -> Failure:
        """Describe what is lost with an element, none of whose state was saved."""
        here = self._journal.open_change
        plans = (here.change.new if here is not None else self.now, self._journal.plan or self.now)
        operators = next((plan.pes[pe] for plan in plans if pe in plan.pes), ())
        keeping = [repr(name) for name in operators if self._operators[name].state_form is not None]
        what = f"the state of {', '.join(keeping)} there" if keeping else "what was in it"
        no_way_back = "" if self._journal.checkpoints else ": there is no checkpoint to go on from"
        return Failure(f"{reason}; {what} is lost{no_way_back}", code=ErrorCode.PE_LOST)
