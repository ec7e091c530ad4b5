"""Holds the operators of a processing element at one moment of its streams, and saves what they have there.

Knows its scheduler and operators; the order among processing elements is the coordinator's to keep.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rayelastic.errors import StateError
from rayelastic.runtime.element.live_state import check_exportable, save
from rayelastic.runtime.files.inputs import Input, input_of
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder, rows_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic import _native
    from rayelastic.runtime.element.hosted import HostedOperators
    from rayelastic.runtime.values.specs import PESpec

HOLD_TIMEOUT = 60.0  # seconds for what is under way to be processed, before a snapshot
HOLD_LEASE = 600.0  # seconds for which operators are held at most: a coordinator that hangs mustn't hold a job for ever


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
            StateError: an operator's state, or a source's position, can't be saved; names it.
        """
        check_exportable(self.spec.operators)
        self._hold([self.ids[name] for name in self.hosted.sources], self._releases)

    def hold_all(self, patience: float) -> None:
        """Holds all operators once everything that is here has been processed.

        Args:
            patience: seconds for that.

        Raises:
            StateError: that didn't happen in time, as the error says.
        """
        self._hold(self._numbers(), self._releases, patience)
        self._all_held = True

    def let_go_on(self) -> None:
        """Lets all operators go again but for the sources: something is on its way yet."""
        with self._lock:
            self._all_held = False
            sources = {self.ids[name] for name in self.hosted.sources}
            self.scheduler.let_go([number for number in self._numbers() if number not in sources])

    def save(self, snapshot: Snapshot, epoch: int) -> Part:
        """Writes the state of the operators, which are all held; at a checkpoint they go on then.

        Args:
            snapshot: where to.
            epoch: of the checkpoint; 0: the job is to end here.

        Raises:
            StateError: it can't be saved; names the operator.
        """
        with self._lock:
            if not self._all_held:
                raise StateError(f"{self.spec.pe} was released before it was saved: its coordinator has been replaced")
            return self._saved(snapshot, epoch)

    def _saved(self, snapshot: Snapshot, epoch: int) -> Part:
        final = frozenset(name for name, number in self.ids.items() if self._counted(number).final)
        folder, natives = SnapshotFolder(snapshot), self.hosted.natives
        folder.make()  # this node may have a disk of its own
        files = save(self.spec.pe, folder, snapshot.key, self.spec.operators, natives, final)
        given = {name: self._counted(self.ids[name]).tuples_out for name in self.hosted.sources}
        if epoch:
            store = rows_folder(snapshot)
            store.prepare()
            written = self.hosted.prepare(epoch, store)
        else:
            taken = {name: self._counted(self.ids[name]).tuples_in for name in self.hosted.sinks}
            left = {name: sink.output(taken[name]) for name, sink in self.hosted.sinks.items()}
            written = {name: output for name, output in left.items() if output is not None}
        return Part(
            {name: self.skipped.get(name, 0) + count for name, count in given.items()},
            files,
            {name: self._input(name) for name in self.hosted.sources},
            written,
        )

    def _input(self, source: str) -> Input:
        spec = self.hosted.by_name[source]
        try:
            return input_of(spec, self.hosted.sources[source].place())
        except OSError as error:
            raise StateError(
                f"what it reads can't be looked at, so that it is known again: {error}",
                operator=source,
                location=spec.location,
                way_out="Put its files back",
            ) from None

    def release(self, go_on: bool) -> None:
        """Lets all operators go again, or ends the sources where they were held."""
        with self._lock:
            self._releases += 1
            self._all_held = False
            self._ends_lease()
            if not go_on:
                self.end_sources()
            self.scheduler.release(finish=go_on)

    def end_sources(self) -> None:
        """Ends the sources; what they sent goes on."""
        for name in self.hosted.sources:
            self.scheduler.end_source(self.ids[name])

    def _numbers(self) -> list[int]:
        """Of all operators, and of what brings and takes their tuples."""
        return list(range(len(self.scheduler.sample().operators)))

    def _hold(self, numbers: list[int], releases: int, patience: float = HOLD_TIMEOUT) -> None:
        if self.scheduler.wait(0.0):  # it has ended: nothing moves there any more
            return
        self._lease()
        try:
            self.scheduler.hold(numbers, drain=True, timeout=patience)
        except TimeoutError as error:
            raise StateError(f"{self.spec.pe}: {error}", way_out="Try again when it is less busy") from None
        with self._lock:
            if self._releases != releases:
                self.scheduler.release()
                raise StateError(f"{self.spec.pe} was released while it was held: its coordinator has been replaced")

    def _lease(self) -> None:
        """Has everything go on by itself, should whoever holds it never come back."""
        self._ends_lease()
        self._timer = threading.Timer(HOLD_LEASE, self.release, (True,))
        self._timer.daemon = True
        self._timer.start()

    def _ends_lease(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _counted(self, number: int) -> _native.OperatorSample:
        return self.scheduler.sample().operators[number]
