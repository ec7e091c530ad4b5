"""A coordinator that kills at a step of a change: itself, an element, or whoever is waited for."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rayelastic.errors import LinkError
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.rescale import batches, performer

COORDINATOR_PATH = f"{__name__}:MortalCoordinator"
ITSELF = "coordinator"
OUTSIDE = ""  # whoever waits outside kills
LOOK = 0.02  # seconds between two looks whether that is done


@dataclass(frozen=True, slots=True)
class Shot:
    """When who dies.

    Args:
        victim: ITSELF, an element, or OUTSIDE: then the step waits until that is done.
        step: as the performer calls it.
        folder: the file `hit` there tells how far the change was, and on which node the element `node_of` is; for
            OUTSIDE the step waits for a file `go`.
        occurrence: of the step in the change, from 1.
        undoing: the change is made to fail, and the steps are those of undoing it.
        batch_bytes: of state that moves at once.
        node_of: an element.
    """

    victim: str
    step: str
    folder: Path
    occurrence: int = 1
    undoing: bool = False
    batch_bytes: int = performer.BATCH_BYTES
    node_of: str = "pe1"

    @property
    def hit(self) -> Path:
        return self.folder / "hit"

    @property
    def go(self) -> Path:
        return self.folder / "go"


class MortalCoordinator(Coordinator):
    """Its commands are those of any coordinator."""

    def arm(self, shot: Shot) -> None:
        """Has a victim die in the next change."""
        passed: list[str] = []
        performer.BATCH_BYTES = shot.batch_bytes

        def passing(name: str) -> None:
            passed.append(name)
            back = "undo" in passed
            if shot.undoing and not back:
                if passed.count("commit") and name == "copy":
                    raise LinkError("it was made to fail")
                return
            since = passed[passed.index("undo") :] if back else passed
            if name == shot.step and since.count(name) == shot.occurrence and not shot.hit.exists():
                self._shoot(shot)

        self._rescaling._performer._passing = passing

    def _shoot(self, shot: Shot) -> None:
        here = self._journal.open_change
        status = self._life.elements().get(shot.node_of)
        told = {
            "step": shot.step,
            "moved": here.moved if here else 0,
            "undoing": here.undoing if here else None,
            "batches": len(list(batches.batches_of(here))) if here else 0,
            "node": status.node if status is not None else "",
            "time": time.time(),
        }
        written = shot.folder / "written"
        written.write_text(json.dumps(told))
        written.rename(shot.hit)
        if shot.victim == OUTSIDE:
            while not shot.go.exists():
                threading.Event().wait(LOOK)
        else:
            os.kill(os.getpid() if shot.victim == ITSELF else self._life.elements()[shot.victim].pid, signal.SIGKILL)
