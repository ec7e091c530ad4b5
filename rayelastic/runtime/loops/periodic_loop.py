"""A thread that looks and decides once a period, until it is stopped: what loops of elements and coordinators share.

Knows nothing of what is decided.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from enum import Enum

__all__ = ["PeriodicLoop", "Still"]


class Still(Enum):
    """Why a loop decides nothing."""

    PAUSED = "paused"  # somebody has asked for it
    CHANGE = "change"  # regions change, which isn't the load's doing


class PeriodicLoop(ABC):
    """One such loop; it doesn't run yet.

    Args:
        name: of its thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stopped = threading.Event()
        self._still: set[Still] = set()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start its thread."""
        self._thread = threading.Thread(target=self.run, name=self._name, daemon=True)
        self._thread.start()

    def hold(self, held: bool, why: Still = Still.PAUSED) -> None:
        """Decide nothing from now on, or decide again, once there is no other reason."""
        if held:
            self._still.add(why)
        else:
            self._still.discard(why)

    def halt(self) -> None:
        """Have it end with the pass that it is in; return at once."""
        self._stopped.set()

    def stop(self) -> None:
        """End it and wait for the pass that it is in; what is in force stays."""
        self.halt()
        thread = self._thread
        # An interrupt may have come before it was started, and a pass may end its own loop.
        if thread is not None and thread.ident is not None and thread is not threading.current_thread():
            thread.join()

    @abstractmethod
    def run(self) -> None:
        """Make one pass a period, until stopped. A policy that raises ends the loop, not the job."""
