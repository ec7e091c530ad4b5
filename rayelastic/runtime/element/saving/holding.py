"""Holds the operators of a processing element at one moment of its streams, and saves what they have there.

Knows the scheduler and the operators of one element; the order among elements is the coordinator's to keep. Must not
know marks (marked.py).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayelastic.errors import SourceError, SourceLostError, StateError
from rayelastic.graph.edges.locations import LocationError
from rayelastic.runtime.element.saving.live_state import save, save_operator
from rayelastic.runtime.files.inputs import Input, Place, input_of, is_away
from rayelastic.runtime.files.local_checkpoints import is_local
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder, rows_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic import _native
    from rayelastic.runtime.element.hosted import HostedOperators
    from rayelastic.runtime.values.specs import PESpec

HOLD_TIMEOUT = 60.0  # seconds for what is under way to be processed, before a snapshot
# Seconds for which operators are held at most: a coordinator that hangs mustn't hold a job for ever. Longer than one
# that works may take to have all of them held and saved: otherwise some would go on while others are being saved.
HOLD_LEASE = 900.0


@dataclass(frozen=True, slots=True)
class Where:
    """Where a source is.

    Args:
        rows: records that it has given since the very first start.
        place: see Input.
        position: see Input.
    """

    rows: int
    place: Place | None
    position: Any


class Holding:
    """A scheduler that runs, as it is held.

    A coordinator that dies leaves its call behind: what that holds after another coordinator has released everything
    is let go at once, and nothing is released while it is saved.

    Args:
        spec: of the processing element.
        scheduler: of it.
        hosted: its operators.
        ids: their numbers in the scheduler.
        skipped: records that each source hadn't to give again.
    """

    def __init__(
        self,
        spec: PESpec,
        scheduler: _native.Scheduler,
        hosted: HostedOperators,
        ids: Mapping[str, int],
        skipped: Mapping[str, int],
    ) -> None:
        self.spec = spec
        self.scheduler = scheduler
        self.hosted = hosted
        self.ids = ids
        self.skipped = skipped
        self._releases = 0  # guarded by _lock, which is held while state is written
        self._lock = threading.Lock()
        self._all_held = False
        self._timer: threading.Timer | None = None

    def hold_sources(self) -> None:
        """Holds its sources at their positions.

        Raises:
            StateError: they don't come to a hold in time.
        """
        if not self.scheduler.wait_sent(HOLD_TIMEOUT):  # whoever sends marks lets the sources go
            raise StateError(f"{self.spec.pe} is still busy with the marks of the checkpoint before")
        busy = self._hold([self.ids[name] for name in self.hosted.sources], self._releases, HOLD_TIMEOUT)
        if busy:
            raise StateError(busy, hint="Try again when it is less busy")

    def hold_all(self, patience: float) -> str:
        """Holds all operators once everything that is here has been processed; returns what wasn't in time, if so.

        Args:
            patience: seconds for that.
        """
        busy = self._hold(self._numbers(), self._releases, patience)
        self._all_held = not busy
        return busy

    def let_go_on(self) -> None:
        """Lets all operators go again but for the sources: something is on its way yet."""
        with self._lock:
            self._all_held = False
            sources = {self.ids[name] for name in self.hosted.sources}
            self.scheduler.let_go([number for number in self._numbers() if number not in sources])

    def save(self, snapshot: Snapshot, epoch: int, alone: bool, stops: bool) -> Part:
        """Write the state of the operators, which are all held; at a checkpoint they go on then.

        Args:
            snapshot: where to.
            epoch: of the checkpoint, or a number that no checkpoint has.
            alone: whether it is a savepoint, which counts on no checkpoint.
            stops: whether the job ends here.

        Raises:
            StateError: it can't be saved; names the operator.
            SinkError: a sink can't write; names it.
        """
        with self._lock:
            if not self._all_held:
                raise StateError(f"{self.spec.pe} was released before it was saved: its coordinator has been replaced")
            return self._saved(snapshot, epoch, alone, stops)

    def _saved(self, snapshot: Snapshot, epoch: int, alone: bool, stops: bool) -> Part:
        final = frozenset(name for name in self.ids if self.is_final(name))
        folder, natives = SnapshotFolder(snapshot), self.hosted.natives
        folder.enter(own=is_local(folder.location, self.spec.job_id))
        places = {name: self.where(name) for name in self.hosted.sources}
        files, costs = save(self.spec.pe, folder, snapshot.key, self.spec.operators, natives, final)
        if stops:
            taken = {name: self._counted(self.ids[name]).tuples_in for name in self.hosted.sinks}
            written = self.hosted.stop(epoch, taken, folder)
        else:
            store = rows_folder(snapshot, alone=alone)
            store.prepare()
            written = self.hosted.prepare(epoch, store)
        return Part(
            {name: at.rows for name, at in places.items()},
            files,
            {name: self.input(name, at) for name, at in places.items()},
            written,
            costs,
        )

    def is_final(self, name: str) -> bool:
        """Tells whether an operator has ended: what it had to give it has given."""
        return self._counted(self.ids[name]).final

    def save_operator(self, name: str, snapshot: Snapshot) -> tuple[list[tuple[str, str]], int] | None:
        """Write the state of an operator, which is held; return its files and bytes, None: there is nothing to save.

        Raises:
            StateError: it can't be saved; names it.
        """
        if self.is_final(name):
            return None
        return save_operator(
            self.prefix(name),
            SnapshotFolder(snapshot),
            snapshot.key,
            self.hosted.by_name[name],
            self.hosted.natives[name],
        )

    def prefix(self, name: str) -> str:
        """How the names of the files of an operator begin."""
        number = next(number for number, spec in enumerate(self.spec.operators) if spec.name == name)
        return f"{self.spec.pe}-{number:04}"

    def where(self, source: str) -> Where:
        """Where a source that is held is."""
        operator, given = self.hosted.sources[source], self._given(source)
        return Where(self.skipped.get(source, 0) + given, operator.place(), operator.position(given))

    def input(self, source: str, where: Where) -> Input:
        """What a source reads, and where it was in it.

        Raises:
            SourceError: a file has shrunk or changed since the source was made: its position means nothing any more.
            StateError: it can't be looked at; names the source.
        """
        spec = self.hosted.by_name[source]
        try:
            for path, identity in self.hosted.sources[source].files.items():
                identity.check(path)
            return input_of(spec, where.place, where.position)
        except SourceError as error:
            raise error.at(source, spec.location) from None
        except (OSError, LocationError) as error:
            kind = SourceLostError if is_away(spec.body, error) else StateError
            raise kind(
                f"what it reads can't be looked at, so that it is known again: {error}",
                operator=source,
                location=spec.location,
                hint="Put its files back",
            ) from None

    def release(self, go_on: bool) -> None:
        """Lets all operators go again, or ends the sources where they were held."""
        with self._lock:
            self._releases += 1
            self._all_held = False
            self.end_lease()
            if not go_on:
                self.end_sources()
            self.scheduler.release(finish=go_on)

    def end_sources(self) -> None:
        """End the sources; what they sent goes on."""
        for name in self.hosted.sources:
            self.scheduler.end_source(self.ids[name])

    def _numbers(self) -> list[int]:
        """Of all operators, and of what brings and takes their tuples."""
        return list(range(len(self.scheduler.sample().operators)))

    def _hold(self, numbers: list[int], releases: int, patience: float) -> str:
        if self.scheduler.wait(0.0):  # it has ended: nothing moves there any more
            return ""
        self._lease()
        try:
            self.scheduler.hold(numbers, drain=True, timeout=patience)
        except TimeoutError as error:
            return f"{self.spec.pe}: {error}"
        with self._lock:
            if self._releases != releases:
                self.scheduler.release()
                raise StateError(f"{self.spec.pe} was released while it was held: its coordinator has been replaced")
        return ""

    def _lease(self) -> None:
        """Has everything go on by itself, should whoever holds it never come back."""
        self.end_lease()
        self._timer = threading.Timer(HOLD_LEASE, self.release, (True,))
        self._timer.daemon = True
        self._timer.start()

    def end_lease(self) -> None:
        """Has nothing go on by itself: whoever holds something has come back."""
        if self._timer is not None:
            self._timer.cancel()

    def _given(self, source: str) -> int:
        return self._counted(self.ids[source]).tuples_out

    def _counted(self, number: int) -> _native.OperatorSample:
        return self.scheduler.sample().operators[number]
