"""Starts the PEs of a job, watches them, and reports about the job as a whole.

The coordinator decides and never touches tuples. Each of its parts owns one state. These are the cluster (its
elements), the life (states of the job and its elements), the plan in force, and the telemetry (counters and results).
Other parts are the watchers (a thread for each element), the rescaling, and the loops over regions and hosts. It knows
PEs only by their handles (host.py), and so runs in the calling process or in a detached Ray actor.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.locations import shown_location
from rayelastic.errors import ErrorCode, JobExistsError, PELostError, RayelasticError, code_of
from rayelastic.plan.explain import describe
from rayelastic.runtime.checkpoint.location import highest_id
from rayelastic.runtime.checkpoint.protocol import Kind
from rayelastic.runtime.checkpoint.restarts import without_checkpoints
from rayelastic.runtime.checkpoint.take import Taker
from rayelastic.runtime.fed_sources import FedSources
from rayelastic.runtime.job.checkpoints import JobCheckpoints, settings_of
from rayelastic.runtime.job.completion import Completion
from rayelastic.runtime.job.context import JobContext
from rayelastic.runtime.job.job_cluster import CALL_TIMEOUT, JobCluster
from rayelastic.runtime.job.kept_results import decoded, encoded
from rayelastic.runtime.job.levels.budget_loop import budget_loop
from rayelastic.runtime.job.levels.job_loops import JobLoops
from rayelastic.runtime.job.life import JobLife
from rayelastic.runtime.job.plan_in_force import PlanInForce
from rayelastic.runtime.job.recovery import Recovery
from rayelastic.runtime.job.region_level import region_level
from rayelastic.runtime.job.rescaling import Rescaling
from rayelastic.runtime.job.telemetry import JobTelemetry
from rayelastic.runtime.job.watchers import Watchers
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.runtime.rescale.changing import PlanChanges
from rayelastic.runtime.rounds import tell_all
from rayelastic.runtime.state.queries import READ_TIMEOUT, check_readable, read_state
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.region_adaptation import REGIONS
from rayelastic.runtime.values.status import JobMetrics, JobStatus, SinkResult, State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rayelastic.connectors.pushed.frames import Epoch
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.explain import OperatorInfo
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.element.host import PEHandle, PEHost
    from rayelastic.runtime.ingest.feed import Secured
    from rayelastic.runtime.state.descriptor import StateDescriptor
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation
    from rayelastic.runtime.values.snapshot import Snapshot
    from rayelastic.runtime.values.specs import IngestAddress, JobSpec
    from rayelastic.runtime.values.status import PEStatus

END_TIMEOUT = 10.0  # seconds for all elements to end, each of which has three to close


class Coordinator:
    """The coordinator of one job.

    Args:
        job: The job to run.
        host: Makes PEs.
        clock: Returns seconds, monotonic.
        journal: The journal of plan changes; in memory by default.
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
        self._journal = journal or ChangeJournal()
        self._plan = PlanInForce(job, self._journal)
        self._life = JobLife(job.name, self._plan.now.pes, self._ending, clock, owner=job.owner)
        settings = settings_of(job, host)
        saves, secret = settings is not None, self._journal.secret
        self._cluster = JobCluster(
            job,
            host,
            lambda handle, status: self._begins(handle, status),
            takes_checkpoints=saves,
            secret=secret,
            retires=lambda handle: self._telemetry.read({handle.pe: handle}),
        )
        self._telemetry = JobTelemetry(job.name, self._cluster, self._life)
        patience = job.config.network.patience
        self._watchers = Watchers(self._cluster, self._life, self._plan, self._telemetry, self._lose, patience)
        self._rescaling = Rescaling(
            job, self._cluster, host, self._journal, self._life, self._plan, self._telemetry.regions, clock, self._lose
        )
        self._highest_id = highest_id(job, settings, self._journal)
        self._ids = count(self._highest_id + 1)  # of checkpoints and savepoints
        self._taker, self._keep = Taker(job, self._journal), settings.keep if settings is not None else 0
        self._checkpoints = self._recovery = None
        if settings is not None:
            parts = (host, self._journal, self._cluster, self._life, self._plan, self._telemetry, self._rescaling)
            context = JobContext(job, settings, *parts)
            self._recovery = Recovery(context, clock)
            self._checkpoints = JobCheckpoints(context, self._taker, self._ids, self._recovery)
            self._life.completes = Completion(context, self._checkpoints.loop.take, self._recovery.lose).begin
        ask = self._checkpoints.loop.ask if self._checkpoints is not None else None
        self._fed = FedSources(job.operators.values(), self._hosting, self._life.status, ask, self._life.fail)
        self._changes = PlanChanges(
            lambda: self._plan.placed(self._life.elements()),
            host,
            self._journal,
            self._cluster.elastic,
            self._rescaling.change,
            self._checkpoints.change if self._checkpoints is not None else None,
            lambda: self._life.checkpoints.problem,
        )
        level = (job, self._cluster, host, self._life, self._plan, self._telemetry, self._rescaling)
        regions = region_level(*level, self._changes.change, saves=saves)
        self._loops = JobLoops(regions, budget_loop(job.name, job.config, self._life.elements, self._cluster.element))

    # --- the life of the job --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start every PE: all open their ports, then all connect, then all run.

        Raises:
            RayelasticError: A PE couldn't be started; none is left running.
        """
        plan = self._plan.now
        tell("job starts", job=self._job.name, pes=len(plan.pes))
        try:
            self._cluster.start(plan, tuple(plan.pes), self._job.restore)
        except BaseException as error:
            self._life.fail(Failure(f"the job could not be started: {error}", code=code_of(error)))
            raise
        self._journal.end(plan, began=self._life.wall())
        self._runs()

    def resume(self) -> None:
        """Take over a job whose coordinator has died: its elements have kept running; an open change is ended."""
        tell("coordinator restarted", job=self._job.name, level=logging.WARNING, incarnation=self._journal.incarnation)
        self._host.avoid(frozenset(self._journal.left))
        if self._journal.over is not None:
            state, reason = self._journal.over
            self._life.was_over(State(state), Failure(reason) if reason else None)
            self._cluster.adopt()
            self._cluster.kill()  # the previous coordinator may have died before it did so
            return
        try:
            self._cluster.adopt()
            if self._journal.plan is None:
                self._life.fail(Failure("its coordinator died before the job started", code=ErrorCode.PE_LOST))
                return
            if self._journal.renewing:
                self._runs()
                self._lose(self._plan.loss("its coordinator died while the job's secret was renewed"))
                return
            here = self._journal.open_change
            for pe in (*self._plan.now.pes, *(here.change.started_pes if here is not None else ())):
                if pe not in self._cluster.handles and not self._plan.is_dispensable(pe):
                    self._runs()
                    self._lose(self._plan.loss(f"PE {pe} was lost while nobody watched", pe))
                    return
            self._rescaling.take_over()
            self._taker.take_over(self._cluster.handles, self._highest_id)
        except (RayelasticError, TimeoutError) as error:
            self._runs()
            self._lose(self._plan.loss(f"its coordinator died, and the next one can't go on: {error}"))
            return
        self._runs()

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait until the job is finished, failed or cancelled.

        Args:
            timeout: seconds; `None` waits for ever.

        Returns:
            The status then; not final if the time ran out.
        """
        self._life.wait(timeout)
        if (status := self.status()).state.is_final:  # the caller may end this process before the elements end
            self._life.wait(END_TIMEOUT)
        return status

    def cancel(self, drain: bool = True) -> JobStatus:
        """Stop the job.

        Args:
            drain: stop the sources and let everything that they sent reach the sinks; otherwise stop at once.

        Returns:
            The status; with `drain`, the job is cancelled as soon as the last tuple arrived.
        """
        if self._life.cancels():
            if not drain:
                self._life.end(State.CANCELLED)
            elif self._fed.has_streams:  # its client doesn't wait for a micro-batch
                threading.Thread(target=self._end_sources, name=f"drain-{self._job.name}", daemon=True).start()
            else:
                self._end_sources()
        return self.status()

    def stop(self, snapshot: Snapshot) -> JobStatus:
        """Stop the job where it is, with a savepoint.

        All sources are held, their tuples are processed, and only then is anything written: the state is that of one
        moment. Sinks complete their output. If something fails before that, the job continues.

        Raises:
            StateError: It can't be saved; the message names the operator.
        """
        return self._save(Kind.STOP, snapshot)

    def snapshot(self, snapshot: Snapshot) -> JobStatus:
        """Take a savepoint, and continue.

        Raises:
            StateError: It can't be saved; the message names the operator.
        """
        return self._save(Kind.SAVEPOINT, snapshot)

    def close(self) -> None:
        """End all that still runs, and the threads that watch it; safe to repeat."""
        self._life.end(State.CANCELLED)
        self._loops.stop()
        self._watchers.join()
        if self._checkpoints is not None:
            self._checkpoints.close()
        self._journal.close()

    # --- changes of its plan ----------------------------------------------------------------------------------------

    def rescale(self, region: str, replicas: int) -> ExecPlan:
        """Change the number of a region's replicas while the job runs; see Rescaling.rescale."""
        return self._rescaling.rescale(region, replicas)

    def change(self, wanted: ExecPlan) -> ExecPlan:
        """Change to another plan; see PlanChanges.change."""
        return self._changes.change(wanted)

    def leave(self, node: str) -> ExecPlan:
        """Move the job away from a node, for good; see PlanChanges.leave."""
        return self._changes.leave(node)

    def renew_secret(self) -> None:
        """Give the job another secret; see PlanChanges.renew_secret."""
        self._changes.renew_secret()

    def recover(self) -> ExecPlan:
        """End the change that an earlier coordinator has begun, and return the plan in force then."""
        return self._rescaling.recover()

    def pause_elasticity(self, paused: bool) -> None:
        """Pause all decisions on threads, queues, channels and regions, or resume them."""
        self._journal.pauses(paused)
        self._life.paused = paused
        self._loops.pause(paused)
        tell_all(self._cluster.handles, lambda element: element.pause_levels(paused), CALL_TIMEOUT)

    # --- its reports --------------------------------------------------------------------------------------------

    def status(self) -> JobStatus:
        """Return the state of the job and of each PE, without asking them."""
        status = self._life.status()
        stop = self._journal.open_stop  # read last: a job that is stopped is saved before it finishes
        if status.state is not State.FINISHED or stop is None or not stop.saved:
            return status
        return replace(status, savepoint=shown_location(stop.location))

    def plan(self) -> ExecPlan:
        """Return the plan in force."""
        return self._plan.now

    def describe(self) -> dict[str, OperatorInfo]:
        """Return the kind, execution mode, reason and location of each operator."""
        return describe(self._job.operators)

    def metrics(self) -> JobMetrics:
        """Return the counters of each PE: current ones if it answers, otherwise the last ones."""
        return self._telemetry.metrics()

    def adaptations(self, since: Mapping[str, int]) -> tuple[Adaptation | RegionAdaptation, ...]:
        """Return the adaptations of the PEs' loops, and those of regions, in the order of time.

        Args:
            since: {PE: number of its first pass}; 0 if it isn't named.
        """
        adaptations: list[Adaptation | RegionAdaptation] = list(self._telemetry.adaptations(since))
        adaptations += self._loops.adaptations(since.get(REGIONS, 0))
        return tuple(sorted(adaptations, key=lambda adaptation: (adaptation.observation.time, adaptation.pe)))

    def results(self) -> dict[str, SinkResult]:
        """Return the sinks' results, by operator; PELostError: an earlier coordinator had them, and died."""
        return self._telemetry.results() or decoded(self._journal.results)

    def read_state(self, operator: str, key: tuple[Any, ...] | None, most: int) -> tuple[StateDescriptor, list[bytes]]:
        """Return the state of an operator of the running job; see CoordinatorApi.read_state."""
        check_readable(self._job.name, operator, self._life.state)
        with self._rescaling.standing_still():  # a migrating key would be at two places, or at none
            check_readable(self._job.name, operator, self._life.state)
            plan, handles = self._plan.now, self._cluster.handles
            hosts = [handles[pe] for pe, names in plan.pes.items() if operator in names and pe in handles]
            hosting = (handle.within(READ_TIMEOUT).read_state for handle in hosts)
            return read_state(self._job.operators, operator, key, most, hosting)

    # --- sources that are fed from outside ----------------------------------------------------------------------------

    def ingest_address(self, source: str) -> IngestAddress | None:
        """Return the address to push the rows of a source to that is fed from outside; see FedSources.address."""
        return self._fed.address(source)

    def finish_source(self, source: str, rows: dict[int, int]) -> None:
        """Record that a source that is fed from outside is complete; see IngestServer.finish."""
        self._hosting(source).finish_source(source, rows)

    def fail_source(self, source: str, reason: str, pushed_to: IngestAddress | None = None) -> bool:
        """Record that a source that is fed from outside failed; True: push it again. See FedSources.fail."""
        return self._fed.fail(source, reason, pushed_to)

    def secure_source(self, source: str, address: IngestAddress, epoch: Epoch, rows: dict[int, int]) -> Secured:
        """Wait until a checkpoint has the rows of a micro-batch; see FedSources.secure."""
        return self._fed.secure(source, address, epoch, rows)

    # -- implementation -------------------------------------------------------------------------------------------

    def _begins(self, handle: PEHandle, status: PEStatus) -> None:
        if self._journal.paused:
            tell_all({handle.pe: handle}, lambda element: element.pause_levels(True), CALL_TIMEOUT)
        self._watchers.watch(handle, status)
        self._loops.grows()

    def _save(self, kind: Kind, snapshot: Snapshot) -> JobStatus:
        fed = self._fed.saved() if kind is Kind.STOP else nullcontext()
        with self._life.saving(), self._rescaling.saving(), self._life.saving(), fed:  # it may fail while this waits
            plan, handles = self._plan.placed(self._life.elements()), self._cluster.handles
            record = self._taker.take(kind, plan, handles, snapshot, next(self._ids), self._keep)
            if kind is Kind.SAVEPOINT:
                record = replace(record, at=self._life.seconds, place=shown_location(str(snapshot.location)))
                self._life.checkpoints = self._life.checkpoints.with_record(record)
        return self.status()

    def _hosting(self, operator: str) -> ElementApi:
        pe = self._plan.now.pe_of(operator)
        if (handle := self._cluster.handles.get(pe)) is None:
            raise PELostError(f"PE {pe} doesn't exist at the moment", code=ErrorCode.PE_MISSING)
        return handle.within(CALL_TIMEOUT)

    def _end_sources(self) -> None:
        """End all sources, once the data that clients push is complete."""
        self._fed.await_complete()
        tell_all(self._cluster.handles, lambda element: element.stop(True), CALL_TIMEOUT)

    def _runs(self) -> None:
        self._rescaling.make_ready()
        self._life.paused = self._journal.paused
        self._loops.pause(self._journal.paused)
        self._loops.start()
        self._life.runs(self._journal.began)
        if self._checkpoints is not None:
            self._checkpoints.start()

    def _lose(self, failure: Failure) -> None:
        """Make the job recover from its last checkpoint, or fail if it has none."""
        if self._recovery is not None:
            self._recovery.lose(failure)
        else:
            self._life.fail(without_checkpoints(failure))

    def _ending(self, state: State, failure: Failure | None) -> None:
        """Record that the job is over, and end every PE."""
        if self._checkpoints is not None:
            self._checkpoints.halt()
        self._loops.halt()
        reason, operator, code = (failure.reason, failure.operator, failure.code) if failure else ("", None, None)
        try:
            left = encoded(self._telemetry.results()) if self._journal.outlives and state is State.FINISHED else {}
            self._journal.ends_job(state.value, reason, left)
        except JobExistsError:  # the elements are another coordinator's now
            return
        except Exception as error:  # the job ends, even if that can't be recorded
            tell("end not noted", job=self._job.name, level=logging.WARNING, reason=f"{error}")
        said: dict[str, Any] = {"state": state.value, "reason": reason, "operator": operator, "code": code}
        tell("job ended", job=self._job.name, level=logging.ERROR if failure else logging.INFO, **said)
        if self._checkpoints is not None:
            self._checkpoints.discard()
        self._cluster.kill()
        self._host.close()
