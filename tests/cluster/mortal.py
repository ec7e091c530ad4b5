"""A coordinator that kills at a step of a change: itself, an element, or whoever is waited for."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from rayelastic.runtime.coordinator import Coordinator

COORDINATOR_PATH = f"{__name__}:MortalCoordinator"
ITSELF = "coordinator"


class MortalCoordinator(Coordinator):
    """Its commands are those of any coordinator."""

    def arm(self, step: str, occurrence: int, victim: str, folder: str = "") -> None:
        """Has a victim die when the next change comes to a step for the given time.

        Args:
            step: as the performer calls it.
            occurrence: from 1.
            victim: 'coordinator', an element, or nobody: then the folder is told where pe1 is, and the step
                waits for an answer.
            folder: where.
        """
        seen = 0

        def passing(name: str) -> None:
            nonlocal seen
            if name != step:
                return
            seen += 1
            if seen != occurrence:
                return
            if victim == ITSELF:
                os.kill(os.getpid(), signal.SIGKILL)
            elif victim:
                import ray

                ray.kill(self._cluster.handles[victim]._actor)  # type: ignore[attr-defined]
            else:
                new = Path(folder) / "new"
                new.write_text(self._statuses["pe1"].node)
                new.rename(Path(folder) / "at")
                while not (Path(folder) / "go").exists():
                    threading.Event().wait(0.02)

        self._performer._passing = passing
