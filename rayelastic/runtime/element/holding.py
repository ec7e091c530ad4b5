"""Holds the operators of a processing element at one moment of its streams, and saves what they have there.

Either all of them stand still (Holding), or that moment goes with the records, as a mark (MarkedSaving): sources are
held for as long as it takes to read where they are and to send the mark behind that, every other operator that has
something to save from its mark until that is saved, the others not at all. Knows the scheduler and the operators of one
element; the order among elements is the coordinator's to keep.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from rayelastic.errors import StateError
from rayelastic.runtime.element.live_state import check_exportable, save, save_operator
from rayelastic.runtime.files.inputs import Input, input_of
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder, rows_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rayelastic import _native
    from rayelastic.runtime.element.hosted import HostedOperators
    from rayelastic.runtime.files.outputs import Output
    from rayelastic.runtime.values.specs import PESpec

HOLD_TIMEOUT = 60.0  # seconds for what is under way to be processed, before a snapshot
LOOK = 0.2  # seconds between two looks whether the epoch was given up
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
        if not self.scheduler.wait_sent(HOLD_TIMEOUT):  # whoever sends marks lets the sources go
            raise StateError(f"{self.spec.pe} is still busy with the marks of the checkpoint before")
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

    def save(self, snapshot: Snapshot, epoch: int, alone: bool) -> Part:
        """Writes the state of the operators, which are all held; at a checkpoint they go on then.

        Args:
            snapshot: where to.
            epoch: of the checkpoint; 0: the job is to end here.
            alone: whether it is a savepoint, which counts on no checkpoint.

        Raises:
            StateError: it can't be saved; names the operator.
        """
        with self._lock:
            if not self._all_held:
                raise StateError(f"{self.spec.pe} was released before it was saved: its coordinator has been replaced")
            return self._saved(snapshot, epoch, alone)

    def _saved(self, snapshot: Snapshot, epoch: int, alone: bool) -> Part:
        final = frozenset(name for name, number in self.ids.items() if self._counted(number).final)
        folder, natives = SnapshotFolder(snapshot), self.hosted.natives
        folder.make()  # this node may have a disk of its own
        files = save(self.spec.pe, folder, snapshot.key, self.spec.operators, natives, final)
        if epoch:
            store = rows_folder(snapshot, alone=alone)
            store.prepare()
            written = self.hosted.prepare(epoch, store)
        else:
            taken = {name: self._counted(self.ids[name]).tuples_in for name in self.hosted.sinks}
            left = {name: sink.output(taken[name]) for name, sink in self.hosted.sinks.items()}
            written = {name: output for name, output in left.items() if output is not None}
        return Part(
            {name: self.position(name) for name in self.hosted.sources},
            files,
            {name: self.input(name) for name in self.hosted.sources},
            written,
        )

    def save_operator(self, name: str, snapshot: Snapshot) -> list[tuple[str, str]] | None:
        """Writes the state of an operator, which is held; returns its files, None if there is nothing to save.

        Raises:
            StateError: it can't be saved; names it.
        """
        if self._counted(self.ids[name]).final:
            return None  # what it had to give it has given
        number = next(number for number, spec in enumerate(self.spec.operators) if spec.name == name)
        prefix, folder = f"{self.spec.pe}-{number:04}", SnapshotFolder(snapshot)
        return save_operator(prefix, folder, snapshot.key, self.spec.operators[number], self.hosted.natives[name])

    def position(self, source: str) -> int:
        """How many records a source that is held has given since the very first start."""
        return self.skipped.get(source, 0) + self._given(source)

    def input(self, source: str) -> Input:
        """What a source that is held reads, and where it is in it.

        Raises:
            StateError: it can't be looked at; names the source.
        """
        spec, operator = self.hosted.by_name[source], self.hosted.sources[source]
        try:
            return input_of(spec, operator.place(), operator.position(self._given(source)))
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
            self.end_lease()
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


def operators_with_state(hosted: HostedOperators, ids: Mapping[str, int]) -> list[int]:
    """The numbers of the operators that are held at marks: those whose state is saved, and sinks."""
    return [ids[name] for name, native in hosted.natives.items() if native.state is not None or name in hosted.sinks]


class MarkedSaving:
    """Saves at marks.

    Args:
        holding: of the element, holds its sources.
        gathers: through which marks come in by several links.
    """

    def __init__(self, holding: Holding, gathers: Sequence[_native.Gather]) -> None:
        self._holding = holding
        self._gathers = tuple(gathers)
        self._scheduler = holding.scheduler
        self._hosted = holding.hosted
        self._names = {holding.ids[name]: name for name in holding.hosted.natives}
        self._stops = operators_with_state(holding.hosted, holding.ids)
        self._abandoned = 0
        self._saving = threading.Lock()

    def save(self, snapshot: Snapshot, epoch: int, patience: float) -> tuple[Part, float]:
        """Has the sources send the mark of an epoch, and saves every operator where that has come to it.

        Args:
            snapshot: where to.
            epoch: 1 and up, higher than all before.
            patience: seconds for the mark to come to all operators, from other elements too.

        Returns:
            What was saved, and the seconds for which sources were held.

        Raises:
            StateError: it can't be saved, or the mark doesn't come in time; names the operator.
            SinkError: a sink can't write; names it.
        """
        if not self._saving.acquire(timeout=patience):
            raise StateError(f"{self._holding.spec.pe} is still busy with the checkpoint before")
        try:
            self.abandon(epoch - 1)
            return self._save(snapshot, epoch, time.monotonic() + patience)
        except BaseException:
            self.abandon(epoch)
            raise
        finally:
            self._saving.release()

    def abandon(self, epoch: int) -> None:
        """Has marks up to that of an epoch mean nothing any more: whoever is held at one, or waits for it, goes on."""
        self._abandoned = max(self._abandoned, epoch)
        for gather in self._gathers:
            gather.abandon_epochs(epoch)
        self._scheduler.abandon_epochs(epoch)

    def _save(self, snapshot: Snapshot, epoch: int, until: float) -> tuple[Part, float]:
        store = rows_folder(snapshot)
        store.prepare()
        sources = [self._holding.ids[name] for name in self._hosted.sources]
        began = time.monotonic()
        try:
            self._holding.hold_sources()
            positions = {name: self._holding.position(name) for name in self._hosted.sources}
            inputs = {name: self._holding.input(name) for name in self._hosted.sources}
            if not self._scheduler.send_epoch(sources, epoch):
                raise StateError(f"{self._holding.spec.pe} is still busy with the marks of the checkpoint before")
        except BaseException:
            self._scheduler.let_go(sources)
            raise
        finally:
            self._holding.end_lease()
        held = time.monotonic() - began
        files: dict[str, list[tuple[str, str]]] = {}
        outputs: dict[str, Output] = {}
        left = set(self._stops)
        while left:
            there = self._scheduler.wait_epoch(sorted(left), epoch, max(0.0, min(LOOK, until - time.monotonic())))
            if not there:
                self._check(epoch, until, min(left))
            for number in there:
                name = self._names[number]
                if (saved := self._holding.save_operator(name, snapshot)) is not None:
                    files[name] = saved
                if name in self._hosted.sinks:
                    outputs[name] = self._hosted.prepare_sink(name, epoch, store)
                self._scheduler.let_go([number])
            left.difference_update(there)
        return Part(positions, files, inputs, outputs), held

    def _check(self, epoch: int, until: float, number: int) -> None:
        if self._abandoned >= epoch:
            raise StateError(f"checkpoint {epoch} was given up elsewhere")
        if self._scheduler.wait(0.0):
            raise StateError(f"{self._holding.spec.pe} ended while it was saved")
        if time.monotonic() >= until:
            raise StateError(
                "the mark of the checkpoint didn't come to it in time, behind what is under way",
                operator=self._names[number],
                way_out="Checkpoints follow when less is under way; give it replicas, or have it do less for a tuple",
            )
