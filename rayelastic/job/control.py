"""A coordinator as a job talks to it, in this process or in an actor."""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rayelastic.runtime.job.api import CoordinatorApi
    from rayelastic.runtime.job.coordinator import Coordinator

__all__ = ["CONTROL_TIMEOUT", "Control", "LocalControl"]

CONTROL_TIMEOUT = 30.0  # seconds for a control call of which nothing else is said


class Control(Protocol):
    """A coordinator, in this process or in an actor."""

    def within(self, timeout: float) -> CoordinatorApi:
        """Returns the coordinator itself, as far as the caller can tell.

        Args:
            timeout: seconds that each call of a method waits for its answer, which TimeoutError ends.
        """
        ...

    def close(self) -> None:
        """Ends the coordinator and everything that it started."""
        ...


class LocalControl:
    """A coordinator in this process."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        atexit.register(self.close)  # threads in native code mustn't outlive the interpreter

    def within(self, timeout: float) -> CoordinatorApi:  # noqa: ARG002  (nothing can be lost here)
        """Returns the coordinator."""
        return self._coordinator

    def close(self) -> None:
        """Ends the coordinator and everything that it started."""
        atexit.unregister(self.close)
        self._coordinator.close()
