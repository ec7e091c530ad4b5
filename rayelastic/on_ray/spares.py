"""Spare processes for PEs, because starting one takes about a second, which a change shouldn't (J17).

Must not know what elements do. A spare has a lease like any other actor, which is renewed here until it is used.
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

LOOK_TIMEOUT = 0.5  # seconds for a spare to answer; one that doesn't is still starting, as slow as a new one
START_TIMEOUT = 10.0  # seconds for a spare to answer that was started for the requested node: a new one takes longer
RENEWALS = 4  # in the time of a lease
ANYWHERE = "*"  # the node of a spare that is needed now, on any node


class Spares:
    """The spares of one job.

    Args:
        make: Starts one, on a node or (empty) on any, and returns at once.
    """

    def __init__(self, make: Callable[[str], ActorHandle[PEActor]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, ActorHandle[PEActor]]] = []  # with the node of each, or the requested one
        self._closed = threading.Event()
        self._renewing: threading.Thread | None = None

    def keep(self, count: int, node: str = "") -> None:
        """Start the missing ones, for a node if it is named."""
        with self._lock:
            if self._closed.is_set():
                return
            if node:
                self._waiting = [(meant or self._host_of(spare), spare) for meant, spare in self._waiting]
            existing = sum(node in ("", meant) for meant, _ in self._waiting)
            self._waiting += [(node, self._make(node)) for _ in range(count - existing)]
            if self._renewing is None and self._waiting:
                self._renewing = threading.Thread(target=self._renew, name="spares", daemon=True)
                self._renewing.start()

    def adopt(self, spare: ActorHandle[PEActor], meant: str = "") -> None:
        """Take over one that another process has started, for a node, or for ANYWHERE."""
        with self._lock:
            self._waiting.append((meant, spare))

    def take(self, node: str) -> ActorHandle[PEActor] | None:
        """Return a ready one, on a node if it is named, or started for it; None: there is none."""
        with self._lock:
            for one in sorted(self._waiting, key=lambda one: one[0] != node):
                meant, spare = one
                is_meant = meant == ANYWHERE or meant == node != ""
                timeout = START_TIMEOUT if is_meant else LOOK_TIMEOUT
                try:
                    pe, _, host = answer(spare.about.remote(), "a spare", "about", timeout)
                except PELostError:
                    self._waiting.remove(one)
                except TimeoutError:
                    continue
                else:
                    if pe:  # an earlier coordinator has used it
                        self._waiting.remove(one)
                        continue
                    if node in ("", host):
                        self._waiting.remove(one)
                        return spare
        return None

    def leave(self, nodes: frozenset[str]) -> None:
        """End those on some nodes, and those that don't answer, because they may be there."""
        import ray

        with self._lock:
            for waiting_spare in list(self._waiting) if nodes else ():
                with contextlib.suppress(PELostError, TimeoutError):
                    if answer(waiting_spare[1].about.remote(), "a spare", "about", LOOK_TIMEOUT)[2] not in nodes:
                        continue
                self._waiting.remove(waiting_spare)
                ray.kill(waiting_spare[1], no_restart=True)

    def close(self) -> None:
        """End the unused ones."""
        import ray

        self._closed.set()
        with self._lock:
            for _, spare in self._waiting:
                ray.kill(spare, no_restart=True)
            self._waiting.clear()

    def _host_of(self, spare: ActorHandle[PEActor]) -> str:
        """Return the node of a spare that answers."""
        with contextlib.suppress(PELostError, TimeoutError):
            return str(answer(spare.about.remote(), "a spare", "about", LOOK_TIMEOUT)[2])
        return ""

    def _renew(self) -> None:
        while not self._closed.wait(LEASE / RENEWALS):
            with self._lock:
                for _, spare in self._waiting:
                    spare.about.remote()
