"""How long a job waits for servers and stores outside it, and when it retries.

One outage lasts until a checkpoint is complete: a server that answers and fails at once spends the same budget. Must
not know how a job recovers.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.runtime.values.outage import Outage

if TYPE_CHECKING:
    from collections.abc import Callable

    from rayelastic.runtime.values.failure import Failure

__all__ = ["FIRST_PAUSE", "LONGEST_PAUSE", "Outages", "without_checkpoints"]

FIRST_PAUSE = 0.25  # seconds before the second attempt in a row; twice as long before each further one
LONGEST_PAUSE = 15.0  # seconds


def without_checkpoints(failure: Failure) -> Failure:
    """Return the failure of a job without checkpoints: an outage ends it; the failure has a hint."""
    if not failure.outage:
        return failure
    hint = "Without checkpoints a job can't wait for it: pass JobConfig(checkpoint=rel.Checkpoint('/mnt/checkpoints'))"
    return replace(failure, reason=f"{failure.reason}. {hint}")


class Outages:
    """The outages of one job, one after the other.

    Args:
        timeout: Seconds for which the job waits in one, in all.
        clock: Returns seconds, monotonic.
        wall: Returns seconds since 1970.
    """

    def __init__(
        self, timeout: float, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._timeout = timeout
        self._clock = clock
        self._wall = wall
        self._now: Outage | None = None
        self._taken = -1  # checkpoints, when it began
        self._waited = 0.0  # seconds, without those of the current recovery
        self._waiting_since: float | None = None

    def fails(self, failure: Failure, taken: int) -> tuple[Outage, bool]:
        """Record that a server or store doesn't answer.

        Args:
            failure: The failure of an operator, or of an attempt to restore.
            taken: Checkpoints that the job has completed so far.

        Returns:
            The outage, whose `pause` is the wait before the next attempt, and whether it begins with this failure.
        """
        before = self._now if taken == self._taken else None
        if before is None:
            self._taken, self._waited = taken, 0.0
        if self._waiting_since is None:
            self._waiting_since = self._clock()
        pause = 0.0 if before is None else min(LONGEST_PAUSE, 2 * before.pause or FIRST_PAUSE)
        self._now = Outage(
            failure.reason,
            failure.operator,
            self._wall() if before is None else before.since,
            0 if before is None else before.attempts + 1,
            pause,
            self._timeout,
        )
        return self._now, before is None

    def ends(self) -> float:
        """Record that the job runs again; return the seconds that it has waited in the outage, 0 without one."""
        if self._waiting_since is None:
            return 0.0
        self._waited += self._clock() - self._waiting_since
        self._waiting_since = None
        return self._waited

    @property
    def waited(self) -> float:
        """Seconds that the job has waited in this outage."""
        return self._waited + (self._clock() - self._waiting_since if self._waiting_since is not None else 0.0)

    @property
    def is_over_budget(self) -> bool:
        """Whether the job has waited for as long as it may."""
        return self._waiting_since is not None and self.waited >= self._timeout
