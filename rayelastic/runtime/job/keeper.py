"""Ends a coordinator that isn't needed any more, because its actor is detached and would stay for ever.

Either its driver died before the job had started. Or the job is over, its driver has gone, and no call came for a
while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rayelastic.runtime.values.status import State

LINGER = (
    600.0  # seconds that a job that is over can be asked how it ended after its driver has gone, since the last time
)
LOOK = 2.0  # seconds between two checks


class Keeper:
    """Watches a coordinator until it isn't needed.

    Args:
        state: Returns the job's state.
        has_gone: Returns whether the driver that made it has ended.
        end: Ends the coordinator and its process; called once, in a thread of its own.
        linger: Seconds that it stays after the last call, once the job is over and its driver has gone.
        look: Seconds between two checks.
        clock: Returns seconds, monotonic.
    """

    def __init__(
        self,
        state: Callable[[], State],
        has_gone: Callable[[], bool],
        end: Callable[[], None],
        *,
        linger: float = LINGER,
        look: float = LOOK,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._has_gone = has_gone
        self._end = end
        self._linger = linger
        self._look = look
        self._clock = clock
        self._asked_at = clock()
        self._starting = False
        self._closed = threading.Event()

    def start(self) -> None:
        """Start the checks."""
        threading.Thread(target=self._run, name="keeper", daemon=True).start()

    def asked(self, method: str) -> None:
        """Record a call."""
        self._asked_at = self._clock()
        self._starting = self._starting or method == "start"
        if method == "close":
            self._closed.set()

    def is_needed(self) -> bool:
        """Return whether it may still be needed."""
        state = self._state()
        if state is State.CREATED:
            return self._starting or not self._has_gone()
        return not state.is_final or self._clock() < self._asked_at + self._linger or not self._has_gone()

    def _run(self) -> None:
        while not self._closed.wait(self._look):
            if not self.is_needed():
                self._end()
                return
