"""The life of a processing element: created, running, and once finished, failed or cancelled.

Owns its state and the failure that it ended by. Whoever ends it holds `ending` meanwhile, so that it ends once.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from rayelastic.runtime.values.status import State

if TYPE_CHECKING:
    from rayelastic.runtime.values.failure import Failure

__all__ = ["ElementLife"]


class ElementLife:
    """The life of one processing element, which is created now.

    Example:
        >>> life = ElementLife()
        >>> life.begins()
        >>> life.ends(None)
        >>> life.cancelled()
        >>> life.state, life.failure
        (<State.FINISHED: 'finished'>, None)
    """

    def __init__(self) -> None:
        self.ending = threading.Lock()
        self._state = State.CREATED
        self._failure: Failure | None = None
        self._created_at = time.monotonic()

    @property
    def state(self) -> State:
        """Where it is in it."""
        return self._state

    @property
    def failure(self) -> Failure | None:
        """Why it failed; None if it didn't."""
        return self._failure

    @property
    def age(self) -> float:
        """Seconds since it was created."""
        return time.monotonic() - self._created_at

    def begins(self) -> None:
        """It runs from now on."""
        self._state = State.RUNNING

    def ends(self, failure: Failure | None) -> None:
        """It has ended by itself, with a failure or without."""
        self._failure = failure
        self._state = State.FINISHED if failure is None else State.FAILED

    def cancelled(self) -> None:
        """Others have ended it, if it hadn't ended before."""
        if not self._state.is_final:
            self._state = State.CANCELLED
