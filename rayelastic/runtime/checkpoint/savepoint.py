"""Takes a savepoint of a running job, at one moment of its streams; the job continues.

Unlike a checkpoint, a savepoint refers to nothing else, is never removed, and no recovery restores it. So what sinks
prepared for it is shown with the next checkpoint, or at once if the job takes none.
"""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, StateError
from rayelastic.runtime.checkpoint.saving import (
    SAVE_TIMEOUT,
    STOP_PATIENCE,
    Taken,
    commit,
    forms_of,
    note_going_on,
    read_back,
)
from rayelastic.runtime.checkpoint.standstill import Standstill
from rayelastic.runtime.snapshot import Snapshot, SnapshotFolder
from rayelastic.runtime.state.names import told_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.settings.checkpoint import Checkpoint
    from rayelastic.runtime.element.host import PEHandle
    from rayelastic.runtime.rescale.change_journal import ChangeJournal
    from rayelastic.runtime.values.specs import JobSpec

__all__ = ["Epochs", "take_savepoint"]

SKIPPED = 1000  # numbers skipped after a coordinator died, because folders and barriers of its attempts may be left


class Epochs:
    """The numbers of a job's checkpoints and savepoints, each higher than all that its sinks have received.

    Args:
        job: The job.
        settings: The settings of its checkpoints; None: it takes none.
        journal: Knows those of earlier coordinators.

    Raises:
        StateError: Their location can't be accessed, or written to.
    """

    def __init__(self, job: JobSpec, settings: Checkpoint | None, journal: ChangeJournal) -> None:
        last = max((one.epoch for one in journal.checkpoints), default=job.epoch)
        if settings is not None and settings.location is not None and not journal.checkpoints:
            # Earlier runs may have left checkpoints there, which would otherwise count as newer ones.
            place = SnapshotFolder(Snapshot(settings.location))
            last = max(last, *(int(name) for name in place.numbered()[:1]), 0)
            place.try_out()
        self.before = last + SKIPPED * max(0, journal.incarnation - 1)  # no earlier coordinator exceeded it
        self._numbers = count(self.before + 1)

    def next(self) -> int:
        """Return the next one; call it while the plan is held, so that they are taken in order."""
        return next(self._numbers)


def take_savepoint(
    job: JobSpec,
    plan: ExecPlan,
    running: Mapping[str, PEHandle],
    snapshot: Snapshot,
    epoch: int,
    journal: ChangeJournal,
    *,
    show: bool,
) -> Taken:
    """Hold a job, save it and release it; it continues as well if it can't be saved.

    Args:
        job: The job.
        plan: The plan in force.
        running: Its elements.
        snapshot: The destination.
        epoch: Its number among the job's checkpoints.
        journal: The job's journal, so that another coordinator releases what this one holds.
        show: Whether sinks show at once what they prepared, because no recovery can roll it back.

    Returns:
        The record of the savepoint.

    Raises:
        StateError: It can't be saved; the message names the operator.
        PELostError: An element is lost.
        TimeoutError: An element doesn't answer.
    """
    folder, began = SnapshotFolder(snapshot), time.monotonic()
    folder.prepare()
    handles = {pe: running[pe] for pe in plan.pes if pe in running}
    if len(handles) < len(plan.pes):
        raise StateError(f"a PE of job '{job.name}' is missing", code=ErrorCode.PE_MISSING)
    held = Standstill(job.name, handles, STOP_PATIENCE)
    journal.stops(str(snapshot.location))
    try:
        try:
            held.begin()
            parts = list(held.each(lambda element: element.save(snapshot, epoch, True), SAVE_TIMEOUT).values())
        finally:
            held.end(go_on=True)
            paused = time.monotonic() - began
        folder.write_manifest(
            job.name, forms_of(job), parts, plan.to_dict(), alone=True, told=told_of(job.operators.values())
        )
        read_back(folder, parts)
        journal.goes_on()  # without that line another coordinator would discard it as a failed one
    except BaseException:
        folder.discard()
        note_going_on(job.name, journal)
        raise
    if show:
        commit(job.name, handles.values(), epoch)
    return Taken.of(parts, epoch, time.monotonic() - began, paused)
