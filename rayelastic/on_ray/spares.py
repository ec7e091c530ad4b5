"""Processes that wait for a processing element: starting one takes about a second, which a change shouldn't (J17).

Must not know what elements do. A spare has a lease as any other; it is renewed from here until it is taken.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from rayelastic.errors import PELostError
from rayelastic.on_ray.calls import answer
from rayelastic.on_ray.lease import LEASE

if TYPE_CHECKING:
    from ray.actor import ActorHandle

    from rayelastic.on_ray.pe_actor import PEActor

LOOK_TIMEOUT = 0.5  # seconds for a spare to answer; one that doesn't is busy starting, and a new one is as good
RENEWALS = 4  # of a lease while it lasts


class Spares:
    """The spares of one job.

    Args:
        make: starts one, somewhere, and returns at once.
    """

    def __init__(self, make: Callable[[], ActorHandle[PEActor]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._waiting: list[ActorHandle[PEActor]] = []
        self._closed = threading.Event()
        self._renewing: threading.Thread | None = None

    def keep(self, count: int) -> None:
        """Starts as many as are missing."""
        with self._lock:
            if self._closed.is_set():
                return
            self._waiting += [self._make() for _ in range(count - len(self._waiting))]
            if self._renewing is None and self._waiting:
                self._renewing = threading.Thread(target=self._renew, name="spares", daemon=True)
                self._renewing.start()

    def adopt(self, spare: ActorHandle[PEActor]) -> None:
        """Takes one over that somebody else has started."""
        with self._lock:
            self._waiting.append(spare)

    def take(self, node: str) -> ActorHandle[PEActor] | None:
        """Returns one that is ready, on a node if it is named; None if there is none."""
        with self._lock:
            for spare in self._waiting:
                with contextlib.suppress(PELostError, TimeoutError):
                    _, _, host = answer(spare.about.remote(), "a spare", "about", LOOK_TIMEOUT)
                    if node in ("", host):
                        self._waiting.remove(spare)
                        return spare
        return None

    def leave(self, nodes: frozenset[str]) -> None:
        """Ends those on some nodes, and those that don't answer: they may be there."""
        import ray

        with self._lock:
            for spare in list(self._waiting) if nodes else ():
                with contextlib.suppress(PELostError, TimeoutError):
                    if answer(spare.about.remote(), "a spare", "about", LOOK_TIMEOUT)[2] not in nodes:
                        continue
                self._waiting.remove(spare)
                ray.kill(spare, no_restart=True)

    def close(self) -> None:
        """Ends those that nobody took."""
        import ray

        self._closed.set()
        with self._lock:
            for spare in self._waiting:
                ray.kill(spare, no_restart=True)
            self._waiting.clear()

    def _renew(self) -> None:
        while not self._closed.wait(LEASE / RENEWALS):
            with self._lock:
                for spare in self._waiting:
                    spare.about.remote()
