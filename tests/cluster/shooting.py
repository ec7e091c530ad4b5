"""A coordinator that kills at a moment of what it is at: itself, an element, or, by somebody outside, a host.

What it is at is known in its own process alone, to the millisecond: whoever asks from outside hears what was.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.values.checkpoint_record import CheckpointRecord
from rayelastic.runtime.values.status import PEStatus, State

WATCHED = f"{__name__}:WatchedCoordinator"
LOOK = 0.001  # seconds between two looks at what it is at
DOWN = "down"  # a file of this name: a host is


class Moment(Enum):
    """What a coordinator is at."""

    WAITING_CHECKPOINT = "a checkpoint waits for a change"
    WAITING_CHANGE = "a change waits for a checkpoint"
    CHECKPOINT_OF_CHANGE = "a change takes its checkpoint"
    CHANGE = "a change"
    CHECKPOINT = "a checkpoint"
    RECOVERY = "the way back"
    FLOW = "nothing but flow"

    @property
    def is_both(self) -> bool:
        """Whether a checkpoint and a change of plan meet."""
        return self in (Moment.WAITING_CHECKPOINT, Moment.WAITING_CHANGE, Moment.CHECKPOINT_OF_CHANGE)

    @property
    def is_change(self) -> bool:
        return self.is_both or self is Moment.CHANGE


class Victim(Enum):
    """Who dies."""

    ELEMENT = "element"
    COORDINATOR = "coordinator"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Shot:
    """When who dies.

    Args:
        number: of the shot.
        folder: a file of that number there tells what became of it; whoever makes it has decided.
        victim: where there is no host but the coordinator's, an element in place of one.
        seed: chooses it.
        moments: values of those at which it may be; none: at once.
        delay: seconds from the first of them on.
        first: whether a checkpoint is begun before the change, rather than in it.
    """

    number: int
    folder: Path
    victim: Victim
    seed: int
    moments: tuple[str, ...] = ()
    delay: float = 0.0
    first: bool = False

    @property
    def file(self) -> Path:
        return self.folder / str(self.number)

    @property
    def done(self) -> Path:
        """Whoever kills outside the coordinator's host makes it then."""
        return self.folder / f"{self.number}-done"

    @property
    def missed(self) -> Path:
        """There was nobody any more."""
        return self.folder / f"{self.number}-missed"

    def claim(self, told: dict[str, Any]) -> bool:
        """Says what becomes of it; False: somebody has."""
        written = self.folder / f"{self.number}-{os.getpid()}-{threading.get_ident()}"
        written.write_text(json.dumps(told))
        try:
            os.link(written, self.file)
        except FileExistsError:
            return False
        finally:
            written.unlink()
        return True


class WatchedCoordinator(Coordinator):
    """Its commands are those of any coordinator."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self._counting = threading.Lock()
        self._asked = self._planned = self._saving = 0  # changes, those from a checkpoint, checkpoints
        super().__init__(*given, **named)
        assert self._checkpoints is not None
        loop = self._checkpoints.loop
        loop._take = self._while_saving(loop._take)

    def shoot(self, shot: Shot) -> None:
        """Has somebody die at a moment; returns at once."""
        threading.Thread(target=self._aim, args=(shot,), daemon=True).start()

    def rescale(self, region: str, replicas: int) -> ExecPlan:
        """Changes are counted while they are under way."""
        with self._counted("_asked"):
            return super().rescale(region, replicas)

    def change(self, wanted: ExecPlan) -> ExecPlan:
        """Moves alone: what can be had by `rescale` isn't asked for here."""
        with self._counted("_asked", "_planned"):
            return super().change(wanted)

    def renew_secret(self) -> None:
        """The change that goes by a checkpoint and needs no other host."""
        with self._counted("_asked", "_planned"):
            super().renew_secret()

    # -- how it is done -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _counted(self, *names: str) -> Iterator[None]:
        def add(count: int) -> None:
            with self._counting:
                for name in names:
                    setattr(self, name, getattr(self, name) + count)

        add(1)
        try:
            yield
        finally:
            add(-1)

    def _while_saving(self, take: Callable[[], CheckpointRecord]) -> Callable[[], CheckpointRecord]:
        def taken() -> CheckpointRecord:
            with self._counted("_saving"):
                return take()

        return taken

    def _moment(self) -> Moment:
        is_open = self._journal.open_change is not None
        if self._asked and self._saving:
            if is_open:
                return Moment.WAITING_CHECKPOINT
            return Moment.CHECKPOINT_OF_CHANGE if self._planned else Moment.WAITING_CHANGE
        if is_open or (self._asked and self._planned):
            return Moment.CHANGE
        if self._life.state is State.RECOVERING:
            return Moment.RECOVERY
        return Moment.CHECKPOINT if self._saving else Moment.FLOW

    def _aim(self, shot: Shot) -> None:
        assert self._checkpoints is not None
        wanted, asked, since, wait = {Moment(name) for name in shot.moments}, False, 0.0, threading.Event().wait
        while not shot.file.exists():
            moment = self._moment()
            if wanted and not asked and (shot.first or moment is Moment.CHANGE):
                asked = True
                self._checkpoints.loop.ask(0.0)
            if (moment in wanted or not wanted) and (shot.victim is Victim.COORDINATOR or self._living()):
                since = since or time.monotonic()
                if time.monotonic() - since >= shot.delay:
                    self._fire(shot, moment)
                    return
            wait(LOOK)

    def _living(self) -> list[PEStatus]:
        return [one for one in self._life.elements().values() if one.pid and not one.state.is_final]

    def _fire(self, shot: Shot, moment: Moment) -> None:
        here, dice = socket.gethostname(), random.Random(shot.seed)
        elements = self._living()
        told = {"moment": moment.value, "victim": Victim.COORDINATOR.value, "node": here, "pid": os.getpid()}
        others = sorted({one.node for one in elements} - {here})
        if shot.victim is Victim.HOST and others and not (shot.folder / DOWN).exists():
            told |= {"victim": Victim.HOST.value, "node": dice.choice(others), "pid": 0}
        elif shot.victim is not Victim.COORDINATOR and elements:
            one = dice.choice(sorted(elements, key=lambda one: one.pe))
            told |= {"victim": Victim.ELEMENT.value, "node": one.node, "pid": one.pid}
        if shot.claim(told | {"outside": told["node"] != here}) and told["node"] == here:
            try:
                os.kill(int(told["pid"]), signal.SIGKILL)
            except ProcessLookupError:  # it was killed just now
                shot.missed.touch()
            shot.done.touch()
