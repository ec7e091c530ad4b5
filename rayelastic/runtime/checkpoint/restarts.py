"""How often a job restarts from a checkpoint, and how long it waits for servers and stores outside it.

One outage lasts until a checkpoint is complete: a server that answers and fails at once spends the same budget. Pure:
times are passed in, and nobody is restarted here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.plan.settings.checkpoint import WINDOW
from rayelastic.runtime.values.outage import Outage

if TYPE_CHECKING:
    from rayelastic.plan.settings.checkpoint import Checkpoint
    from rayelastic.runtime.values.failure import Failure

FIRST_PAUSE = 0.25  # seconds before the second attempt in a row; twice as long before each further one
LONGEST_PAUSE = 15.0  # seconds
IN_VAIN_SHARE = 3  # one part in so many of its restarts may fail in a row without a complete checkpoint in between


def next_pause(pause: float) -> float:
    """Return the seconds before the next attempt, after one that waited `pause`."""
    return min(LONGEST_PAUSE, 2 * pause or FIRST_PAUSE)


def without_checkpoints(failure: Failure) -> Failure:
    """Return the failure of a job without checkpoints: an outage ends it; the failure has a hint."""
    if not failure.outage:
        return failure
    hint = "Without checkpoints a job can't wait for it: pass JobConfig(checkpoint=rel.Checkpoint('/mnt/checkpoints'))"
    return replace(failure, reason=f"{failure.reason}. {hint}")


class Restarts:
    """The restarts and outages of one job.

    Args:
        settings: How many restarts are allowed, and for how long the job waits in an outage.
    """

    def __init__(self, settings: Checkpoint) -> None:
        self._settings = settings
        self._times: deque[float] = deque()  # of restarts within the window; without those after outages
        self._checkpoints = -1  # complete ones, at the last loss
        self._in_vain = 0  # losses in a row without a checkpoint in between
        self.outage: Outage | None = None  # the last one
        self._outage_checkpoints = -1  # complete ones, when it began
        self._waited = 0.0  # seconds in it, without those of the current recovery
        self._waiting_since: float | None = None

    def count(self, now: float) -> None:
        """Count a restart."""
        self._times.append(now)

    def is_too_often(self, now: float) -> bool:
        """Return whether as many restarts as allowed were within the window."""
        while self._times and self._times[0] < now - WINDOW:
            self._times.popleft()
        return len(self._times) >= self._settings.restarts

    def is_in_vain(self, checkpoints: int) -> bool:
        """Return whether each loss comes before a checkpoint is complete, as when a tuple crashes its process.

        Args:
            checkpoints: How many are complete; call it once a loss.
        """
        self._in_vain = self._in_vain + 1 if checkpoints == self._checkpoints else 0
        self._checkpoints = checkpoints
        return self._in_vain >= max(1, self._settings.restarts // IN_VAIN_SHARE)

    def fails_outside(self, failure: Failure, checkpoints: int, now: float, wall: float) -> bool:
        """Record that a server or store doesn't answer; return whether an outage begins with this failure.

        Its `pause` is the wait before the next attempt.

        Args:
            failure: The failure of an operator, or of an attempt to restore.
            checkpoints: How many are complete.
            now: Seconds, monotonic.
            wall: Seconds since 1970.
        """
        before = self.outage if checkpoints == self._outage_checkpoints else None
        if before is None:
            self._outage_checkpoints, self._waited = checkpoints, 0.0
        if self._waiting_since is None:
            self._waiting_since = now
        since, attempts, pause = (
            (wall, 0, 0.0) if before is None else (before.since, before.attempts + 1, next_pause(before.pause))
        )
        timeout = self._settings.outage_timeout
        self.outage = Outage(failure.reason, failure.operator, since, attempts, pause, timeout)
        return before is None

    def runs(self, now: float) -> float:
        """Record that the job runs again, and return the seconds of the outage; 0: there was none."""
        if self._waiting_since is None:
            return 0.0
        self._waited, self._waiting_since = self.waited(now), None
        return self._waited

    def waited(self, now: float) -> float:
        """Return the seconds that the job has waited in this outage."""
        return self._waited + (now - self._waiting_since if self._waiting_since is not None else 0.0)

    def is_over_budget(self, now: float) -> bool:
        """Return whether the job waits, and has waited for as long as it may."""
        return self._waiting_since is not None and self.waited(now) >= self._settings.outage_timeout
