"""Saves a job at one moment of its streams, when it is stopped with a savepoint or at a checkpoint.

The journal records each step before it is done, so that another coordinator completes the work of one that dies. Knows
the elements by their handles, and nothing of changes of plan.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, PELostError, RayelasticError, SinkError, StateError
from rayelastic.runtime.checkpoint.alignment import why_standstill
from rayelastic.runtime.checkpoint.standstill import Standstill, ask_all
from rayelastic.runtime.rescale.change_journal import SavedAt
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder
from rayelastic.runtime.state.names import told_of
from rayelastic.runtime.values.checkpoint_record import CheckpointRecord
from rayelastic.runtime.values.status import State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.element.host import PEHandle
    from rayelastic.runtime.rescale.change_journal import ChangeJournal
    from rayelastic.runtime.values.specs import JobSpec

__all__ = [
    "COMMIT_TIMEOUT",
    "SAVE_TIMEOUT",
    "STOP_PATIENCE",
    "Taken",
    "check_savable",
    "commit",
    "end_stop",
    "forms_of",
    "note_going_on",
    "read_back",
    "save_job",
    "take_checkpoint",
]

STOP_PATIENCE = 60.0  # seconds for tuples in flight to be processed, before a savepoint
CHECKPOINT_PATIENCE = 20.0  # the same before a checkpoint, which another one follows
SAVE_TIMEOUT = 600.0  # seconds for a PE to write its state
MARK_PATIENCE = 60.0  # seconds for barriers to reach all operators, which run meanwhile
COMMIT_TIMEOUT = 60.0  # seconds for its sinks to show what they prepared


@dataclass(frozen=True, slots=True)
class Taken:
    """A complete checkpoint.

    Args:
        epoch: Its number.
        seconds: Its duration.
        paused: The part of that for which sources were held.
        bytes: Bytes of state that were written.
        slowest: The operator whose state was written last; empty: none has any.
        slowest_seconds: The time until it was.
        held: The operator that was held longest while its state was written; empty: none was.
        held_seconds: How long it was held.
    """

    epoch: int
    seconds: float
    paused: float
    bytes: int = 0
    slowest: str = ""
    slowest_seconds: float = 0.0
    held: str = ""
    held_seconds: float = 0.0

    @staticmethod
    def of(parts: Sequence[Part], epoch: int, seconds: float, paused: float) -> Taken:
        """Make the record of a checkpoint with such parts."""
        costs = [(ended, name, size) for part in parts for name, (size, ended) in part.costs.items()]
        ended, slowest, _ = max(costs, default=(0.0, "", 0))
        longest, held = max(((one, name) for part in parts for name, one in part.held.items()), default=(0.0, ""))
        return Taken(epoch, seconds, paused, sum(size for _, _, size in costs), slowest, ended, held, longest)

    def record(self, at: float, place: str = "") -> CheckpointRecord:
        """Return its record; `at`: seconds from the job's start to its completion, `place`: that of a savepoint."""
        return CheckpointRecord(
            self.epoch,
            at,
            self.seconds,
            self.paused,
            self.bytes,
            self.slowest,
            self.slowest_seconds,
            self.held,
            self.held_seconds,
            place,
        )


def check_savable(job: JobSpec, state: State) -> None:
    """Reject a job that can't be saved now.

    Args:
        job: The job.
        state: Its state.

    Raises:
        StateError: It can't be saved.
    """
    if state is not State.RUNNING:
        raise StateError(f"job '{job.name}' is {state.value}: nothing to save", code=ErrorCode.JOB_NOT_RUNNING)


def save_job(
    job: JobSpec,
    plan: ExecPlan,
    running: Mapping[str, PEHandle],
    snapshot: Snapshot,
    epoch: int,
    journal: ChangeJournal,
) -> None:
    """Hold a job, save it and end its sources where they are; it continues if it can't be saved.

    Args:
        job: The job.
        plan: The plan in force.
        running: Its elements.
        snapshot: The destination.
        epoch: A number that no checkpoint has.
        journal: The job's journal, so that another coordinator completes what this one has begun.

    Raises:
        StateError: It can't be saved; the message names the operator.
    """
    folder = SnapshotFolder(snapshot)
    folder.prepare()
    held = Standstill(job.name, {pe: running[pe] for pe in plan.pes}, STOP_PATIENCE)
    journal.stops(str(snapshot.location))
    noting = False
    try:
        held.begin()
        parts = list(held.each(lambda element: element.save(snapshot, epoch, False, True), SAVE_TIMEOUT).values())
        folder.write_manifest(
            job.name, forms_of(job), parts, plan.to_dict(), alone=True, told=told_of(job.operators.values())
        )
        read_back(folder, parts)
        noting = True
        journal.saved()
    except BaseException:
        if not noting:
            folder.discard()
        held.end(go_on=True)
        if note_going_on(job.name, journal) and noting:  # before that, another coordinator might have relied on it
            folder.discard()
        raise
    held.end(go_on=False)


def note_going_on(job: str, journal: ChangeJournal) -> bool:
    """Record that a job continues; return whether that succeeded, and log if not. An earlier failure is more important.

    Args:
        job: The job's name.
        journal: Its journal; without that line the next coordinator releases what isn't held any more, which is
            harmless.
    """
    try:
        journal.goes_on()
    except (OSError, RayelasticError, RuntimeError) as error:
        tell("line not noted", job=job, level=logging.WARNING, line="goes on", reason=f"{error}")
        return False
    return True


def take_checkpoint(
    job: JobSpec,
    plan: ExecPlan,
    running: Mapping[str, PEHandle],
    snapshot: Snapshot,
    epoch: int,
    keep: int,
    journal: ChangeJournal,
) -> Taken:
    """Save a job at one moment of its streams; it continues, also if it can't be saved.

    That moment flows through the streams with the records, as a checkpoint barrier; if it can't (alignment.py), all
    operators are held.

    Args:
        job: The job.
        plan: The plan in force.
        running: Its elements.
        snapshot: The destination.
        epoch: The number of the checkpoint.
        keep: The number of complete ones to keep.
        journal: The job's journal; the checkpoint is complete once it is recorded there.

    Raises:
        StateError: It can't be saved; the message names the operator.
        PELostError: An element is lost.
        TimeoutError: An element doesn't answer.
    """
    folder, began = SnapshotFolder(snapshot), time.monotonic()
    handles = {pe: running[pe] for pe in plan.pes if pe in running}
    if len(handles) < len(plan.pes):
        raise StateError(f"a PE of job '{job.name}' is missing", code=ErrorCode.PE_MISSING)
    folder.prepare()
    try:
        journal.stops(str(snapshot.location))
        cut = _standing_still if why_standstill(job) else _at_marks
        parts, paused = cut(job, handles, snapshot, epoch)
        folder.write_manifest(job.name, forms_of(job), parts, plan.to_dict(), told=told_of(job.operators.values()))
    except BaseException:
        folder.remove()
        note_going_on(job.name, journal)
        raise
    try:
        outdated = journal.checkpointed(SavedAt(epoch, str(snapshot.location)), plan, keep)
    except BaseException:  # the line may have been written: what it names stays until a later one is complete
        note_going_on(job.name, journal)
        raise
    commit(job.name, handles.values(), epoch, [one.location for one in journal.checkpoints])
    for one in outdated:
        SnapshotFolder(Snapshot(one.location)).remove()
    return Taken.of(parts, epoch, time.monotonic() - began, paused)


def _standing_still(
    job: JobSpec, handles: Mapping[str, PEHandle], snapshot: Snapshot, epoch: int
) -> tuple[list[Part], float]:
    began = time.monotonic()
    held = Standstill(job.name, handles, CHECKPOINT_PATIENCE)
    try:
        held.begin()
        parts = list(held.each(lambda element: element.save(snapshot, epoch), SAVE_TIMEOUT).values())
    finally:
        held.end(go_on=True)
    return parts, time.monotonic() - began


def _at_marks(
    job: JobSpec, handles: Mapping[str, PEHandle], snapshot: Snapshot, epoch: int
) -> tuple[list[Part], float]:
    problems: list[BaseException] = []

    def save(element: ElementApi) -> tuple[Part, float] | None:
        try:
            return element.save_at_marks(snapshot, epoch, MARK_PATIENCE)
        except BaseException as problem:
            problems.append(problem)
            abandon(handles.values(), epoch)  # the barriers that the others wait for won't arrive
            return None

    # All at once: none has its barriers before the others have sent theirs.
    saved = [part for part in ask_all(handles, save, SAVE_TIMEOUT, len(handles)).values() if part is not None]
    if problems:
        raise problems[0]
    lost = ask_all(handles, lambda element: element.status().lost_peers, COMMIT_TIMEOUT)
    for pe, peers in lost.items():
        for peer in handles.keys() & peers.keys():  # a barrier may have overtaken the tuples that were lost there
            raise StateError(
                f"the link between {pe} and {peer} of job '{job.name}' was lost: {peers[peer]}",
                code=ErrorCode.LINK_FAILED,
            )
    return [part for part, _ in saved], max(held for _, held in saved)


def abandon(handles: Iterable[PEHandle], epoch: int) -> None:
    """Ignore barriers of epochs up to one; operators that are held at them continue."""
    for handle in handles:
        with suppress(PELostError, TimeoutError):  # its watcher reports a loss; the next epoch ends this one, too
            handle.within(COMMIT_TIMEOUT).abandon_epochs(epoch)


def commit(job: str, handles: Iterable[PEHandle], epoch: int, kept: Sequence[str] | None = None) -> None:
    """Make all sinks show what they prepared until a checkpoint, which is complete.

    Args:
        job: The job's name.
        handles: Its elements.
        epoch: The checkpoint's epoch.
        kept: The locations of the checkpoints that can be restored; nodes remove others from their disks. None: none.
    """
    for handle in handles:
        try:
            with suppress(PELostError, TimeoutError):  # its watcher reports a loss; the next commit covers this one
                handle.within(COMMIT_TIMEOUT).commit(epoch, kept)
        except SinkError as error:  # the checkpoint is complete all the same, and the next commit covers this one, too
            tell("rows not shown yet", job=job, level=logging.WARNING, pe=handle.pe, reason=f"{error}")


def end_stop(job: str, journal: ChangeJournal, handles: Sequence[PEHandle], before: int) -> None:
    """Complete what a dead coordinator has begun: a saved job ends where it is held, another one continues.

    Args:
        job: The job's name.
        journal: Its journal.
        handles: Its elements.
        before: The highest number that a checkpoint of it may have.
    """
    if journal.checkpoints:  # it may have died before the sinks were notified
        commit(job, handles, journal.checkpoints[-1].epoch)
    if (stop := journal.open_stop) is None:
        return
    if not stop.saved:  # no caller knows it as a savepoint
        SnapshotFolder(Snapshot(stop.location)).discard()
    for handle in handles:
        with suppress(PELostError, TimeoutError):  # its watcher reports a loss
            handle.within(COMMIT_TIMEOUT).release(not stop.saved)
    abandon(handles, before)
    if not stop.saved:
        journal.goes_on()


def read_back(folder: SnapshotFolder, parts: Sequence[Part]) -> None:
    """Raise StateError unless a later run can read what was written, while the job still has its state."""
    try:
        folder.manifest()
        for part in parts:
            written = next(iter(part.files.values()), ())
            for _ in folder.chunks(written[:1]):
                pass
    except StateError as error:
        raise StateError(
            f"the saved state can't be read back: {error}",
            hint="Pass a folder that every node of the cluster sees",
            code=ErrorCode.BAD_LOCATION,
        ) from None


def forms_of(job: JobSpec) -> dict[str, str]:
    """Return the form of the state of each operator that keeps any."""
    forms = {name: spec.state_form for name, spec in job.operators.items()}
    return {name: form for name, form in forms.items() if form is not None}
