"""The checkpoints and the recovery of a running job; a job without checkpoints has neither."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.connectors.description import is_called_again
from rayelastic.connectors.files.locations import below
from rayelastic.errors import ChangeError, ErrorCode, PELostError, StateError, UnreadableError
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.checkpoint.alignment import why_standstill
from rayelastic.runtime.checkpoint.loop import CheckpointLoop
from rayelastic.runtime.checkpoint.saving import Taken, take_checkpoint
from rayelastic.runtime.checkpoint_place import Claim, keep_key, kept_key, note_complete
from rayelastic.runtime.fed_sources import is_streamed
from rayelastic.runtime.job.completion import Completion
from rayelastic.runtime.job.job_cluster import in_threads
from rayelastic.runtime.job.recovery import Recovery, checkpoint_key
from rayelastic.runtime.local_checkpoints import discard_local, local_folder
from rayelastic.runtime.rescale.carrying import carry
from rayelastic.runtime.rescale.possible import with_homes
from rayelastic.runtime.snapshot import Snapshot
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.checkpoint.savepoint import Epochs
    from rayelastic.runtime.element.host import PEHandle, PEHost
    from rayelastic.runtime.job.job_cluster import JobCluster
    from rayelastic.runtime.job.life import JobLife
    from rayelastic.runtime.job.plan_in_force import PlanInForce
    from rayelastic.runtime.job.rescaling import Rescaling
    from rayelastic.runtime.job.telemetry import JobTelemetry
    from rayelastic.runtime.rescale.change_journal import ChangeJournal
    from rayelastic.runtime.values.checkpoint_record import CheckpointCounters
    from rayelastic.runtime.values.specs import JobSpec

__all__ = ["Safety", "settings_of"]


class Safety:
    """Checkpoints and recovery of one job.

    Args:
        job: The job.
        settings: The settings of its checkpoints.
        host: Keeps a spare process for one that is lost.
        journal: Records complete checkpoints.
        cluster: Its elements.
        life: Its life.
        plan: The plan in force.
        telemetry: Keeps the results of elements.
        rescaling: Holds the plan while a checkpoint is taken.
        recovery: Restores one.
        epochs: Numbers them.

    Raises:
        StateError: Another job writes its checkpoints there.
    """

    def __init__(
        self,
        job: JobSpec,
        settings: Checkpoint,
        host: PEHost,
        journal: ChangeJournal,
        cluster: JobCluster,
        life: JobLife,
        plan: PlanInForce,
        telemetry: JobTelemetry,
        rescaling: Rescaling,
        recovery: Recovery,
        epochs: Epochs,
    ) -> None:
        self._job = job
        self._host = host
        self._settings = settings
        self._cluster = cluster
        self._journal = journal
        self._life = life
        self._plan = plan
        self._rescaling = rescaling
        self._recovery = recovery
        self._epochs = epochs
        self._noted = False  # that one was complete
        self._claim = None
        if settings.location is not None:
            another = journal.incarnation > 1
            self._claim = Claim(str(settings.location), job.name, job.job_id, resumes=another)
        again = tuple(spec.name for spec in job.operators.values() if is_called_again(spec))
        life.checkpoints = replace(life.checkpoints, called_again=again)
        self._loop = CheckpointLoop(
            job.name, settings.every, self._take, lambda: life.state, self._counters, age=lambda: life.seconds
        )
        end = Completion(job, cluster, life, plan, telemetry, rescaling, journal, self._loop.take, self.lose)
        life.completes = end.begin

    def start(self) -> None:
        """Begin to take checkpoints; log if all sources are held for each one, and why."""
        if reason := why_standstill(self._job):
            self._life.checkpoints = replace(self._life.checkpoints, standstill=reason)
            tell("checkpoints stand still", job=self._job.name, reason=reason)
        self._loop.start()
        self._life.end_if_finished()  # the elements of a short job may have finished

    def ask(self, timeout: float) -> bool:
        """Request a checkpoint as soon as possible, and wait for it; see CheckpointLoop.ask."""
        return self._loop.ask(timeout)

    def lose(self, failure: Failure) -> None:
        """Make the job recover after a loss, or fail."""
        self._recovery.lose(failure)

    def change(self, wanted: ExecPlan, renewed: bool = False) -> ExecPlan:
        """Restart the job by another plan, from a checkpoint that is taken now: all elements are replaced.

        Args:
            wanted: The plan, with as many replicas of each region as now.
            renewed: Whether the job also gets another secret.

        Returns:
            The plan in force then; a later loss restores it.

        Raises:
            ChangeError: It failed; the job continues by the plan that it had.
        """
        wanted = with_homes(self._plan.placed(self._life.elements()), wanted)
        with self._loop.alone():  # the new elements couldn't find a later checkpoint
            paused = self._recovery.replan(wanted, lambda: self._save(wanted), renewed=renewed)
            tell("secret renewed" if renewed else "plan changed", job=self._job.name, paused=round(paused, 3))
            self._loop.take()
        return self._plan.placed(self._life.elements())

    def _save(self, wanted: ExecPlan) -> None:
        """Take a checkpoint, and place it where the elements of another plan find it."""
        before = self._life.checkpoints.taken
        self._loop.take()
        if self._life.checkpoints.taken == before:
            raise ChangeError(
                f"no checkpoint could be taken: {self._life.checkpoints.problem or 'the job has ended'}",
                code=ErrorCode.NO_CHECKPOINT,
            )
        if self._settings.location is None:
            saved = Snapshot(self._journal.checkpoints[-1].location, key=checkpoint_key(self._job, self._settings))
            carry(self._job, saved, self._plan.now, wanted, self._cluster.handles, self._host)

    def halt(self) -> None:
        """Allow no further checkpoint and no further attempt, because the job is over."""
        self._loop.halt()
        self._recovery.close()
        if self._claim is not None:
            self._claim.release()

    def discard(self) -> None:
        """Remove the checkpoints that no other job can restore, once the end of the job is recorded.

        Those of a job that failed after an outage stay, with their key, because nothing else can restore it.
        """
        failure = self._life.failure
        if self._settings.location is not None:
            return
        if (
            failure is not None and failure.outage and self._journal.checkpoints
        ):  # the failure's message has their location
            with suppress(StateError):
                keep_key(str(local_folder(self._job.job_id)), checkpoint_key(self._job, self._settings))
            return
        in_threads(_discard, self._cluster.handles.values())
        discard_local(self._job.job_id)

    def close(self) -> None:
        """Wait, after `halt`, for running writes: nothing is written to the checkpoints' location from then on."""
        self._loop.join(WRITE_TIMEOUT)

    def _take(self) -> Taken:
        location = self._settings.location
        root = str(location) if location is not None else str(local_folder(self._job.job_id))
        with self._rescaling.standing_still():
            self._check_claim()
            number = self._epochs.next()
            at = Snapshot(below(root, f"{number:08}"), key=checkpoint_key(self._job, self._settings))
            plan, handles = self._plan.placed(self._life.elements()), self._cluster.handles
            taken = take_checkpoint(self._job, plan, handles, at, number, self._settings.keep, self._journal)
            self._note_complete(root)
        home = next((plan.nodes[pe] for pe in plan.pes if pe in plan.nodes), "")
        self._host.make_ready(SPARES, home)  # a job that ends before its first checkpoint needs none
        return taken

    def _check_claim(self) -> None:
        """Fail the job if another one has taken over the location of its checkpoints, which makes both unusable."""
        try:
            if self._claim is not None:
                self._claim.check()
        except UnreadableError:
            raise
        except StateError as error:
            self._life.fail(Failure(error.message, code=error.code))
            raise

    def _note_complete(self, root: str) -> None:
        if not self._noted:
            with suppress(StateError):  # the next checkpoint tries again
                note_complete(root)
                self._noted = True

    def _counters(self, now: CheckpointCounters | None) -> CheckpointCounters:
        if now is not None:
            self._life.checkpoints = now
        return self._life.checkpoints


def _discard(handle: PEHandle) -> None:
    with suppress(PELostError, TimeoutError):  # its node may be gone, with its disk
        handle.within(DISCARD_TIMEOUT).discard_checkpoints()


WRITE_TIMEOUT = 10.0  # seconds for an ended job's checkpoint to end; each writer ends with its chunk
DISCARD_TIMEOUT = 2.0  # seconds for an element to remove files
SPARES = 1  # spare processes for a lost element, on the node with the most


def settings_of(job: JobSpec, host: PEHost) -> Checkpoint | None:
    """Return how a job takes checkpoints; None: not at all.

    By default a job takes checkpoints if it can lose an element, or if a client pushes a stream into it. Such a client
    drops the rows that a checkpoint has.

    Raises:
        StateError: The key beside the checkpoints can't be read or written.
    """
    settings = job.config.checkpoint
    if settings is None and (host.can_lose or any(map(is_streamed, job.operators.values()))):
        settings = Checkpoint()
    if not isinstance(settings, Checkpoint):
        return None
    if settings.key is None and settings.location is not None:
        return replace(settings, key=kept_key(str(settings.location)))
    return settings
