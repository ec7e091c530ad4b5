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
START_TIMEOUT = 10.0  # seconds for one to answer that was started for a node where it is wanted now: a new one is later
RENEWALS = 4  # of a lease while it lasts
ANYWHERE = "*"  # is what one was started for that is wanted now, on whatever node it is


class Spares:
    """The spares of one job.

    Args:
        make: starts one, on a node or (empty) on any, and returns at once.
    """

    def __init__(self, make: Callable[[str], ActorHandle[PEActor]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, ActorHandle[PEActor]]] = []  # with the node of each, or that it was started for
        self._closed = threading.Event()
        self._renewing: threading.Thread | None = None

    def keep(self, count: int, node: str = "") -> None:
        """Start as many as are missing, of those for a node if it is named."""
        with self._lock:
            if self._closed.is_set():
                return
            if node:
                self._waiting = [(meant or self._host_of(spare), spare) for meant, spare in self._waiting]
            there = sum(node in ("", meant) for meant, _ in self._waiting)
            self._waiting += [(node, self._make(node)) for _ in range(count - there)]
            if self._renewing is None and self._waiting:
                self._renewing = threading.Thread(target=self._renew, name="spares", daemon=True)
                self._renewing.start()

    def adopt(self, spare: ActorHandle[PEActor], meant: str = "") -> None:
        """Take one over that somebody else has started, for a node, or for ANYWHERE."""
        with self._lock:
            self._waiting.append((meant, spare))

    def take(self, node: str) -> ActorHandle[PEActor] | None:
        """Return one that is ready, on a node if it is named, or was started for it; None: there is none."""
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
                    if pe:  # it was taken by a coordinator before this one
                        self._waiting.remove(one)
                        continue
                    if node in ("", host):
                        self._waiting.remove(one)
                        return spare
        return None

    def leave(self, nodes: frozenset[str]) -> None:
        """End those on some nodes, and those that don't answer: they may be there."""
        import ray

        with self._lock:
            for one in list(self._waiting) if nodes else ():
                with contextlib.suppress(PELostError, TimeoutError):
                    if answer(one[1].about.remote(), "a spare", "about", LOOK_TIMEOUT)[2] not in nodes:
                        continue
                self._waiting.remove(one)
                ray.kill(one[1], no_restart=True)

    def close(self) -> None:
        """End those that nobody took."""
        import ray

        self._closed.set()
        with self._lock:
            for _, spare in self._waiting:
                ray.kill(spare, no_restart=True)
            self._waiting.clear()

    def _host_of(self, spare: ActorHandle[PEActor]) -> str:
        """Return the node of one that answers."""
        with contextlib.suppress(PELostError, TimeoutError):
            return str(answer(spare.about.remote(), "a spare", "about", LOOK_TIMEOUT)[2])
        return ""

    def _renew(self) -> None:
        while not self._closed.wait(LEASE / RENEWALS):
            with self._lock:
                for _, spare in self._waiting:
                    spare.about.remote()
