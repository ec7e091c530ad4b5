"""A thread that observes and decides once per period, until it is stopped: the base of the loops.

Knows nothing of the decisions.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from enum import Enum


class Still(Enum):
    """The reason why a loop decides nothing."""

    PAUSED = "paused"  # by request
    CHANGE = "change"  # regions change, which disturbs the measurement


class PeriodicLoop(ABC):
    """A loop; it doesn't run yet.

    Args:
        name: The thread's name.
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
        """Pause the decisions from now on, or resume them once no other reason is left."""
        if held:
            self._still.add(why)
        else:
            self._still.discard(why)

    def halt(self) -> None:
        """Make it end with the current pass; return at once."""
        self._stopped.set()

    def stop(self) -> None:
        """End it and wait for the current pass; the current configuration stays."""
        self.halt()
        thread = self._thread
        # An interrupt may have come before it was started, and a pass may end its own loop.
        if thread is not None and thread.ident is not None and thread is not threading.current_thread():
            thread.join()

    @abstractmethod
    def run(self) -> None:
        """Make one pass per period, until stopped. A policy that raises ends the loop, not the job."""
