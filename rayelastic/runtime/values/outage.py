"""An outage that a job waits for: a server or store outside it that doesn't answer."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outage:
    """A server or store that doesn't answer, and how the job retries.

    Args:
        reason: The last error, which names the server or store.
        operator: The sink or source that uses it; None: the checkpoints of the job do.
        since: Its start, in seconds since 1970.
        attempts: The number of attempts to restore the last checkpoint since then.
        pause: Seconds between the last attempt and the next one.
        timeout: Seconds for which the job waits in all, before it fails.

    >>> print(Outage("connection refused", "out", 0.0, 4, 2.0, 900.0))
    operator 'out' waits since 1970-01-01T00:00:00Z: connection refused. 4 attempts, the next one within 2 s; the job \
fails after 900 s
    """

    reason: str
    operator: str | None
    since: float
    attempts: int
    pause: float
    timeout: float

    def __str__(self) -> str:
        who = "the job" if self.operator is None else f"operator '{self.operator}'"
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.since))
        tried = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        return (
            f"{who} waits since {since}: {self.reason}. {tried}, the next one within {self.pause:g} s; "
            f"the job fails after {self.timeout:g} s"
        )
