"""Other numbers of replicas while the job runs: one change of plan at a time, carried out, recovered or undone.

Says which plan is wanted and where its elements belong; how keys move is the performer's.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rayelastic.errors import ChangeError, ConfigError, PELostError
from rayelastic.plan.config import Regions
from rayelastic.plan.node_placement import place
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.routing import why_fixed
from rayelastic.reasons import Code
from rayelastic.runtime.rescale.performer import AdaptationPerformer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.host import PEHost
    from rayelastic.runtime.job.job_cluster import JobCluster
    from rayelastic.runtime.job.life import JobLife
    from rayelastic.runtime.job.plan_in_force import PlanInForce
    from rayelastic.runtime.rescale.change_journal import ChangeJournal
    from rayelastic.runtime.values.failure import Failure
    from rayelastic.runtime.values.specs import JobSpec
    from rayelastic.runtime.values.status import RegionCounters

__all__ = ["Rescaling"]

SPARES = 1  # processes that wait for a replica, in a job whose regions can grow


class Rescaling:
    """The changes of one job's plan.

    Args:
        job: what runs.
        cluster: its elements.
        host: says which nodes there are, and keeps processes ready.
        journal: where changes are noted.
        life: ends the job where a change can neither be ended nor undone.
        plan: in force, which a change replaces.
        counters: of regions, written to.
        clock: seconds, monotonic.
        lost: is told where a change can neither be ended nor undone.
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
        """Has a process wait for the next replica, in a job that may be told to start one at any moment."""
        if self._cluster.elastic and self._job.config.regions in (Regions.MANUAL, Regions.ADVISE):
            self.prepare()

    def prepare(self, node: str = "") -> None:
        """Has a process wait for a replica that is likely to be wanted soon, on a node if one is named."""
        self._host.make_ready(SPARES, node)

    def rescale(self, region: str, replicas: int) -> ExecPlan:
        """Gives a region another number of replicas; see Coordinator.rescale."""
        with self._changing:
            plan = self._plan.now
            if region not in self._cluster.elastic:
                planned = plan.region(region)
                why = why_fixed(planned, self._job.operators) or Code.FIXED_BY_CONFIG()
                raise ConfigError(
                    f"region {region} keeps its replicas: {why}",
                    operator=planned.region.operators[0],
                    hint="JobConfig(regions='manual') lets data-parallel regions grow",
                )
            pes = plan.region(region).pipelines[0].pes[:replicas]
            wanted = plan.with_replicas(region, replicas, (*pes, *plan.fresh_pes(replicas - len(pes))))
            here = self._plan.placed(self._life.elements()).nodes
            room = place(wanted.with_nodes(here), self._host.nodes(), {}).nodes
            nodes = {pe: node for pe, node in {**room, **here}.items() if pe in wanted.pes}
            return self._change(wanted.with_nodes(nodes))

    def change(self, wanted: ExecPlan) -> ExecPlan:
        """Carries out another plan, and returns the one in force then.

        Raises:
            ChangeError: it couldn't be done, and has been undone; the job goes on as it was, or goes back.
        """
        with self._changing:
            return self._change(wanted)

    def recover(self) -> ExecPlan:
        """End what a performer before this one has begun: forward if it can be ended, else back."""
        with self._changing:
            self._performer = self._new_performer()
            return self._recover()

    def take_over(self) -> None:
        """End what a coordinator before this one has begun, and the elements that nobody needs any more."""
        with self._changing:
            self._recover()
            for pe in self._cluster.handles:
                if pe not in self._plan.now.pes and self._plan.is_dispensable(pe):  # it has no keys
                    self._cluster.retire(pe)
            self._life.keeps(self._cluster.handles)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Has the plan stay as it is meanwhile: a change that is under way is ended first, others wait."""
        with self._changing:
            yield

    def forget(self) -> None:
        """Begin anew, with other elements and nothing under way; to be called while the plan stands still."""
        self._performer = self._new_performer()

    # -- how it is done -------------------------------------------------------------------------------------------

    def _change(self, wanted: ExecPlan) -> ExecPlan:
        if self._life.is_recovering:  # of its new elements some don't run yet
            raise ChangeError("the job goes back: its plan stays", hint="Try again when it runs")
        change = plan_change(self._plan.now, wanted)
        self._cluster.hold_levels(True)
        try:
            try:
                self._plan.now = self._performer.perform(change)
            except TimeoutError as error:  # by now it is known whether the one that didn't answer is gone
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
            if (failure := self._life.failure) is not None:  # elements of a job that ends say anything
                raise ChangeError(f"the job failed while its plan was changed: {failure.reason}") from error
            if self._journal.open_change is not None:  # keys that it holds would wait for ever
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
            self._cluster.hold_levels(False)  # whoever began the change may have died while they held still
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
