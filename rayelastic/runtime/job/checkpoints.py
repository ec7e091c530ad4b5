"""The checkpoints of a running job: takes them, restarts the job by another plan from one, and removes them."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.connectors.description import is_called_again
from rayelastic.connectors.files.locations import below
from rayelastic.errors import ChangeError, ErrorCode, PELostError, StateError, UnreadableError
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.checkpoint.location import (
    COMPLETE,
    Claim,
    key_of_job,
    key_of_location,
    local_folder,
    write_key,
)
from rayelastic.runtime.checkpoint.loop import CheckpointLoop
from rayelastic.runtime.checkpoint.protocol import Kind, Schedule, why_standstill
from rayelastic.runtime.fed_sources import is_streamed
from rayelastic.runtime.rescale.possible import with_homes
from rayelastic.runtime.rounds import call_all
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.snapshot import Snapshot
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.checkpoint.take import Taker
    from rayelastic.runtime.element.host import PEHandle, PEHost
    from rayelastic.runtime.job.context import JobContext
    from rayelastic.runtime.job.recovery import Recovery
    from rayelastic.runtime.values.checkpoint_record import CheckpointRecord, Copied
    from rayelastic.runtime.values.snapshot import Manifest
    from rayelastic.runtime.values.specs import JobSpec

WRITE_TIMEOUT = 10.0  # seconds for an ended job's checkpoint to end; each writer ends with its chunk
DISCARD_TIMEOUT = 2.0  # seconds for an element to remove files
SPARES = 1  # spare processes for a lost element, on the node with the most


class JobCheckpoints:
    """The checkpoints of one job.

    Args:
        context: The job.
        taker: Takes one.
        ids: Numbers them and the job's savepoints; used while the plan is held, so that they are taken in order.
        recovery: Restores one.

    Raises:
        StateError: Another job writes its checkpoints to their location.
    """

    def __init__(self, context: JobContext, taker: Taker, ids: Iterator[int], recovery: Recovery) -> None:
        job, settings, life = context.job, context.settings, context.life
        self._context = context
        self._taker = taker
        self._ids = ids
        self._recovery = recovery
        self._has_complete = False  # whether the location has the mark that a checkpoint was complete
        self._root = str(settings.location or local_folder(job.job_id))
        self._claim = None
        if settings.location is not None:
            self._claim = Claim(self._root, job.name, job.job_id, resumes=context.journal.incarnation > 1)
        again = tuple(spec.name for spec in job.operators.values() if is_called_again(spec))
        life.checkpoints = replace(life.checkpoints, called_again=again)
        self.loop = CheckpointLoop(job.name, Schedule(settings), self._take, life)

    def start(self) -> None:
        """Begin to take checkpoints; log if all sources are held for each one, and why."""
        life, job = self._context.life, self._context.job
        if reason := why_standstill(job):
            life.checkpoints = replace(life.checkpoints, standstill=reason)
            tell("checkpoints stand still", job=job.name, reason=reason)
        self._recovery.copies.prepare()
        self.loop.start()
        life.end_if_finished()  # the elements of a short job may have finished

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
        wanted = with_homes(self._context.placed(), wanted)
        with self.loop.alone():  # the new elements couldn't find a later checkpoint
            paused = self._recovery.replan(wanted, lambda: self._save(wanted), renewed=renewed)
            event = "secret renewed" if renewed else "plan changed"
            tell(event, job=self._context.job.name, paused=round(paused, 3))
            self.loop.take()
        return self._context.placed()

    def halt(self) -> None:
        """Allow no further checkpoint and no further attempt, because the job is over."""
        self.loop.halt()
        self._recovery.close()
        if self._claim is not None:
            self._claim.release()

    def discard(self) -> None:
        """Remove the checkpoints that no other job can restore, once the end of the job is recorded.

        Those of a job that failed after an outage stay, with their key, because nothing else can restore it.
        """
        context = self._context
        if context.settings.location is not None:
            return
        failure = context.life.failure
        if failure is not None and failure.outage and context.journal.checkpoints:  # its message has their location
            with suppress(StateError):
                write_key(self._root, key_of_job(context.job, context.settings))
            return
        call_all(context.cluster.handles, _discard)
        self._recovery.copies.discard()
        shutil.rmtree(self._root, ignore_errors=True)

    def close(self) -> None:
        """Wait, after `halt`, for running writes: nothing is written to the checkpoints' location from then on."""
        self.loop.join(WRITE_TIMEOUT)
        self._recovery.copies.close()

    # -- implementation -------------------------------------------------------------------------------------------

    def _save(self, wanted: ExecPlan) -> None:
        """Take a checkpoint, and place it where the elements of another plan find it."""
        context, before = self._context, self._context.life.checkpoints.taken
        self.loop.take()
        if context.life.checkpoints.taken == before:
            raise ChangeError(
                f"no checkpoint could be taken: {context.life.checkpoints.problem or 'the job has ended'}",
                code=ErrorCode.NO_CHECKPOINT,
            )
        if context.settings.location is None:
            self._recovery.copies.carry(self._snapshot(context.journal.checkpoints[-1].location), wanted)

    def _take(self) -> CheckpointRecord:
        context = self._context
        try:
            with context.rescaling.saving():
                plan, record = self._take_held()
        except StateError as error:
            if error.code is ErrorCode.CHANGE_HALF_DONE:  # nothing else undoes a change whose streams have ended
                self._recovery.lose(Failure(error.message, code=error.code))
            raise
        home = next((plan.nodes[pe] for pe in plan.pes if pe in plan.nodes), "")
        context.host.make_ready(SPARES, home)  # a job that ends before its first checkpoint needs none
        return record

    def _take_held(self) -> tuple[ExecPlan, CheckpointRecord]:
        """Take a checkpoint of the plan in force, which is held, but not while files are copied."""
        context, copies = self._context, self._recovery.copies
        self._check_claim()
        checkpoint, plan = next(self._ids), context.placed()
        snapshot = self._snapshot(below(self._root, f"{checkpoint:08}"))

        def copy(snapshot: Snapshot, manifest: Manifest, digest: str, plan: ExecPlan) -> Copied:
            with context.rescaling.released():
                return copies.copy(snapshot, manifest, digest, plan)

        handles, keep = context.cluster.handles, context.settings.keep
        record = self._taker.take(Kind.CHECKPOINT, plan, handles, snapshot, checkpoint, keep, copy)
        copies.prune()
        if not self._has_complete:
            with suppress(StateError):  # the next checkpoint tries again
                SnapshotFolder(Snapshot(self._root)).write(COMPLETE, b"a checkpoint was complete here\n")
                self._has_complete = True
        return plan, record

    def _snapshot(self, location: str) -> Snapshot:
        return Snapshot(location, key=key_of_job(self._context.job, self._context.settings))

    def _check_claim(self) -> None:
        """Fail the job if another one has taken over the location of its checkpoints, which makes both unusable."""
        try:
            if self._claim is not None:
                self._claim.check()
        except UnreadableError:
            raise
        except StateError as error:
            self._context.life.fail(Failure(error.message, code=error.code))
            raise


def _discard(handle: PEHandle) -> None:
    with suppress(PELostError, TimeoutError):  # its node may be gone, with its disk
        handle.within(DISCARD_TIMEOUT).disk.discard()


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
        return replace(settings, key=key_of_location(str(settings.location)))
    return settings
