"""Holds the operators of a PE at one moment of its streams, and saves their state there.

Knows the scheduler and the operators of one element; the coordinator keeps the order among elements. Must not know
barriers (marked.py).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.locations import LocationError
from rayelastic.connectors.fingerprints import input_of, is_away
from rayelastic.connectors.inputs import Input, Place
from rayelastic.errors import ErrorCode, SourceError, SourceLostError, StateError
from rayelastic.runtime.element.saving.live_state import save, save_operator
from rayelastic.runtime.local_checkpoints import is_local
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder, rows_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic import _native
    from rayelastic.runtime.element.hosted import HostedOperators
    from rayelastic.runtime.values.specs import PESpec

HOLD_TIMEOUT = 60.0  # seconds for tuples in flight to be processed, before a snapshot
# The longest time in seconds for which operators are held, so that a hanging coordinator doesn't hold a job for ever.
# It exceeds the time of a working one to hold and save all of them; otherwise some would continue during the saving.
HOLD_LEASE = 900.0


@dataclass(frozen=True, slots=True)
class Where:
    """The position of a source.

    Args:
        rows: Records that it has emitted since the job's first start.
        place: See Input.
        position: See Input.
    """

    rows: int
    place: Place | None
    position: Any


class Holding:
    """Holds a running scheduler.

    A coordinator that dies leaves its call behind. What that call holds after another coordinator has released
    everything is released at once, and nothing is released while it is saved.

    Args:
        spec: The PE.
        scheduler: Its scheduler.
        hosted: Its operators.
        ids: Their numbers in the scheduler.
        skipped: Records that each source didn't have to emit again.
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
        """Hold its sources at their positions.

        Raises:
            StateError: They aren't held in time.
        """
        if not self.scheduler.wait_sent(HOLD_TIMEOUT):  # the sender of barriers releases the sources
            raise StateError(
                f"{self.spec.pe} is still aligning the barriers of the previous checkpoint", code=ErrorCode.JOB_BUSY
            )
        busy = self._hold([self.ids[name] for name in self.hosted.sources], self._releases, HOLD_TIMEOUT)
        if busy:
            raise StateError(busy, hint="Retry when it is less busy", code=ErrorCode.JOB_BUSY)

    def hold_all(self, patience: float) -> str:
        """Hold all operators once every tuple in the element has been processed; return why not, if not in time.

        Args:
            patience: Seconds to wait.
        """
        busy = self._hold(self._numbers(), self._releases, patience)
        self._all_held = not busy
        return busy

    def let_go_on(self) -> None:
        """Release all operators except the sources, because some tuple is still in flight."""
        with self._lock:
            self._all_held = False
            sources = {self.ids[name] for name in self.hosted.sources}
            self.scheduler.let_go([number for number in self._numbers() if number not in sources])

    def save(self, snapshot: Snapshot, epoch: int, alone: bool, stops: bool) -> Part:
        """Write the state of the operators, which are all held; at a checkpoint they then continue.

        Args:
            snapshot: The destination.
            epoch: The checkpoint's epoch, or a number that no checkpoint has.
            alone: Whether it is a savepoint, which refers to no checkpoint.
            stops: Whether the job ends here.

        Raises:
            StateError: It can't be saved; the message names the operator.
            SinkError: A sink can't write; the message names it.
        """
        with self._lock:
            if not self._all_held:
                raise StateError(
                    f"{self.spec.pe} was released before it was saved: it has a new coordinator",
                    code=ErrorCode.COORDINATOR_REPLACED,
                )
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
        """Return whether an operator has ended, and has emitted everything."""
        return self._counted(self.ids[name]).final

    def save_operator(self, name: str, snapshot: Snapshot) -> tuple[list[tuple[str, str]], int] | None:
        """Write the state of a held operator; return its files and bytes, or None if it has no state.

        Raises:
            StateError: It can't be saved; the message names it.
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
        """Return the prefix of the names of an operator's files."""
        number = next(number for number, spec in enumerate(self.spec.operators) if spec.name == name)
        return f"{self.spec.pe}-{number:04}"

    def where(self, source: str) -> Where:
        """Return the position of a held source."""
        operator, given_rows = self.hosted.sources[source], self._given(source)
        return Where(self.skipped.get(source, 0) + given_rows, operator.place(), operator.position(given_rows))

    def input(self, source: str, where: Where) -> Input:
        """Return what a source reads, and its position in it.

        Raises:
            SourceError: A file has shrunk or changed since the source was made, so its position is meaningless.
            StateError: The file can't be accessed; the message names the source.
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
                f"its input can't be compared with that of the checkpoint: {error}",
                operator=source,
                location=spec.location,
                hint="Put its files back",
                code=None if kind is SourceLostError else ErrorCode.CHANGED_INPUT,
            ) from None

    def release(self, go_on: bool) -> None:
        """Release all operators, or end the sources where they were held."""
        with self._lock:
            self._releases += 1
            self._all_held = False
            self.end_lease()
            if not go_on:
                self.end_sources()
            self.scheduler.release(finish=go_on)

    def end_sources(self) -> None:
        """End the sources; their tuples flow on."""
        for name in self.hosted.sources:
            self.scheduler.end_source(self.ids[name])

    def _numbers(self) -> list[int]:
        """Return the numbers of all operators, and of the routers and link ends around them."""
        return list(range(len(self.scheduler.sample().operators)))

    def _hold(self, numbers: list[int], releases: int, patience: float) -> str:
        if self.scheduler.wait(0.0):  # it has ended: no tuple moves any more
            return ""
        self._lease()
        try:
            self.scheduler.hold(numbers, drain=True, timeout=patience)
        except TimeoutError as error:
            return f"{self.spec.pe}: {error}"
        with self._lock:
            if self._releases != releases:
                self.scheduler.release()
                raise StateError(
                    f"{self.spec.pe} was released while it was held: it has a new coordinator",
                    code=ErrorCode.COORDINATOR_REPLACED,
                )
        return ""

    def _lease(self) -> None:
        """Schedule the release of everything, in case the coordinator never returns."""
        self.end_lease()
        self._timer = threading.Timer(HOLD_LEASE, self.release, (True,))
        self._timer.daemon = True
        self._timer.start()

    def end_lease(self) -> None:
        """Cancel the scheduled release, because the coordinator has returned."""
        if self._timer is not None:
            self._timer.cancel()

    def _given(self, source: str) -> int:
        return self._counted(self.ids[source]).tuples_out

    def _counted(self, number: int) -> _native.OperatorSample:
        return self.scheduler.sample().operators[number]
