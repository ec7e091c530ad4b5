"""Saves the operators of a PE at a checkpoint barrier, which flows with the records.

Sources are held only while their positions are read and the barrier is sent after them. State is copied at its barrier
and written beside the stream (copies.py). Sinks, and operators whose state can't be copied so, are held from their
barrier until they are saved; the others aren't held at all.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, StateError
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.element.saving.copies import OperatorCopies
from rayelastic.runtime.element.saving.live_state import check_signed
from rayelastic.runtime.local_checkpoints import is_local
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder, rows_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rayelastic import _native
    from rayelastic.connectors.output.record import Output
    from rayelastic.runtime.element.hosted import HostedOperators
    from rayelastic.runtime.element.saving.holding import Holding, Where

LOOK = 0.2  # seconds between two checks whether the epoch was aborted


def operators_with_state(hosted: HostedOperators, ids: Mapping[str, int]) -> list[int]:
    """Return the numbers of the operators that are saved at barriers: those with state, and sinks."""
    return [ids[name] for name, native in hosted.natives.items() if native.state is not None or name in hosted.sinks]


class MarkedSaving:
    """Saves at barriers.

    Args:
        holding: Holds the element's sources.
        gathers: The gathers through which barriers arrive over several links.
    """

    def __init__(self, holding: Holding, gathers: Sequence[_native.Gather]) -> None:
        self._holding = holding
        self._gathers = tuple(gathers)
        self._scheduler = holding.scheduler
        self._hosted = holding.hosted
        self._names = {holding.ids[name]: name for name in holding.hosted.natives}
        self._stops = operators_with_state(holding.hosted, holding.ids)
        settings = holding.spec.config.checkpoint
        keep = settings.keep if isinstance(settings, Checkpoint) else Checkpoint().keep
        self._copies = {
            name: OperatorCopies(spec, holding.prefix(name), keep)
            for name, spec in holding.hosted.by_name.items()
            if spec.state_form is not None
        }
        self._abandoned = 0
        self._saving = threading.Lock()
        self._held_at_mark = threading.RLock()  # held while an operator is saved there, so that it isn't released

    def save(self, snapshot: Snapshot, epoch: int, patience: float) -> tuple[Part, float]:
        """Make the sources send the barrier of an epoch, and save every operator at it.

        Args:
            snapshot: The destination.
            epoch: 1 and up, higher than all before.
            patience: Seconds for the barrier to reach all operators, from other elements too.

        Returns:
            What was saved, and the seconds for which sources were held.

        Raises:
            StateError: It can't be saved, or the barrier doesn't arrive in time; the message names the operator.
            SinkError: A sink can't write; the message names it.
        """
        if not self._saving.acquire(timeout=patience):
            raise StateError(
                f"{self._holding.spec.pe} is still busy with the previous checkpoint", code=ErrorCode.JOB_BUSY
            )
        try:
            self.abandon(epoch - 1)
            return self._save(snapshot, epoch, time.monotonic() + patience)
        except BaseException:
            self.abandon(epoch)
            raise
        finally:
            self._saving.release()

    def commit(self, epoch: int) -> None:
        """Record that the checkpoint of an epoch is complete, so that others may share its files. Safe to repeat."""
        with self._saving:
            for copies in self._copies.values():
                copies.complete(epoch)

    def abandon(self, epoch: int) -> None:
        """Ignore barriers up to that of an epoch: operators that are held at one, or wait for it, continue."""
        self._abandoned = max(self._abandoned, epoch)
        for gather in self._gathers:
            gather.abandon_epochs(epoch)
        with (
            self._held_at_mark
        ):  # a sink that continued during its preparation would write into the file that is being closed
            self._scheduler.abandon_epochs(epoch)

    def _save(self, snapshot: Snapshot, epoch: int, until: float) -> tuple[Part, float]:
        folder, store = SnapshotFolder(snapshot), rows_folder(snapshot)
        folder.enter(own=is_local(folder.location, self._holding.spec.job_id))
        store.prepare()
        began = time.monotonic()
        places, held = self._send_marks(epoch)
        inputs = {name: self._holding.input(name, at) for name, at in places.items()}
        files: dict[str, list[tuple[str, str]]] = {}
        costs: dict[str, tuple[int, float]] = {}
        stood: dict[str, float] = {}
        outputs: dict[str, Output] = {}

        def note(name: str, saved: tuple[list[tuple[str, str]], int] | None) -> None:
            if saved is not None:
                files[name], size = saved
                costs[name] = (size, time.monotonic() - began)

        def write(name: str, copy: _native.StateCopy) -> None:
            check_signed(self._hosted.by_name[name], snapshot.key)
            note(name, self._copies[name].write(copy, folder, epoch, lambda: self._check_wanted(epoch)))

        with ThreadPoolExecutor(1, f"copies-{self._holding.spec.pe}") as beside:
            copying: list[Future[None]] = []
            try:
                for number in self._arrivals(epoch, until):
                    name = self._names[number]
                    if (copy := self._scheduler.take_copy(number, epoch)) is not None:
                        if name in self._copies:
                            copying.append(beside.submit(write, name, copy))
                        continue
                    since = time.monotonic()
                    with self._held_at_mark:
                        self._check_wanted(epoch)
                        note(name, self._holding.save_operator(name, snapshot))
                        if name in files:
                            stood[name] = time.monotonic() - since
                        if name in self._hosted.sinks:
                            outputs[name] = self._hosted.prepare_sink(name, epoch, store)
                    self._scheduler.let_go([number])
                for one in copying:
                    one.result()
            except BaseException:
                self.abandon(epoch)  # a writer ends with its chunk
                raise
        return Part({name: at.rows for name, at in places.items()}, files, inputs, outputs, costs, stood), held

    def _send_marks(self, epoch: int) -> tuple[dict[str, Where], float]:
        """Make the sources send the barrier; return their positions, and the seconds for which they were held."""
        sources = [self._holding.ids[name] for name in self._hosted.sources]
        began = time.monotonic()
        try:
            self._holding.hold_sources()
            if len(sources) == 1:  # until now it worked or was blocked; of several, the first was held
                began = time.monotonic()
            places = {name: self._holding.where(name) for name in self._hosted.sources}
            if not self._scheduler.send_epoch(sources, epoch):
                raise StateError(
                    f"{self._holding.spec.pe} is still aligning the barriers of the previous checkpoint",
                    code=ErrorCode.JOB_BUSY,
                )
        except BaseException:
            self._scheduler.let_go(sources)
            raise
        finally:
            self._holding.end_lease()
        return places, time.monotonic() - began

    def _arrivals(self, epoch: int, until: float) -> Iterator[int]:
        """Yield the operators to save, each once it is held at the barrier, copied, or at its end."""
        left = set(self._stops)
        while left:
            arrived = self._scheduler.wait_epoch(sorted(left), epoch, max(0.0, min(LOOK, until - time.monotonic())))
            if not arrived:
                self._check(epoch, until, min(left))
            yield from arrived
            left.difference_update(arrived)

    def _check_wanted(self, epoch: int) -> None:
        if self._abandoned >= epoch:
            raise StateError(f"checkpoint {epoch} was abandoned by another PE", code=ErrorCode.CHECKPOINT_ABANDONED)

    def _check(self, epoch: int, until: float, number: int) -> None:
        self._check_wanted(epoch)
        if self._scheduler.wait(0.0):
            raise StateError(f"{self._holding.spec.pe} ended while it was saved", code=ErrorCode.CHECKPOINT_ABANDONED)
        if time.monotonic() >= until:
            raise StateError(
                "the checkpoint barrier didn't arrive in time behind queued tuples",
                operator=self._names[number],
                hint="Add replicas, or do less for each tuple",
                code=ErrorCode.JOB_BUSY,
            )
