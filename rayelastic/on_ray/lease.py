"""Ends a PE whose coordinator has gone for good: each call renews its lease.

Its actor is detached, so that it runs on while a dead coordinator is replaced; without a lease it would run for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

GRACE = 5.0  # seconds for calls that arrived while this process was paused, or a library held the GIL
LEASE = 60.0  # seconds; a coordinator calls every two, and is replaced a few seconds after it dies


class Lease:
    """A time that runs out unless it is renewed.

    Args:
        seconds: how long it holds.
        expired: called once when it has run out, in a thread of its own.

    >>> over = threading.Event()
    >>> lease = Lease(0.01, over.set)
    >>> over.wait(10)
    True
    """

    def __init__(self, seconds: float, expired: Callable[[], None]) -> None:
        self._seconds = seconds
        self._expired = expired
        self._renewed = threading.Event()
        threading.Thread(target=self._run, name="lease", daemon=True).start()

    def renew(self) -> None:
        """Restart the time."""
        self._renewed.set()

    def _run(self) -> None:
        while self._renewed.wait(self._seconds) or self._renewed.wait(min(GRACE, self._seconds)):
            self._renewed.clear()
        self._expired()
