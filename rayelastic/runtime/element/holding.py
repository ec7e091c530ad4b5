"""Holds the operators of a processing element at one moment of its streams, and saves what they have there.

Knows its scheduler and operators; the order among processing elements is the coordinator's to keep.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from rayelastic.errors import StateError
from rayelastic.runtime.element.live_state import check_exportable, save
from rayelastic.runtime.files.inputs import Input, input_of
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic import _native
    from rayelastic.runtime.element.hosted import HostedOperators
    from rayelastic.runtime.values.specs import PESpec

HOLD_TIMEOUT = 60.0  # seconds for what is under way to be processed, before a snapshot
HOLD_LOOK = 0.005  # seconds between two looks at what has arrived


class Holding:
    """A scheduler that runs, as it is held.

    A coordinator that dies leaves its call behind: what that holds after another coordinator has released everything
    is let go at once, and nothing is released while it is saved.

    Args:
        spec: of the processing element.
        scheduler: of it.
        hosted: its operators.
        ids: their numbers in the scheduler.
        link_ends: the numbers of those that send and take links.
        skipped: records that each source hadn't to give again.
    """

    def __init__(
        self,
        spec: PESpec,
        scheduler: _native.Scheduler,
        hosted: HostedOperators,
        ids: Mapping[str, int],
        link_ends: Mapping[str, int],
        skipped: Mapping[str, int],
    ) -> None:
        self.spec = spec
        self.scheduler = scheduler
        self.hosted = hosted
        self.ids = ids
        self.link_ends = link_ends
        self.skipped = skipped
        self._releases = 0  # guarded by _lock, which is held while state is written
        self._lock = threading.Lock()
        self._all_held = False

    def hold_sources(self) -> None:
        """Holds its sources at their positions.

        Raises:
            StateError: an operator's state, or a source's position, can't be saved; names it.
        """
        check_exportable(self.spec.operators, self.hosted.sources, self.hosted.natives)
        self._hold([self.ids[name] for name in self.hosted.sources], self._releases)

    def hold_all(self, arriving: Mapping[str, int]) -> dict[str, int]:
        """Holds all operators once everything that is under way has been processed.

        Args:
            arriving: {link: how many tuples its producer has sent}; the producers are held already.

        Returns:
            {link: how many tuples left by it}.

        Raises:
            StateError: that didn't happen in time, as the error says.
        """
        deadline, releases = time.monotonic() + HOLD_TIMEOUT, self._releases
        for link in self.spec.links_in:
            while self._counted(self.link_ends[link.name]).tuples_out < arriving[link.name]:
                if time.monotonic() > deadline or self.scheduler.wait(HOLD_LOOK):
                    raise StateError(f"{self.spec.pe} still waits for what was sent by link {link.name}")
        self._hold(list(range(len(self.ids) + len(self.link_ends))), releases)
        self._all_held = True
        return {link.name: self._counted(self.link_ends[link.name]).tuples_in for link in self.spec.links_out}

    def save(self, snapshot: Snapshot) -> Part:
        """Writes the state of the operators, which are all held.

        Raises:
            StateError: it can't be saved; names the operator.
        """
        with self._lock:
            if not self._all_held:
                raise StateError(f"{self.spec.pe} was released before it was saved: its coordinator has been replaced")
            return self._saved(snapshot)

    def _saved(self, snapshot: Snapshot) -> Part:
        final = frozenset(name for name, number in self.ids.items() if self._counted(number).final)
        folder, natives = SnapshotFolder(snapshot), self.hosted.natives
        files = save(self.spec.pe, folder, snapshot.key, self.spec.operators, natives, final)
        given = {name: self._counted(self.ids[name]).tuples_out for name in self.hosted.sources}
        taken = {name: self._counted(self.ids[name]).tuples_in for name in self.hosted.sinks}
        written = {name: sink.output(taken[name]) for name, sink in self.hosted.sinks.items()}
        return Part(
            {name: self.skipped.get(name, 0) + count for name, count in given.items()},
            files,
            {name: self._input(name) for name in self.hosted.sources},
            {name: output for name, output in written.items() if output is not None},
        )

    def _input(self, source: str) -> Input:
        spec = self.hosted.by_name[source]
        try:
            return input_of(spec)
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
            if not go_on:
                self.end_sources()
            self.scheduler.release(finish=go_on)

    def end_sources(self) -> None:
        """Ends the sources; what they sent goes on."""
        for name in self.hosted.sources:
            self.scheduler.end_source(self.ids[name])

    def _hold(self, numbers: list[int], releases: int) -> None:
        try:
            self.scheduler.hold(numbers, drain=True, timeout=HOLD_TIMEOUT)
        except TimeoutError as error:
            raise StateError(f"{self.spec.pe}: {error}", way_out="Try again when it is less busy") from None
        with self._lock:
            if self._releases != releases:
                self.scheduler.release()
                raise StateError(f"{self.spec.pe} was released while it was held: its coordinator has been replaced")

    def _counted(self, number: int) -> _native.OperatorSample:
        return self.scheduler.sample().operators[number]
