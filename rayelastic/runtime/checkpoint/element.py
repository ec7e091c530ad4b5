"""The part of a PE in checkpoints: holds its operators, saves them there or at a checkpoint barrier, and commits.

At a standstill every operator is held at one moment, and the coordinator keeps the order among elements. A barrier
flows with the records: sources are held only while their positions are read and the barrier is sent after them. State
is copied at its barrier and written beside the stream (state_files.py). Sinks, and operators whose state can't be
copied so, are held from their barrier until they are saved; the others aren't held at all.
"""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.connectors.files.locations import LocationError
from rayelastic.connectors.fingerprints import input_of, is_away
from rayelastic.errors import ErrorCode, SinkError, SourceError, SourceLostError, StateError
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.checkpoint.files import SnapshotFolder, rows_of
from rayelastic.runtime.checkpoint.location import is_local, remove_local
from rayelastic.runtime.checkpoint.protocol import Kind
from rayelastic.runtime.checkpoint.state_files import OperatorFiles
from rayelastic.runtime.values.snapshot import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rayelastic.connectors.inputs import Place
    from rayelastic.connectors.sink import SinkOperator
    from rayelastic.connectors.source import SourceOperator
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.checkpoint.protocol import Flow
    from rayelastic.runtime.checkpoint.state_files import Written
    from rayelastic.runtime.values.snapshot import Snapshot
    from rayelastic.runtime.values.specs import PESpec

HOLD_TIMEOUT = 60.0  # seconds for tuples in flight to be processed, before a snapshot
# The longest time in seconds for which operators are held, so that a hanging coordinator doesn't hold a job for ever.
# It exceeds the time of a working one to hold and save all of them; otherwise some would continue during the saving.
HOLD_LEASE = 900.0
LOOK = 0.2  # seconds between two checks whether the checkpoint was aborted


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a held source.

    Args:
        rows: The number of records emitted since the job's first start.
        place: See Input.
        position: See Input.
    """

    rows: int
    place: Place | None
    position: Any


class Saving:
    """One save of the element: where it goes, and the part of the manifest as far as it is written."""

    def __init__(self, spec: PESpec, snapshot: Snapshot, *, alone: bool) -> None:
        self.began = time.monotonic()
        self.key = snapshot.key
        self.folder, self.rows = SnapshotFolder(snapshot), SnapshotFolder(rows_of(snapshot, alone=alone))
        self.part = Part({}, {}, {}, {}, {}, {})
        self.folder.enter(own=is_local(self.folder.location, spec.job_id))
        self.rows.prepare()

    def add(self, name: str, written: Written) -> None:
        """Record the files of an operator."""
        self.part.files[name], size = written
        self.part.costs[name] = (size, time.monotonic() - self.began)


class ElementCheckpoint:
    """Checkpoints of one PE. Its public methods are called from other processes, so their arguments are positional.

    A coordinator that dies leaves its call behind. What that call holds after another coordinator has released
    everything is released at once, and nothing is released while it is saved.

    Args:
        spec: The PE.
        sources: Its sources, once they are made.
        sinks: Its sinks, once they are made.
        natives: Its native operators, once they are built.
        flow: Returns the flow over its links.
        fail: Ends the PE, because a sink couldn't prepare.
    """

    def __init__(
        self,
        spec: PESpec,
        sources: Mapping[str, SourceOperator],
        sinks: Mapping[str, SinkOperator],
        natives: Mapping[str, _native.Operator],
        flow: Callable[[], Flow],
        fail: Callable[[SinkError], None],
    ) -> None:
        self.spec = spec
        self.flow = flow
        self._sources = sources
        self._sinks = sinks
        self._natives = natives
        self._fail = fail
        self._specs = {operator.name: operator for operator in spec.operators}
        keep = (spec.config.checkpoint or Checkpoint()).keep
        self._files = {
            operator.name: OperatorFiles(operator, f"{spec.pe}-{number:04}", keep)
            for number, operator in enumerate(spec.operators)
            if operator.state_form is not None
        }
        self._scheduler: _native.Scheduler | None = None  # once it runs
        self._ids: Mapping[str, int] = {}
        self._gathers: tuple[_native.Gather, ...] = ()
        self._skipped: Mapping[str, int] = {}
        self._releases = 0  # guarded by _lock, which is held while state is written
        self._lock = threading.Lock()
        self._all_held = False
        self._timer: threading.Timer | None = None
        self._abandoned = 0
        self._saved: tuple[int, Mapping[str, Position]] = (0, {})  # the last checkpoint, and the positions in it
        self._saving = threading.Lock()
        self._at_barrier = threading.RLock()  # held while an operator is saved there, so that it isn't released

    def begin(
        self,
        scheduler: _native.Scheduler,
        ids: Mapping[str, int],
        gathers: Sequence[_native.Gather],
        skipped: Mapping[str, int],
    ) -> None:
        """Save a scheduler from now on.

        Args:
            scheduler: The scheduler, which runs.
            ids: {operator: its number in it}.
            gathers: The gathers through which barriers arrive over several links.
            skipped: {source: records that it didn't have to emit again}.
        """
        self._ids, self._gathers, self._skipped = ids, tuple(gathers), skipped
        self._scheduler = scheduler

    # --- at a standstill ------------------------------------------------------------------------------------------

    def hold_sources(self) -> None:
        """Hold the sources at their positions."""
        if not self._running().wait_sent(HOLD_TIMEOUT):  # the sender of barriers releases the sources
            raise self._still_aligning()
        if busy := self._hold([self._ids[name] for name in self._sources], HOLD_TIMEOUT):
            raise StateError(busy, hint="Retry when it is less busy", code=ErrorCode.JOB_BUSY)

    def hold_all(self, patience: float) -> tuple[Flow, str]:
        """Hold all operators once every tuple in the element has been processed."""
        busy = self._hold(self._numbers(), patience)
        self._all_held = not busy
        return self.flow(), busy

    def release_operators(self) -> None:
        """Release all operators except the sources."""
        scheduler = self._running()
        with self._lock:
            self._all_held = False
            sources = {self._ids[name] for name in self._sources}
            scheduler.let_go([number for number in self._numbers() if number not in sources])

    def release(self, resume: bool) -> None:
        """Release all operators, or end the sources where they were held."""
        if (scheduler := self._scheduler) is None:
            return
        with self._lock:
            self._releases += 1
            self._all_held = False
            self._end_lease()
            if not resume:
                for name in self._sources:
                    scheduler.end_source(self._ids[name])
            scheduler.release(finish=resume)

    def save(self, snapshot: Snapshot, checkpoint: int, kind: Kind) -> Part:
        """Write the state of the operators, which are all held."""
        with self._failing(), self._lock:
            if not self._all_held:
                raise self._replaced("released before it was saved")
            saving = Saving(self.spec, snapshot, alone=kind.is_alone)
            positions = {name: self._position(name) for name in self._sources}
            self._saved = checkpoint, positions
            for name, native in self._natives.items():
                if not self._sample(name).final:
                    try:
                        native.settle()  # merges what other threads did; at a barrier it already has
                    except _native.StateError as error:
                        raise self._specs[name].state_error(f"{error}") from None
                    self._write(saving, name)
            for name, sink in self._sinks.items():
                with naming(self._specs[name], SinkError):
                    if kind is not Kind.STOP:
                        saving.part.outputs[name] = sink.prepare(checkpoint, saving.rows)
                    elif (output := sink.stop(checkpoint, self._sample(name).tuples_in, saving.folder)) is not None:
                        saving.part.outputs[name] = output
            self._add_sources(saving.part, positions)
            return saving.part

    # --- at barriers ----------------------------------------------------------------------------------------------

    def save_at_barriers(self, snapshot: Snapshot, checkpoint: int, patience: float) -> tuple[Part, float]:
        """Make the sources send the barrier of a checkpoint, and save every operator at it."""
        self._running()
        with self._failing():
            if not self._saving.acquire(timeout=patience):
                raise StateError(f"{self.spec.pe} is still busy with the previous checkpoint", code=ErrorCode.JOB_BUSY)
            try:
                self.abandon(checkpoint - 1)
                return self._save_at_barriers(snapshot, checkpoint, time.monotonic() + patience)
            except BaseException:
                self.abandon(checkpoint)  # a writer ends with its chunk
                raise
            finally:
                self._saving.release()

    def abandon(self, checkpoint: int) -> None:
        """Ignore barriers up to that of a checkpoint."""
        if self._scheduler is None:
            return
        self._abandoned = max(self._abandoned, checkpoint)
        for gather in self._gathers:
            gather.abandon_epochs(checkpoint)
        with self._at_barrier:  # a sink that continued while it prepares would write into the file that is being closed
            self._scheduler.abandon_epochs(checkpoint)

    def _save_at_barriers(self, snapshot: Snapshot, checkpoint: int, until: float) -> tuple[Part, float]:
        scheduler, saving = self._running(), Saving(self.spec, snapshot, alone=False)
        positions, paused = self._send_barriers(checkpoint)
        self._saved = checkpoint, positions
        self._add_sources(saving.part, positions)

        def write(name: str, copy: _native.StateCopy) -> None:
            check = lambda: self._check_wanted(checkpoint)  # noqa: E731
            saving.add(name, self._files[name].write_copy(copy, saving.folder, checkpoint, check))

        with ThreadPoolExecutor(1, f"copies-{self.spec.pe}") as beside:
            copies: list[Future[None]] = []
            try:
                for name, number in self._arrivals(checkpoint, until):
                    if (copy := scheduler.take_copy(number, checkpoint)) is not None:
                        if name in self._files:
                            copies.append(beside.submit(write, name, copy))
                        continue
                    since = time.monotonic()
                    with self._at_barrier:
                        self._check_wanted(checkpoint)
                        if not self._sample(name).final and self._write(saving, name):
                            saving.part.held[name] = time.monotonic() - since
                        if name in self._sinks:
                            with naming(self._specs[name], SinkError):
                                saving.part.outputs[name] = self._sinks[name].prepare(checkpoint, saving.rows)
                    scheduler.let_go([number])
                for copied in copies:
                    copied.result()
            except BaseException:
                self.abandon(checkpoint)  # before the pool waits for its writers
                raise
        return saving.part, paused

    def _send_barriers(self, checkpoint: int) -> tuple[dict[str, Position], float]:
        """Make the sources send the barrier; return their positions, and the seconds for which they were held."""
        scheduler, sources = self._running(), [self._ids[name] for name in self._sources]
        began = time.monotonic()
        try:
            self.hold_sources()
            if len(sources) == 1:  # until now it worked or was blocked; of several, the first was held
                began = time.monotonic()
            positions = {name: self._position(name) for name in self._sources}
            if not scheduler.send_epoch(sources, checkpoint):
                raise self._still_aligning()
        except BaseException:
            scheduler.let_go(sources)
            raise
        finally:
            self._end_lease()
        return positions, time.monotonic() - began

    def _arrivals(self, checkpoint: int, until: float) -> Iterator[tuple[str, int]]:
        """Yield the operators to save, each once it is held at the barrier, copied, or at its end."""
        scheduler, names = self._running(), {self._ids[name]: name for name in self._natives}
        left = set(operators_with_state(self._natives, self._sinks, self._ids))
        while left:
            arrived = scheduler.wait_epoch(sorted(left), checkpoint, max(0.0, min(LOOK, until - time.monotonic())))
            if not arrived:
                self._check_wanted(checkpoint)
                if scheduler.wait(0.0):
                    problem = f"{self.spec.pe} ended while it was saved"
                    raise StateError(problem, code=ErrorCode.CHECKPOINT_ABANDONED)
                if time.monotonic() >= until:
                    raise StateError(
                        "the checkpoint barrier didn't arrive in time behind queued tuples",
                        operator=names[min(left)],
                        hint="Add replicas, or do less for each tuple",
                        code=ErrorCode.JOB_BUSY,
                    )
            yield from ((names[number], number) for number in arrived)
            left.difference_update(arrived)

    def _check_wanted(self, checkpoint: int) -> None:
        if self._abandoned >= checkpoint:
            problem = f"checkpoint {checkpoint} was abandoned by another PE"
            raise StateError(problem, code=ErrorCode.CHECKPOINT_ABANDONED)

    # --- complete ones --------------------------------------------------------------------------------------------

    def commit(self, checkpoint: int, locations: Collection[str] | None = None) -> None:
        """Show what the sinks prepared for a checkpoint, which is complete, and those before.

        Call it from any thread, while the operators run; safe to repeat. If it is omitted, the next commit shows it, or
        the job that restores the checkpoint.

        Raises:
            SinkError: A sink can't show it, after the others have; the message names it.
        """
        if locations is not None:
            remove_local(self.spec.job_id, [location.rstrip("/").rpartition("/")[2] for location in locations])
        if self._scheduler is not None:
            with self._saving:
                for files in self._files.values():  # which later checkpoints may share
                    files.complete(checkpoint)
        saved, positions = self._saved
        for name, at in positions.items() if saved == checkpoint else ():
            self._sources[name].complete(at.position)
        failures: list[SinkError] = []
        for name, sink in self._sinks.items():
            try:
                with naming(self._specs[name], SinkError):
                    sink.commit(checkpoint)
            except SinkError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    # -- implementation -------------------------------------------------------------------------------------------

    def _running(self) -> _native.Scheduler:
        if self._scheduler is None:
            raise StateError(f"{self.spec.pe} hasn't started and has no state", code=ErrorCode.PE_NOT_STARTED)
        return self._scheduler

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """End the PE at once if a sink couldn't prepare: no later checkpoint could succeed, nor its end."""
        try:
            yield
        except SinkError as error:
            self._fail(error)
            raise

    def _write(self, saving: Saving, name: str) -> bool:
        """Write the state of a held operator; return whether it has any."""
        state = self._natives[name].state
        if state is None or name not in self._files:
            return False
        saving.add(name, self._files[name].write(state, saving.folder, saving.key))
        return True

    def _position(self, source: str) -> Position:
        operator, emitted = self._sources[source], self._sample(source).tuples_out
        return Position(self._skipped.get(source, 0) + emitted, operator.place(), operator.position(emitted))

    def _add_sources(self, part: Part, positions: Mapping[str, Position]) -> None:
        """Add the positions of the sources, and what they read.

        Raises:
            SourceError: A file has shrunk or changed since the source was made, so its position is meaningless.
            StateError: The file can't be accessed; the message names the source.
        """
        for name, at in positions.items():
            spec = self._specs[name]
            try:
                with naming(spec, SourceError):
                    for path, identity in self._sources[name].files.items():
                        identity.check(path)
                    part.positions[name], part.inputs[name] = at.rows, input_of(spec, at.place, at.position)
            except (OSError, LocationError) as error:
                kind = SourceLostError if is_away(spec.body, error) else StateError
                raise kind(
                    f"its input can't be compared with that of the checkpoint: {error}",
                    operator=name,
                    location=spec.location,
                    hint="Put its files back",
                    code=None if kind is SourceLostError else ErrorCode.CHANGED_INPUT,
                ) from None

    def _numbers(self) -> list[int]:
        """Return the numbers of all operators, and of the routers and link ends around them."""
        return list(range(len(self._running().sample().operators)))

    def _sample(self, name: str) -> _native.OperatorSample:
        return self._running().sample().operators[self._ids[name]]

    def _hold(self, numbers: list[int], patience: float) -> str:
        """Hold operators until they are released or the lease ends; return why not, if not in time."""
        scheduler, releases = self._running(), self._releases
        if scheduler.wait(0.0):  # it has ended: no tuple moves any more
            return ""
        self._end_lease()
        self._timer = threading.Timer(HOLD_LEASE, self.release, (True,))  # the coordinator may never return
        self._timer.daemon = True
        self._timer.start()
        try:
            scheduler.hold(numbers, drain=True, timeout=patience)
        except TimeoutError as error:
            return f"{self.spec.pe}: {error}"
        with self._lock:
            if self._releases != releases:
                scheduler.release()
                raise self._replaced("released while it was held")
        return ""

    def _end_lease(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _replaced(self, what: str) -> StateError:
        return StateError(f"{self.spec.pe} was {what}: it has a new coordinator", code=ErrorCode.COORDINATOR_REPLACED)

    def _still_aligning(self) -> StateError:
        problem = f"{self.spec.pe} is still aligning the barriers of the previous checkpoint"
        return StateError(problem, code=ErrorCode.JOB_BUSY)


def operators_with_state(
    natives: Mapping[str, _native.Operator], sinks: Collection[str], ids: Mapping[str, int]
) -> list[int]:
    """Return the numbers of the operators that are saved at barriers: those with state, and sinks."""
    return [ids[name] for name, native in natives.items() if native.state is not None or name in sinks]


@contextlib.contextmanager
def naming(spec: OperatorSpec, *kinds: type[SinkError | SourceError | StateError]) -> Iterator[None]:
    """Name an operator in errors of some kinds that are raised inside the context."""
    try:
        yield
    except kinds as error:
        raise error.at(spec.name, spec.location) from error.__cause__
