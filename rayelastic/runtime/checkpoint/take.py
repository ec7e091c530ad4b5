"""Takes a checkpoint or savepoint of a job, at one moment of its streams, as protocol.py decides.

That moment flows through the streams with the records, as a checkpoint barrier; if it can't, all operators are held.
The journal records each step before it is done, so that another coordinator completes the work of one that dies. Knows
the elements by their handles, and nothing of changes of plan.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, PELostError, RayelasticError, SinkError, StateError
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.checkpoint.protocol import Kind, check_complete, remains, why_standstill
from rayelastic.runtime.checkpoint.restore import automatic_names, seal_of
from rayelastic.runtime.checkpoint.standstill import Standstill
from rayelastic.runtime.journal import SavedAt
from rayelastic.runtime.rounds import ask_all, outcomes, tell_all
from rayelastic.runtime.state.descriptor import descriptors_of
from rayelastic.runtime.values.checkpoint_record import CheckpointRecord, Copied
from rayelastic.runtime.values.snapshot import Manifest, Snapshot
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.checkpoint.standstill import Element, Handle
    from rayelastic.runtime.journal import ChangeJournal
    from rayelastic.runtime.values.snapshot import Part
    from rayelastic.runtime.values.specs import JobSpec

    Copy = Callable[[Snapshot, Manifest, str, ExecPlan], Copied]

STOP_PATIENCE = 60.0  # seconds for tuples in flight to be processed, before a savepoint
CHECKPOINT_PATIENCE = 20.0  # the same before a checkpoint, which another one follows
SAVE_TIMEOUT = 600.0  # seconds for a PE to write its state
BARRIER_PATIENCE = 60.0  # seconds for barriers to reach all operators, which run meanwhile
COMMIT_TIMEOUT = 60.0  # seconds for its sinks to show what they prepared


@dataclass(frozen=True, slots=True)
class Taker:
    """Takes the checkpoints and savepoints of one job.

    Args:
        job: The job.
        journal: Its journal; a checkpoint is complete once it is recorded there.
    """

    job: JobSpec
    journal: ChangeJournal

    def take(
        self,
        kind: Kind,
        plan: ExecPlan,
        running: Mapping[str, Handle],
        snapshot: Snapshot,
        checkpoint: int,
        keep: int,
        copy: Copy | None = None,
    ) -> CheckpointRecord:
        """Save the job; it continues, also if it can't be saved, unless it is stopped.

        Args:
            kind: What to take.
            plan: The plan in force, placed.
            running: The running elements, by id.
            snapshot: The destination.
            checkpoint: Its id, higher than all before.
            keep: The number of complete checkpoints to keep. 0: the job takes none, and no recovery can roll back
                what sinks prepared for a savepoint. So they show it at once.
            copy: Copies a checkpoint to second nodes. Sinks commit only after that, so what they show survives a node.

        Returns:
            Its record, without the time since the job's start.

        Raises:
            StateError: It can't be saved; the message names the operator.
            PELostError: An element is lost.
            TimeoutError: An element doesn't answer.
        """
        folder, began = SnapshotFolder(snapshot), time.monotonic()
        handles = {pe: running[pe] for pe in plan.pes if pe in running}
        if len(handles) < len(plan.pes):
            raise StateError(f"a PE of job '{self.job.name}' is missing", code=ErrorCode.PE_MISSING)
        folder.prepare()
        recorded = False  # whether the line may be there that it is complete
        try:
            self.journal.stops(str(snapshot.location))
            if kind.is_alone or why_standstill(self.job):
                parts, paused = self._save_at_standstill(kind, handles, snapshot, checkpoint)
            else:
                parts, paused = self._save_at_barriers(handles, snapshot, checkpoint)
            manifest = self._manifest(parts, plan, snapshot, kind)
            digest = folder.write_manifest(manifest)
            if kind.is_alone:
                _read_back(folder, parts)
            copied = copy(snapshot, manifest, digest, plan) if copy is not None else Copied()
            recorded = True
            in_force = self.journal.plan or plan
            plan = in_force if in_force.epoch > plan.epoch else plan  # it may have changed while files were copied
            outdated = self._record(kind, SavedAt(checkpoint, str(snapshot.location), copied.nodes), plan, keep)
        except BaseException:
            if not recorded:
                _remove(folder, kind)
            if kind is Kind.STOP:
                Standstill(self.job.name, handles, STOP_PATIENCE).end(resume=True)
            resumed = self._record_resumption()
            if recorded and not remains(kind, resumed=resumed):
                _remove(folder, kind)
            raise
        if kind is Kind.STOP:
            Standstill(self.job.name, handles, STOP_PATIENCE).end(resume=False)
        elif kind is Kind.CHECKPOINT:
            self.commit(handles, checkpoint, [saved.location for saved in self.journal.checkpoints])
            for saved in outdated:
                SnapshotFolder(Snapshot(saved.location)).remove()
        elif not keep:
            self.commit(handles, checkpoint)
        return replace(CheckpointRecord.of_parts(checkpoint, time.monotonic() - began, paused, parts), copied=copied)

    def commit(self, handles: Mapping[str, Handle], checkpoint: int, locations: Collection[str] | None = None) -> None:
        """Make all sinks show what they prepared until a checkpoint, which is complete.

        Args:
            handles: The elements, by id.
            checkpoint: The checkpoint's id.
            locations: Those of the checkpoints that can be restored; nodes remove others from their disks. None: none.
        """
        _, problems = outcomes(
            handles, lambda handle: handle.within(COMMIT_TIMEOUT).checkpoint.commit(checkpoint, locations)
        )
        for pe, problem in problems.items():
            if isinstance(problem, SinkError):  # the checkpoint is complete all the same: the next commit repeats this
                tell("rows not shown yet", job=self.job.name, level=logging.WARNING, pe=pe, reason=f"{problem}")
            elif not isinstance(problem, PELostError | TimeoutError):  # its watcher reports a loss
                raise problem

    def take_over(self, handles: Mapping[str, Handle], highest: int) -> None:
        """Complete what a dead coordinator has begun: a saved job ends where it is held, another one continues.

        Args:
            handles: The job's elements, by id.
            highest: The highest id that a checkpoint of it may have.
        """
        if self.journal.checkpoints:  # it may have died before the sinks were notified
            self.commit(handles, self.journal.checkpoints[-1].checkpoint)
        if (stop := self.journal.open_stop) is None:
            return
        if not stop.saved:  # no caller knows it as a savepoint
            SnapshotFolder(Snapshot(stop.location)).discard()
        tell_all(handles, lambda element: element.checkpoint.release(not stop.saved), COMMIT_TIMEOUT)
        _abandon(handles, highest)
        if not stop.saved:
            self.journal.resumes()

    # -- implementation -------------------------------------------------------------------------------------------

    def _save_at_standstill(
        self, kind: Kind, handles: Mapping[str, Handle], snapshot: Snapshot, checkpoint: int
    ) -> tuple[list[Part], float]:
        began = time.monotonic()
        held = Standstill(self.job.name, handles, STOP_PATIENCE if kind.is_alone else CHECKPOINT_PATIENCE)
        try:
            held.begin()
            saved = ask_all(handles, lambda element: element.checkpoint.save(snapshot, checkpoint, kind), SAVE_TIMEOUT)
        finally:
            if kind is not Kind.STOP:
                held.end(resume=True)
        return list(saved.values()), time.monotonic() - began

    def _save_at_barriers(
        self, handles: Mapping[str, Handle], snapshot: Snapshot, checkpoint: int
    ) -> tuple[list[Part], float]:
        problems: list[BaseException] = []

        def save(element: Element) -> tuple[Part, float] | None:
            try:
                return element.checkpoint.save_at_barriers(snapshot, checkpoint, BARRIER_PATIENCE)
            except BaseException as problem:
                problems.append(problem)
                _abandon(handles, checkpoint)  # the barriers that the others wait for won't arrive
                return None

        # All at once: none has its barriers before the others have sent theirs.
        saved = [part for part in ask_all(handles, save, SAVE_TIMEOUT, len(handles)).values() if part is not None]
        if problems:
            raise problems[0]
        lost = ask_all(handles, lambda element: element.status().lost_peers, COMMIT_TIMEOUT)
        for pe, peers in lost.items():
            for peer in handles.keys() & peers.keys():  # a barrier may have overtaken the tuples that were lost there
                problem = f"the link between {pe} and {peer} of job '{self.job.name}' was lost: {peers[peer]}"
                raise StateError(problem, code=ErrorCode.LINK_FAILED)
        return [part for part, _ in saved], max(held for _, held in saved)

    def _manifest(self, parts: Sequence[Part], plan: ExecPlan, snapshot: Snapshot, kind: Kind) -> Manifest:
        operators = self.job.operators
        forms = {name: form for name, spec in operators.items() if (form := spec.state_form) is not None}
        check_complete(forms, plan, parts)
        return Manifest.of_parts(
            self.job.name,
            forms,
            parts,
            signed=snapshot.key is not None,
            plan=plan.to_record(),
            alone=kind.is_alone,
            shapes=descriptors_of(operators.values()),
            automatic=automatic_names(operators.values()),
            seals={name: seal for name, spec in operators.items() if (seal := seal_of(spec))},
        )

    def _record(self, kind: Kind, at: SavedAt, plan: ExecPlan, keep: int) -> Sequence[SavedAt]:
        """Record that it is complete; return the checkpoints that aren't kept any more."""
        if kind is Kind.CHECKPOINT:
            return self.journal.checkpointed(at, plan, keep)
        if kind is Kind.STOP:
            self.journal.saved()
        else:
            self.journal.resumes()  # without that line another coordinator would discard it as a failed one
        return ()

    def _record_resumption(self) -> bool:
        """Record that the job continues; return whether that succeeded, and log if not: it follows another failure.

        Without that line the next coordinator releases what isn't held any more, which is harmless.
        """
        try:
            self.journal.resumes()
        except (OSError, RayelasticError, RuntimeError) as error:
            tell("line not noted", job=self.job.name, level=logging.WARNING, line="goes on", reason=f"{error}")
            return False
        return True


def _abandon(handles: Mapping[str, Handle], checkpoint: int) -> None:
    """Make elements ignore barriers up to that of a checkpoint; the next one ends it where an element is lost."""
    tell_all(handles, lambda element: element.checkpoint.abandon(checkpoint), COMMIT_TIMEOUT)


def _remove(folder: SnapshotFolder, kind: Kind) -> None:
    """Remove one that isn't complete; the folder of a savepoint is its user's."""
    if kind.is_alone:
        folder.discard()
    else:
        folder.remove()


def _read_back(folder: SnapshotFolder, parts: Sequence[Part]) -> None:
    """Raise StateError unless a later run can read what was written, while the job still has its state."""
    try:
        folder.manifest()
        for part in parts:
            written = next(iter(part.files.values()), ())
            for _ in folder.chunks(written[:1]):
                pass
    except StateError as error:
        hint = "Pass a folder that every node of the cluster sees"
        problem = f"the saved state can't be read back: {error}"
        raise StateError(problem, hint=hint, code=ErrorCode.BAD_LOCATION) from None
