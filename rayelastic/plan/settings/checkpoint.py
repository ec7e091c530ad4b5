"""How often a running job saves itself, where, and how often it may be restarted from there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rayelastic.errors import ConfigError
from rayelastic.plan.settings.checks import check_seconds, check_whole

EVERY = 10.0  # seconds
SHORTEST = 0.2  # seconds
OUTAGE_TIMEOUT = 900.0  # seconds: a minor upgrade of a server takes a minute, a failover some
SHORTEST_KEY = 16  # bytes
WINDOW = 600.0  # seconds in which so many restarts are too many


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Periodic checkpoints of a running job.

    When a PE is lost, with its process, its node or its links, the job restores the last complete
    checkpoint. Each row counts once in every state, in files and in results. A job on Ray takes checkpoints by default,
    on the local disk of each node, with a second copy on another node. They survive lost processes, and a lost node.

    Args:
        location: A folder that every node sees, or a URI that pyarrow.fs knows. None: a folder on the local disk of
            each node, and a second copy on another one, removed when the job has ended.
        every: Seconds between two checkpoints, 0.2 or more. Jobs whose sources pause for a checkpoint take them less
            often: sources pause for at most a twentieth of the time.
        keep: How many complete checkpoints are kept, 1 or more. A recovery restores the newest whole one.
        restarts: How many recoveries within ten minutes are allowed before the job fails. In a row, with no complete
            checkpoint between, a third of that. Outages don't count.
        outage_timeout: Seconds for which the job waits for a server or store outside that doesn't answer, before it
            fails. 0: it doesn't wait.
        key: Secret bytes (16 or more) that sign what is saved. None: a secret of the job's own, which another job
            doesn't have.

    Raises:
        ConfigError: a value is out of range.

    >>> Checkpoint(every=2.0).keep
    2
    >>> Checkpoint("/mnt/checkpoints", outage_timeout=3600.0).outage_timeout
    3600.0
    >>> Checkpoint(every=0)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: Checkpoint(every=0). Give seconds, 0.2 or more [invalid-setting]
    """

    location: str | Path | None = None
    every: float = EVERY
    keep: int = 2
    restarts: int = 10
    outage_timeout: float = OUTAGE_TIMEOUT
    key: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_seconds(f"Checkpoint(every={self.every!r})", self.every, SHORTEST)
        check_seconds(f"Checkpoint(outage_timeout={self.outage_timeout!r})", self.outage_timeout, 0)
        check_whole(f"Checkpoint(keep={self.keep!r})", self.keep)
        check_whole(f"Checkpoint(restarts={self.restarts!r})", self.restarts, 0)
        location: object = self.location
        if location is not None and not (isinstance(location, str | Path) and str(location)):
            raise ConfigError(f"Checkpoint({location!r}): no location", hint="Pass a folder, a URI, or None")
        if location is not None:
            text = str(location)
            object.__setattr__(self, "location", text if "://" in text else str(Path(text).absolute()))
        key: object = self.key
        if key is not None and not (isinstance(key, bytes) and len(key) >= SHORTEST_KEY):
            raise ConfigError(
                f"Checkpoint(key=...) must be {SHORTEST_KEY} bytes or more",
                hint="Make one with secrets.token_bytes(32) and keep it where a later job can read it",
            )
