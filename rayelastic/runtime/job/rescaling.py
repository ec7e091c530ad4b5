"""Changes the number of replicas while the job runs: one change of plan at a time, which completes or is undone.

Computes the new plan and the placement of its elements; the performer migrates the keys.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rayelastic.errors import ChangeError, ErrorCode, PELostError, StateError
from rayelastic.errors.invariants import invariant
from rayelastic.plan.config import Regions
from rayelastic.plan.node_placement import place
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.routing import keeps_replicas
from rayelastic.runtime.rescale.performer import AdaptationPerformer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.host import PEHost
    from rayelastic.runtime.job.job_cluster import JobCluster
    from rayelastic.runtime.job.life import JobLife
    from rayelastic.runtime.job.plan_in_force import PlanInForce
    from rayelastic.runtime.journal import ChangeJournal
    from rayelastic.runtime.values.failure import Failure
    from rayelastic.runtime.values.region_counters import RegionCounters
    from rayelastic.runtime.values.specs import JobSpec

SPARES = 1  # spare processes for a replica, in a job whose regions can grow


class Rescaling:
    """The changes of one job's plan.

    Args:
        job: The job.
        cluster: Its elements.
        host: Knows the nodes, and keeps spare processes.
        journal: Records changes.
        life: Ends the job if a change can neither be completed nor undone.
        plan: The plan in force, which a change replaces.
        counters: Counters of regions, updated here.
        clock: Returns seconds, monotonic.
        lost: Called if a change can neither be completed nor undone.
    """

    def __init__(
        self,
        job: JobSpec,
        cluster: JobCluster,
        host: PEHost,
        journal: ChangeJournal,
        life: JobLife,
        plan: PlanInForce,
        counters: MutableMapping[str, RegionCounters],
        clock: Callable[[], float],
        lost: Callable[[Failure], None] | None = None,
    ) -> None:
        self._job = job
        self._cluster = cluster
        self._host = host
        self._journal = journal
        self._life = life
        self._plan = plan
        self._counters = counters
        self._clock = clock
        self._lost = lost or life.fail
        self._changing = threading.Lock()  # one change at a time
        self._performer = self._new_performer()

    def make_ready(self) -> None:
        """Keep a spare process for the next replica, in a job that may scale out at any moment."""
        if self._cluster.elastic and self._job.config.regions in (Regions.MANUAL, Regions.ADVISE):
            self.prepare()

    def prepare(self, node: str = "") -> None:
        """Keep a spare process for a replica that is likely soon, on a node if one is named."""
        self._host.make_ready(SPARES, node)

    def rescale(self, region: str, replicas: int) -> ExecPlan:
        """Change the number of a region's replicas; see Coordinator.rescale."""
        with self._changing:
            plan = self._plan.now
            if region not in self._cluster.elastic:
                raise keeps_replicas(plan.region(region))
            pes = plan.region(region).pipelines[0].pes[:replicas]
            wanted = plan.with_replicas(region, replicas, (*pes, *plan.fresh_pes(replicas - len(pes))))
            here = self._plan.placed(self._life.elements()).nodes
            room = place(wanted.with_nodes(here), self._host.nodes(), {}).nodes
            nodes = {pe: node for pe, node in {**room, **here}.items() if pe in wanted.pes}
            invariant(wanted.region(region).replicas == replicas, "the plan has the replicas asked for", replicas)
            return self._change(wanted.with_nodes(nodes))

    def change(self, wanted: ExecPlan) -> ExecPlan:
        """Change to another plan, and return the one in force then.

        Raises:
            ChangeError: It failed, and has been undone; the job continues as it was, or recovers.
        """
        with self._changing:
            return self._change(wanted)

    def recover(self) -> ExecPlan:
        """End what an earlier performer has begun: complete it if possible, otherwise undo it."""
        with self._changing:
            self._performer = self._new_performer()
            return self._recover()

    def take_over(self) -> None:
        """End what an earlier coordinator has begun, and the elements that aren't needed any more."""
        with self._changing:
            self._recover()
            for pe in self._cluster.handles:
                if pe not in self._plan.now.pes and self._plan.is_dispensable(pe):  # it has no keys
                    self._cluster.retire(pe)
            self._life.keeps(self._cluster.handles)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Hold the plan inside the context: a running change ends first, others wait."""
        with self._changing:
            yield

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Hold the plan inside the context, in which the state of all its elements is saved.

        Raises:
            StateError: A change is half done: neither plan knows the owner of each key, so some would be missing.
        """
        with self._changing:
            if self._journal.open_change is not None and not self._life.has_finished:
                raise StateError(
                    "a change of the plan is half done: the owners of some keys aren't those of the plan",
                    hint="The job restores its last checkpoint when the next one is due: retry then",
                    code=ErrorCode.CHANGE_HALF_DONE,
                )
            yield

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the plan inside the context, for a part of `saving` that may take long.

        Replicas may start and stop meanwhile: a restart then restores the earlier plan, whose state has been saved.

        Raises:
            StateError: The job has restarted meanwhile, so what has been saved isn't its state any more.
        """
        before = self._performer
        self._changing.release()
        try:
            yield
        finally:
            self._changing.acquire()
        if self._performer is not before:
            raise StateError("the job has restarted meanwhile", code=ErrorCode.JOB_NOT_RUNNING)

    def forget(self) -> None:
        """Start anew, with other elements and no open change; call it while the plan is held."""
        self._performer = self._new_performer()

    # -- implementation -------------------------------------------------------------------------------------------

    def _change(self, wanted: ExecPlan) -> ExecPlan:
        if self._life.is_recovering:  # of its new elements some don't run yet
            raise ChangeError(
                "the job is restoring: its plan stays", hint="Retry when it runs", code=ErrorCode.JOB_NOT_RUNNING
            )
        change = plan_change(self._plan.now, wanted)
        self._cluster.hold_levels(True)
        try:
            try:
                self._plan.now = self._performer.perform(change)
            except TimeoutError as error:  # by now it is known whether the silent element is gone
                self._plan.now = self._performer.recover() or self._plan.now
                changed = [part.region for part in change.regions]
                if any(self._plan.now.region(name) != wanted.region(name) for name in changed):
                    raise ChangeError(f"the change to epoch {change.epoch} was undone: {error}") from error
        except (PELostError, TimeoutError) as error:
            self._stuck(error)
            raise
        except ChangeError:
            self._plan.now = self._journal.plan or self._plan.now
            raise
        except Exception as error:
            if (failure := self._life.failure) is not None:  # errors of elements of an ending job are meaningless
                raise ChangeError(f"the job failed while its plan was changed: {failure.reason}") from error
            if self._journal.open_change is not None:  # the keys that it buffers would wait for ever
                self._stuck(error)
            raise
        finally:
            self._life.keeps(self._cluster.handles)
            self._cluster.hold_levels(False)
        self.make_ready()
        return self._plan.now

    def _recover(self) -> ExecPlan:
        try:
            self._plan.now = self._performer.recover() or self._plan.now
        except (PELostError, TimeoutError) as error:
            self._stuck(error)
            raise
        finally:
            self._life.keeps(self._cluster.handles)
            self._cluster.hold_levels(False)  # the coordinator that began the change may have died while they were held
        return self._plan.now

    def _stuck(self, error: Exception) -> None:
        self._lost(self._plan.loss(f"a change of plan can neither be ended nor undone: {error}"))

    def _new_performer(self) -> AdaptationPerformer:
        return AdaptationPerformer(
            self._cluster,
            self._job.operators,
            self._journal,
            self._journal.started(),
            counters=self._counters,
            clock=self._clock,
        )
