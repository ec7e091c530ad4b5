"""Starts the processing elements of a job, watches them, and answers for the job as a whole.

The coordinator decides and never touches tuples. It knows processing elements only by their handles (host.py), so that
the same object runs in the calling process and in a detached Ray actor. A processing element that fails or dies fails
the job, with the reason; the others are ended then, so that nothing hangs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.errors import ConfigError, JobExistsError, RayelasticError, StateError
from rayelastic.plan.config import Regions
from rayelastic.plan.node_placement import place
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.routing import why_fixed
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.runtime.element.host import PELostError
from rayelastic.runtime.job.job_cluster import START_TIMEOUT, JobCluster
from rayelastic.runtime.job.saving import save_job
from rayelastic.runtime.loops.region_loop import RegionLoop
from rayelastic.runtime.rescale.batches import has_given_all
from rayelastic.runtime.rescale.change_journal import ChangeJournal
from rayelastic.runtime.rescale.performer import AdaptationPerformer, ChangeError
from rayelastic.runtime.snapshot import Snapshot, state_form
from rayelastic.runtime.values.adaptation import Adaptation
from rayelastic.runtime.values.region_adaptation import REGIONS, RegionAdaptation, RegionJournal
from rayelastic.runtime.values.specs import IngestAddress, JobSpec
from rayelastic.runtime.values.status import (
    Failure,
    JobMetrics,
    JobStatus,
    PESample,
    PEStatus,
    RegionCounters,
    SinkResult,
    State,
)
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.element.host import PEHandle, PEHost

CALL_TIMEOUT = 10.0  # seconds for any other control call
SPARES = 1  # processes that wait for a replica, in a job whose regions can grow
CAUSE_WAIT = 1.0  # seconds between a broken link and the word of the one who broke it
JOIN_TIMEOUT = 5.0  # seconds for a watching thread to see that all is over
WATCH_PERIOD = 2.0  # seconds that one watching call stays with a processing element; its death ends the call at once


class Coordinator:
    """The one who answers for a job.

    Args:
        job: what to run.
        host: makes processing elements.
        clock: seconds, monotonic.
        journal: of changes of plan; in memory if not given.
    """

    def __init__(
        self,
        job: JobSpec,
        host: PEHost,
        *,
        clock: Callable[[], float] = time.monotonic,
        journal: ChangeJournal | None = None,
    ) -> None:
        self._job = job
        self._host = host
        self._clock = clock
        self._cluster = JobCluster(job, host, self._watch_over)
        self._journal = journal or ChangeJournal()
        self._region_counters: dict[str, RegionCounters] = {}
        self._plan = self._journal.plan or job.plan
        self._performer = self._new_performer()
        self._regions = self._region_loop()
        self._changing = threading.Lock()  # one change at a time
        self._watchers: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._statuses: dict[str, PEStatus] = {pe: PEStatus(pe, State.CREATED) for pe in self._plan.pes}
        self._samples: dict[str, PESample] = {}
        self._adaptations: dict[str, tuple[Adaptation, ...]] = {}  # of those that have ended
        self._results: dict[str, SinkResult] = {}
        self._state = State.CREATED
        self._failure: Failure | None = None
        self._cancelling = False
        self._started_at = clock()

    def start(self) -> None:
        """Starts every processing element: all open their ports, then all connect, then all run.

        Raises:
            RayelasticError: a processing element couldn't be started; nothing is left running.
        """
        tell("job starts", job=self._job.name, pes=len(self._plan.pes))
        try:
            self._cluster.start(self._plan, tuple(self._plan.pes))
        except BaseException as error:
            self._end(State.FAILED, Failure(f"the job could not be started: {error}"))
            raise
        self._journal.end(self._plan)
        self._runs()

    def resume(self) -> None:
        """Goes on with a job whose coordinator has died: its elements have run on, and what was under way is ended."""
        tell("job goes on", job=self._job.name, level=logging.WARNING, incarnation=self._journal.incarnation)
        if self._journal.over is not None:
            state, reason = self._journal.over
            told = reason or f"it is {state}; what sinks hadn't written to files died with its coordinator"
            with self._changed:
                self._state, self._failure = State.FAILED, Failure(told)
            return
        try:
            self._cluster.adopt()
            if self._journal.plan is None:
                self._end(State.FAILED, Failure("its coordinator died before the job had started"))
                return
            with self._changing:
                for pe in self._plan.pes:
                    if pe not in self._cluster.handles and not self._is_dispensable(pe):
                        self._end(
                            State.FAILED, self._loss(f"processing element {pe} was lost while nobody watched", pe)
                        )
                        return
                if self._journal.open_change is not None:
                    self._recover()
                for pe in self._cluster.handles:
                    if pe not in self._plan.pes:  # nothing is routed to it any more
                        self._cluster.retire(pe)
                self._forget_retired()
        except (RayelasticError, TimeoutError) as error:
            self._end(State.FAILED, self._loss(f"its coordinator died, and the next one can't go on: {error}"))
            return
        self._runs()

    def _runs(self) -> None:
        if self._cluster.elastic:
            self._host.make_ready(SPARES)
        if self._regions is not None:
            self._regions.start()
        with self._changed:
            if not self._state.is_final:  # a short job may be over
                self._state = State.RUNNING
            self._started_at = self._clock()

    def status(self) -> JobStatus:
        """The state of the job and of each processing element, without asking them."""
        with self._changed:
            return JobStatus(self._job.name, self._state, self._failure, tuple(self._statuses.values()))

    def plan(self) -> ExecPlan:
        """The plan in force."""
        return self._plan

    def metrics(self) -> JobMetrics:
        """Counters of each processing element: fresh where it answers, the last ones where it doesn't."""
        for pe, handle in self._cluster.handles.items():
            if pe in self._statuses and not self._statuses[pe].state.is_final:
                try:
                    self._samples[pe] = handle.within(CALL_TIMEOUT).sample()
                except (PELostError, TimeoutError):
                    continue  # its watcher reports a loss
        samples = tuple(self._samples[pe] for pe in self._statuses if pe in self._samples)
        return JobMetrics(self._job.name, self._clock() - self._started_at, samples, dict(self._region_counters))

    def adaptations(self, since: Mapping[str, int]) -> tuple[Adaptation | RegionAdaptation, ...]:
        """What the loops of the processing elements did, and that of regions, in the order of time.

        Args:
            since: {processing element: number of the first pass wanted}; 0 for those that aren't named.
        """
        found: list[Adaptation | RegionAdaptation] = []
        for pe, handle in self._cluster.handles.items():
            number = since.get(pe, 0)
            if pe not in self._adaptations:  # it still runs
                try:
                    found += handle.within(CALL_TIMEOUT).adaptations(number)
                except (PELostError, TimeoutError):
                    continue  # its watcher reports a loss
            else:
                found += (adaptation for adaptation in self._adaptations[pe] if adaptation.number >= number)
        if self._regions is not None:
            found += self._regions.journal.since(since.get(REGIONS, 0))
        return tuple(sorted(found, key=lambda adaptation: (adaptation.observation.time, adaptation.pe)))

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Waits until the job is finished, failed or cancelled.

        Args:
            timeout: seconds; `None` waits for ever.

        Returns:
            The status then; not final if the time ran out.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._state.is_final, timeout)
        return self.status()

    def results(self) -> dict[str, SinkResult]:
        """What the sinks of a finished job left, by operator."""
        with self._changed:
            return dict(self._results)

    def rescale(self, region: str, replicas: int) -> ExecPlan:
        """Gives a region another number of replicas while the job runs; each new one gets an element of its own.

        Args:
            region: its name in the plan.
            replicas: 1 or more.

        Returns:
            The plan in force then.

        Raises:
            ConfigError: the region can't have so many.
            ChangeError: it couldn't be done, and has been undone; the job goes on as it was.
        """
        with self._changing:
            plan = self._plan
            if region not in self._cluster.elastic:
                planned = plan.region(region)
                why = why_fixed(planned, self._job.operators) or "the job has JobConfig(regions='fixed')"
                raise ConfigError(
                    f"region {region} keeps its replicas: {why}",
                    operator=planned.region.operators[0],
                    way_out="JobConfig(regions='manual') lets data-parallel regions grow",
                )
            pes = plan.region(region).pipelines[0].pes[:replicas]
            wanted = plan.with_replicas(region, replicas, (*pes, *plan.fresh_pes(replicas - len(pes))))
            here = self._placed().nodes
            room = place(wanted.with_nodes(here), self._host.nodes(), {}).nodes
            nodes = {pe: node for pe, node in {**room, **here}.items() if pe in wanted.pes}
            return self._change(wanted.with_nodes(nodes))

    def _change(self, wanted: ExecPlan) -> ExecPlan:
        change = plan_change(self._plan, wanted)
        try:
            try:
                self._plan = self._performer.perform(change)
            except TimeoutError as error:  # by now it is known whether the one that didn't answer is gone
                self._plan = self._performer.recover() or self._plan
                changed = [part.region for part in change.regions]
                if any(self._plan.region(name).replicas != wanted.region(name).replicas for name in changed):
                    raise ChangeError(f"the change to epoch {change.epoch} was undone: {error}") from error
        except (PELostError, TimeoutError) as error:
            self._end(State.FAILED, self._loss(f"a change of plan can neither be ended nor undone: {error}"))
            raise
        except ChangeError:
            self._plan = self._journal.plan or self._plan
            raise
        except Exception as error:  # elements of a job that ends say anything
            if self._failure is None:
                raise
            raise ChangeError(f"the job failed while its plan was changed: {self._failure.reason}") from error
        finally:
            self._forget_retired()
        self._host.make_ready(SPARES)
        return self._plan

    def recover(self) -> ExecPlan:
        """Ends the change that a coordinator before this one has begun: forward if it can be ended, else back.

        Returns:
            The plan in force then.
        """
        with self._changing:
            self._performer = self._new_performer()
            return self._recover()

    def _recover(self) -> ExecPlan:
        try:
            self._plan = self._performer.recover() or self._plan
        except (PELostError, TimeoutError) as error:
            self._end(State.FAILED, self._loss(f"a change of plan can neither be ended nor undone: {error}"))
            raise
        finally:
            self._forget_retired()
        return self._plan

    def _region_loop(self) -> RegionLoop | None:
        config = self._job.config
        if Regions(config.regions) is not Regions.ELASTIC or not self._cluster.elastic:
            return None

        def change(wanted: ExecPlan) -> ExecPlan:
            with self._changing:
                return self._change(wanted)

        path = Path(config.journal.format(pe=REGIONS)) if config.journal is not None else None
        return RegionLoop(
            OrganicAdaptation(thresholds=OrganicThresholds.of_running_jobs(config.region_target)),
            sample=lambda: {sample.pe: sample for sample in self.metrics().pes},
            plan=self._placed,
            change=change,
            nodes=self._host.nodes,
            elastic=self._cluster.elastic,
            period=config.region_period,
            reset=self._reset_levels,
            request=self._host.request,
            journal=RegionJournal(path),
        )

    def _reset_levels(self) -> None:
        for handle in self._cluster.handles.values():
            with suppress(PELostError, TimeoutError):  # its watcher reports a loss
                handle.within(CALL_TIMEOUT).reset_levels()

    def _placed(self) -> ExecPlan:
        """The plan in force, with the node of each processing element."""
        with self._changed:
            nodes = {pe: status.node for pe, status in self._statuses.items() if pe in self._plan.pes and status.node}
        if nodes != self._plan.nodes:
            self._plan = self._plan.with_nodes(nodes)
        return self._plan

    def _new_performer(self) -> AdaptationPerformer:
        return AdaptationPerformer(
            self._cluster,
            self._job.operators,
            self._journal,
            self._journal.started(),
            counters=self._region_counters,
            clock=self._clock,
        )

    def _forget_retired(self) -> None:
        with self._changed:
            kept = self._cluster.handles
            for pe in [pe for pe in self._statuses if pe not in kept]:
                del self._statuses[pe]
            all_finished = self._are_all_finished()
        if all_finished:  # the others have ended meanwhile
            self._end(State.CANCELLED if self._cancelling else State.FINISHED, None)

    def cancel(self, drain: bool = True) -> JobStatus:
        """Stops the job.

        Args:
            drain: stop the sources and let everything that they sent reach the sinks; otherwise stop at once.

        Returns:
            The status; with `drain`, the job is cancelled as soon as the last tuple arrived.
        """
        with self._changed:
            if self._state.is_final:
                return self.status()
            self._cancelling = True
        if drain:
            for handle in self._cluster.handles.values():
                with suppress(PELostError, TimeoutError):  # its watcher reports a loss
                    handle.within(CALL_TIMEOUT).stop(True)
        else:
            self._end(State.CANCELLED, None)
        return self.status()

    def stop(self, snapshot: Snapshot) -> JobStatus:
        """Stops the job where it is and saves what a later one needs to go on from there.

        All sources are held, what they sent is processed, and only then is anything written: the state is that of
        one moment. Sinks complete what they have. When something goes wrong before that, the job goes on.

        Raises:
            StateError: it can't be saved; names the operator.
        """
        with self._changed:
            if self._state is not State.RUNNING:
                raise StateError(f"job '{self._job.name}' is {self._state.value}: there is nothing to save")
        if self._cluster.elastic:
            raise StateError(
                f"job '{self._job.name}' has elastic regions, and what is on its way inside them can't be saved yet",
                way_out="Run it without JobConfig(regions='elastic')",
            )
        save_job(self._job, self._plan, self._cluster.handles, snapshot)
        return self.status()

    def ingest_address(self, source: str) -> IngestAddress:
        """Where to push the rows of a source that is fed from outside."""
        return self._hosting(source).ingest_address(source)

    def finish_source(self, source: str, rows: dict[int, int]) -> None:
        """Says that a source which is fed from outside is complete.

        Args:
            source: the operator.
            rows: how many rows each partition had, by its number.

        Raises:
            SourceError: other rows arrived.
        """
        self._hosting(source).finish_source(source, rows)

    def fail_source(self, source: str, reason: str) -> None:
        """Says that a source which is fed from outside failed: so does the job, unless it is being cancelled."""
        if not self._cancelling:
            self._end(State.FAILED, Failure(reason, operator=source))

    def close(self) -> None:
        """Ends whatever still runs, and the threads that watch it; safe to repeat."""
        if not self._state.is_final:
            self._end(State.CANCELLED, None)
        if self._regions is not None:
            self._regions.stop()
        for watcher in self._watchers:
            watcher.join(JOIN_TIMEOUT)
        self._journal.close()

    # -- how it is done -------------------------------------------------------------------------------------------

    def _hosting(self, operator: str) -> ElementApi:
        return self._cluster.handles[self._plan.pe_of(operator)].within(CALL_TIMEOUT)

    def _watch_over(self, handle: PEHandle) -> None:
        try:
            status = handle.within(CALL_TIMEOUT).status()
        except (PELostError, TimeoutError):
            status = PEStatus(handle.pe, State.RUNNING)  # its watcher reports a loss
        with self._changed:
            self._statuses[handle.pe] = status
        watcher = threading.Thread(target=self._watch, args=(handle,), name=f"watch-{handle.pe}", daemon=True)
        self._watchers.append(watcher)
        watcher.start()

    def _is_dispensable(self, pe: str) -> bool:
        """Tells whether the job can go on without an element: it has had no keys yet, or has none any more."""
        here = self._journal.open_change
        if here is not None and pe in here.change.started_pes:
            return here.moved <= (here.undoing or 0)
        if here is not None and has_given_all(here, pe):
            return True
        in_force = self._journal.plan or self._plan  # the journal's is newer where an element is retired in a change
        return pe not in in_force.pes

    def _watch(self, handle: PEHandle) -> None:
        """Stays with one processing element until it is final; its loss or failure fails the job."""
        while True:
            try:
                status = handle.within(WATCH_PERIOD + CALL_TIMEOUT).wait(WATCH_PERIOD)
                sample, results = None, {}
                adaptations: tuple[Adaptation, ...] = ()
                if status.state is State.FINISHED:
                    sample = handle.within(CALL_TIMEOUT).sample()
                    adaptations = handle.within(CALL_TIMEOUT).adaptations()
                    results = handle.within(START_TIMEOUT).results()
            except TimeoutError:
                self._lose(handle, f"processing element {handle.pe} stopped answering")
                return
            except Exception as error:  # whatever it is, the job must not hang
                self._lose(handle, f"processing element {handle.pe} was lost: {error}")
                return
            if self._cluster.handles.get(handle.pe) is not handle:
                return  # it was retired, and its name may be another's
            if status.state.is_final:
                self._cluster.ends(handle.pe)
            with self._changed:
                if self._state.is_final:
                    return
                if handle.pe in self._statuses:
                    self._statuses[handle.pe] = status
                if sample is not None:
                    self._samples[handle.pe] = sample
                    self._adaptations[handle.pe] = adaptations
                self._results.update(results)
                all_finished = self._are_all_finished()
            lost = [(peer, why) for peer, why in status.lost_peers.items() if not self._is_dispensable(peer)]
            if lost:
                peer, why = lost[0]
                self._await_cause()
                self._end(State.FAILED, replace(self._loss(why, peer), lost_link=True))
                return
            if status.state is State.FAILED and self._is_dispensable(handle.pe):
                return
            if status.state is State.FAILED:
                if status.failure is not None and status.failure.lost_link:
                    self._await_cause()
                self._end(State.FAILED, status.failure)
            elif all_finished:
                self._end(State.CANCELLED if self._cancelling else State.FINISHED, None)
            if status.state.is_final:
                return

    def _are_all_finished(self) -> bool:
        return all(status.state is State.FINISHED for status in self._statuses.values())

    def _await_cause(self) -> None:
        """Gives whoever broke a link the time to be found out; its watcher ends the job then."""
        with self._changed:
            self._changed.wait_for(lambda: self._state.is_final, CAUSE_WAIT)

    def _lose(self, handle: PEHandle, reason: str) -> None:
        pe = handle.pe
        if self._cluster.handles.get(pe) is not handle:
            return
        self._cluster.ends(pe)
        if self._is_dispensable(pe):
            return
        with self._changed:
            if self._state.is_final or pe not in self._statuses:
                return
            self._statuses[pe] = replace(self._statuses[pe], state=State.FAILED, failure=Failure(reason))
        self._end(State.FAILED, self._loss(reason, pe))

    def _loss(self, reason: str, pe: str = "") -> Failure:
        """Says what goes with an element that is lost: nothing of it was saved."""
        here = self._journal.open_change
        plans = (here.change.new if here is not None else self._plan, self._journal.plan or self._plan)
        operators = next((plan.pes[pe] for plan in plans if pe in plan.pes), ())
        keeping = [repr(name) for name in operators if state_form(self._job.operators[name]) is not None]
        what = f"the state of {', '.join(keeping)} there" if keeping else "what was in it"
        return Failure(f"{reason}; {what} is lost: there is no checkpoint to go on from")

    def _end(self, state: State, failure: Failure | None) -> None:
        """Makes the job final, once, and ends every processing element."""
        with self._changed:
            if self._state.is_final:
                return
            self._state, self._failure = state, failure
        if self._regions is not None:
            self._regions.halt()
        try:
            self._journal.ends_job(state.value, failure.reason if failure is not None else "")
        except JobExistsError:  # the elements are another coordinator's now
            with self._changed:
                self._changed.notify_all()
            return
        except Exception as error:  # the job ends, whether that can be noted or not
            tell("end not noted", job=self._job.name, level=logging.WARNING, reason=str(error))
        tell(
            "job ended",
            job=self._job.name,
            level=logging.INFO if failure is None else logging.ERROR,
            state=state.value,
            reason=failure.reason if failure is not None else "",
            operator=failure.operator if failure is not None else None,
        )
        self._cluster.kill()
        self._host.close()
        with self._changed:
            self._changed.notify_all()
