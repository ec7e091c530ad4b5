"""The life of a PE: created, running, and then finished, failed or cancelled.

Owns its state and its failure. A thread that ends it holds `ending` meanwhile, so that it ends once.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from rayelastic.runtime.values.status import State

if TYPE_CHECKING:
    from rayelastic.runtime.values.failure import Failure


class ElementLife:
    """The life of one PE, from its creation on.

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
        self.state = State.CREATED
        self.failure: Failure | None = None  # the reason why it failed
        self._created_at = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since it was created."""
        return time.monotonic() - self._created_at

    def begins(self) -> None:
        """Record that it runs from now on."""
        self.state = State.RUNNING

    def ends(self, failure: Failure | None) -> None:
        """Record that it has ended by itself, with a failure or without."""
        self.failure = failure
        self.state = State.FINISHED if failure is None else State.FAILED

    def cancelled(self) -> None:
        """Record that it was ended from outside, unless it had ended before."""
        if not self.state.is_final:
            self.state = State.CANCELLED
