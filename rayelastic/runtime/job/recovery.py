"""Restarts a job from the last complete checkpoint when a PE is lost, with new elements.

All elements roll back: their state is newer than the checkpoint, and the tuples in flight between them are lost. Links
of the new ones have a higher epoch, so that tuples of an old one are rejected (D3). A change of plan that isn't
possible while the job runs works the same way, from a checkpoint that is taken for it.

While a server or store outside the job doesn't answer, the job waits for it, which doesn't count. How often a job
restarts, and how long it waits, is decided in checkpoint/restarts.py.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.locations import shown_location
from rayelastic.errors import (
    ChangeError,
    DamagedError,
    ErrorCode,
    PELostError,
    SinkTakenError,
    StateError,
    UnreadableError,
    code_of,
    is_outage,
)
from rayelastic.errors.invariants import invariant
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_text import counted
from rayelastic.runtime.checkpoint.location import key_of_job
from rayelastic.runtime.checkpoint.restarts import Restarts, next_pause
from rayelastic.runtime.job.copies import Copies
from rayelastic.runtime.job.job_cluster import CALL_TIMEOUT
from rayelastic.runtime.rounds import ask_all
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.snapshot import Snapshot
from rayelastic.runtime.values.specs import SECRET_BYTES
from rayelastic.runtime.values.status import State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from rayelastic.runtime.job.context import JobContext
    from rayelastic.runtime.journal import SavedAt
    from rayelastic.runtime.values.snapshot import Manifest

LOOK = 0.5  # seconds between two checks whether the waiting job is cancelled
PATIENT = 6  # attempts in a row, of eight seconds and more, until an unreadable checkpoint counts as damaged


class Recovery:
    """The restarts of one job.

    Args:
        context: The job.
        clock: Returns seconds, monotonic.
    """

    def __init__(self, context: JobContext, clock: Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._job, self._life, self._journal = context.job, context.life, context.journal
        self._clock = clock
        self.copies = Copies(context)
        self._lock = threading.Lock()
        self._restarts = Restarts(context.settings)
        self._underway = False
        self._again: Failure | None = None
        self._at_work = False  # whether elements of the current attempt run
        self._crashed = False  # whether one of those has been lost since
        self._tries = 0  # attempts in a row
        self._closed = threading.Event()

    def lose(self, failure: Failure) -> None:
        """Make the job recover after a loss, or fail if it can't or mayn't; return at once."""
        with self._lock:
            if self._underway:  # of a new element, or of an old one that was detected late
                self._again = failure
                self._crashed = self._crashed or self._at_work
                return
            if self._life.is_cancelling or self._life.state.is_final or self._closed.is_set():
                problem = failure
            elif not failure.outage and (self._is_too_often() or self._is_in_vain()):
                problem = replace(failure, reason=f"{failure.reason}; {self._so_often()}")
            else:
                problem = None
                self._underway = True
        if problem is not None:
            self._life.fail(problem)
        else:
            self._begin(failure)

    def replan(self, wanted: ExecPlan, prepare: Callable[[], None], *, renewed: bool = False) -> float:
        """Restart the job by another plan, from the checkpoint that has just been taken, without other changes.

        Args:
            wanted: The plan, with as many replicas of each region as the one in force.
            prepare: Called before an element is ended, while losses are deferred.
            renewed: Whether the new elements get another secret.

        Returns:
            The seconds from the end of the old elements until the new ones ran.

        Raises:
            ChangeError: It failed: the job continues, or restores the checkpoint, by the plan that it had.
        """
        with self._lock:
            if self._underway or self._life.state is not State.RUNNING or self._life.is_cancelling:
                raise ChangeError(
                    "the job is restoring or ending: its plan stays",
                    hint="Retry when it runs",
                    code=ErrorCode.JOB_NOT_RUNNING,
                )
            self._underway, self._again = True, None
        began, problem = self._clock(), None
        try:
            prepare()
            began = self._clock()
            if self._again is None:
                over = (
                    None if self._life.recovers() else ChangeError("the job has ended", code=ErrorCode.JOB_NOT_RUNNING)
                )
                problem = over or self._attempt(Failure("its plan changes"), wanted, renewed=renewed)
        except Exception as error:
            problem = error
        with self._lock:
            lost: Failure | None = self._again
            recovers = lost is not None or (problem is not None and self._life.is_recovering)
            self._underway = recovers
        if recovers:
            failure = lost or Failure(f"its plan couldn't be changed: {problem}", code=ErrorCode.CHANGE_FAILED)
            self._begin(failure)
        if recovers or problem is not None:
            raise ChangeError(f"the plan stays as it was: {problem or lost}") from problem
        return self._clock() - began

    def close(self) -> None:
        """Allow no further attempt."""
        self._closed.set()

    # -- implementation -------------------------------------------------------------------------------------------

    def _begin(self, failure: Failure) -> None:
        threading.Thread(target=self._run, args=(failure,), name=f"recover-{self._job.name}", daemon=True).start()

    def _is_in_vain(self) -> bool:
        return self._restarts.is_in_vain(self._life.checkpoints.taken)

    def _is_too_often(self) -> bool:
        return self._restarts.is_too_often(self._clock())

    def _so_often(self) -> str:
        return f"it has gone back {counted(self._life.checkpoints.restarts, 'time')}"

    def _works(self) -> None:
        self._at_work = True

    def _run(self, failure: Failure) -> None:
        pause, self._tries, cause = 0.0, 0, failure
        while self._life.recovers():
            if cause.outage:
                if not self._waits_for(cause):
                    return
            else:
                self._restarts.count(self._clock())
            if self._tries == 0 or not cause.outage:
                counters = self._life.checkpoints
                self._life.checkpoints = replace(counters, restarts=counters.restarts + 1)
            self._tries += 1
            with self._lock:
                self._again, self._at_work, self._crashed = None, False, False
            problem = self._attempt(failure)
            with self._lock:
                again: Failure | None = self._again
                if problem is None and again is None:
                    self._ends_outage()
                    self._underway = False
                    return
                # An element that is lost before it runs, or doesn't answer, indicates a bad node, not bad data.
                crashed = self._crashed or (self._at_work and isinstance(problem, PELostError))
                cause = _cause(problem, again)
                is_over = (crashed and self._is_in_vain()) or self._is_too_often() or self._life.is_cancelling
                is_gone = problem is not None and code_of(problem) is ErrorCode.CHECKPOINTS_GONE
                is_over = is_over or is_gone or isinstance(problem, SinkTakenError)
            failure = again or failure
            if cause.outage and not self._life.is_cancelling:
                continue
            if is_over or self._closed.wait(pause):
                why = f"{failure.reason}; {self._so_often()}"
                if problem is not None:
                    why = f"{failure.reason}; {problem}" if is_gone else f"{why}, the last time: {problem}"
                self._life.fail(
                    replace(failure, reason=why, code=ErrorCode.CHECKPOINTS_GONE if is_gone else failure.code)
                )
                return
            pause = next_pause(pause)

    def _waits_for(self, cause: Failure) -> bool:
        """Wait before the next attempt while something outside doesn't answer; False: the job is over."""
        restarts, now, timeout = self._restarts, self._clock(), self._context.settings.outage_timeout
        begins = restarts.fails_outside(cause, self._life.checkpoints.taken, now, self._life.wall())
        outage = self._life.outage = restarts.outage
        assert outage is not None
        if begins:
            reason, operator = cause.reason, cause.operator
            event: dict[str, Any] = {"operator": operator, "reason": reason, "timeout": timeout}
            tell("job waits for an outage to end", job=self._job.name, level=logging.WARNING, **event)
        if restarts.is_over_budget(now) and outage.attempts:
            waited, tried = round(restarts.waited(now)), counted(outage.attempts, "attempt")
            why = f"{cause.reason}; it didn't answer for {waited} s, in {tried}. {self._how_to_restore()}"
            self._life.fail(replace(cause, reason=why))
            return False
        if outage.pause:
            with self._context.rescaling.standing_still():
                self._context.cluster.give_up_all()  # what they would emit meanwhile is discarded
        until = self._clock() + outage.pause
        while (left := until - self._clock()) > 0 and not self._life.is_cancelling:
            if self._closed.wait(min(left, LOOK)):
                break
        if self._life.is_cancelling or self._closed.is_set():
            self._life.fail(cause)
            return False
        return True

    def _ends_outage(self) -> None:
        if self._life.outage is not None:
            waited = round(self._restarts.runs(self._clock()), 3)
            tell("outage is over", job=self._job.name, seconds=waited, attempts=self._life.outage.attempts + 1)
            self._life.outage = None

    def _how_to_restore(self) -> str:
        """Return a sentence on what to do when the outage is over."""
        location = self._context.settings.location
        if not self._journal.checkpoints:
            return "No checkpoint was complete: run the job again when it answers"
        if location is None:
            folder = self._journal.checkpoints[-1].location.rpartition("/")[0]
            of_nodes = "" if len(set(self._context.plan.now.nodes.values())) < 2 else " of each node"
            then = f"run the job again with restore={folder!r} when it answers"
            return f"The last checkpoint stays in {folder}{of_nodes}: {then}"
        shown = shown_location(str(location))
        return f'The last checkpoint stays in {shown}: run the job again with restore="latest" when it answers'

    def _attempt(self, failure: Failure, wanted: ExecPlan | None = None, *, renewed: bool = False) -> Exception | None:
        """Restart once, by another plan if one is passed; return why it failed, if it did."""
        began, at = self._clock(), None
        try:
            with self._context.rescaling.standing_still():
                if renewed:  # recorded first, so that no later coordinator uses the old one
                    self._journal.renews(secrets.token_bytes(SECRET_BYTES))
                if wanted is not None:
                    self._context.telemetry.read(self._context.cluster.handles)
                self._context.cluster.give_up_all()
                self._life.keeps(())  # replicas of an open change began after all were removed
                if renewed:
                    self._context.cluster.secret = self._journal.secret
                self._context.telemetry.forget()
                if (stop := self._journal.open_stop) is not None and stop.saved:
                    self._journal.resumes()  # it was lost before it had ended there
                at, saved, manifest = self._last_whole()
                plan = self._plan_of(manifest, wanted)
                self._journal.end(plan)
                self._context.rescaling.forget()
                self._context.plan.now = plan
                recovers = wanted is None and self._life.outage is None
                tell(
                    "job recovers" if wanted is None else "job changes its plan",
                    job=self._job.name,
                    level=logging.WARNING if recovers else logging.INFO,  # an outage has been logged
                    reason=failure.reason,
                    checkpoint=at.checkpoint if at is not None else 0,
                )
                deliver = partial(self.copies.deliver, at) if at is not None else None
                self._context.cluster.start(plan, tuple(plan.pes), saved, manifest, self._works, deliver)
                self._life.runs_again()
                if self._life.is_cancelling:  # the old ones were stopped
                    ask_all(self._context.cluster.handles, lambda element: element.stop(True), CALL_TIMEOUT)
        except Exception as error:  # the job must not hang after any error
            if isinstance(error, StateError) and at is not None and not self._leave_out(at, error):
                return _final(error)
            return error
        tell("job runs again", job=self._job.name, seconds=round(self._clock() - began, 3))
        self._life.end_if_finished()
        if not self._life.state.is_final:
            self._context.host.make_ready(1)
        return None

    def _last_whole(self) -> tuple[SavedAt | None, Snapshot | None, Manifest | None]:
        """Return the newest checkpoint whose manifest is undamaged; without any, where the job began.

        Raises:
            StateError: There were some, and all are damaged.
        """
        while self._journal.checkpoints:
            newest = self._journal.checkpoints[-1]
            try:
                return newest, *self._read(newest)
            except StateError as error:
                if not self._leave_out(newest, error):
                    raise _final(error) from error
        return None, self._job.restore, None

    def _leave_out(self, damaged: SavedAt, error: StateError) -> bool:
        """Fall back to the checkpoint before a damaged one; False: there is none, and the start is no substitute.

        An unreadable one isn't given up at once, because its store may answer again soon.
        """
        unreadable = isinstance(error, UnreadableError)
        if (unreadable and self._tries < PATIENT) or len(self._journal.checkpoints) < 2:
            return False
        if unreadable:
            try:
                self._read(self._journal.checkpoints[-2])
            except StateError:  # the whole store is unreachable
                return False
        tell(
            "checkpoint damaged", job=self._job.name, level=logging.ERROR, number=damaged.checkpoint, reason=f"{error}"
        )
        self._journal.without(damaged, self._context.plan.now)
        return True

    def _read(self, saved: SavedAt) -> tuple[Snapshot, Manifest]:
        snapshot = Snapshot(saved.location, key=key_of_job(self._job, self._context.settings))
        return snapshot, self.copies.manifest(saved, snapshot)

    def _plan_of(self, manifest: Manifest | None, wanted: ExecPlan | None = None) -> ExecPlan:
        """Return the plan of a checkpoint, or the requested one, in a new epoch, on existing nodes."""
        here = self._journal.open_change
        epochs = [self._context.plan.now.epoch, here.change.epoch if here is not None else 0]
        invariant(here is None or here.change.old.epoch < here.change.epoch, "a change has the next epoch", epochs)
        if wanted is not None:
            return replace(wanted, epoch=max(epochs) + 1)
        plan = ExecPlan.from_dict(manifest.plan) if manifest is not None else self._job.plan
        alive = {node.name for node in self._context.host.nodes()}
        nodes = {**plan.nodes, **self._context.plan.now.nodes}
        nodes = {pe: node for pe, node in nodes.items() if pe in plan.pes and node in alive}
        return replace(plan.with_nodes(nodes), epoch=max(epochs) + 1)


def _final(error: StateError) -> StateError:
    """Return the error after which nothing is left to restore; of an unreadable store, which may return, its own."""
    if not isinstance(error, DamagedError):
        return error
    problem = f"no checkpoint can be restored: {error.message}"
    return StateError(problem, hint=error.hint, code=ErrorCode.CHECKPOINTS_GONE)


def _cause(problem: Exception | None, again: Failure | None) -> Failure:
    """Return the reason for the next attempt."""
    if is_outage(problem):
        return Failure(f"{problem}", getattr(problem, "operator", None), outage=True, code=code_of(problem))
    return again if again is not None else Failure(f"{problem}", code=code_of(problem))
