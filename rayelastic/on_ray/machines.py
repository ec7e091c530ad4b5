"""Whether the machines of actors answer: Ray's default health checks need 15 s to notice that one is gone.

A machine answers if it accepts a connection to its raylet's port, whatever its processes are busy with.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rayelastic.on_ray.private import adapter

if TYPE_CHECKING:
    from ray.actor import ActorHandle

PROBE_TIMEOUT = 1.0  # seconds for a machine to accept a connection
SILENT = 60.0  # seconds after the last probe that failed; Ray has noticed its loss by then, or it is back


class Machines:
    """The machines that didn't answer lately.

    Args:
        machine_of: Returns the name of an actor's machine, and the address of its raylet.
        clock: Returns seconds.
    """

    def __init__(
        self,
        machine_of: Callable[[Any], tuple[str, tuple[str, int]]] = adapter.machine_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._machine_of = machine_of
        self._clock = clock
        self._failed: dict[str, float] = {}  # {machine: when its last probe failed}

    @property
    def silent(self) -> frozenset[str]:
        """The names of those that didn't answer their last probe, for a while."""
        since = self._clock() - SILENT
        return frozenset(name for name, at in list(self._failed.items()) if at > since)

    def is_silent(self, actor: ActorHandle[Any]) -> bool:
        """Return whether the machine of an actor didn't answer lately, without a probe."""
        return bool(silent := self.silent) and self._machine_of(actor)[0] in silent

    def answers(self, actor: ActorHandle[Any]) -> bool:
        """Probe the machine of an actor; return whether it answers, or is unknown."""
        name, address = self._machine_of(actor)
        if not name:
            return True
        try:
            socket.create_connection(address, PROBE_TIMEOUT).close()
        except ConnectionRefusedError:  # its raylet has ended, which Ray notices at once
            return True
        except OSError:
            self._failed[name] = self._clock()
            return False
        self._failed.pop(name, None)
        return True
