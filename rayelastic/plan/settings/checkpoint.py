"""How often a running job saves itself, where, and how often it may be restarted from there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rayelastic.errors import ConfigError

__all__ = ["Checkpoint"]

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
    on the local disk of each node: they survive lost processes, and nodes that return.

    Args:
        location: A folder that every node sees, or a URI that pyarrow.fs knows. None: a folder on the local disk of
            each node, removed when the job has ended.
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
    rayelastic.errors.ConfigError: Checkpoint(every=0). Pass seconds, 0.2 or more [invalid-setting]
    """

    location: str | Path | None = None
    every: float = EVERY
    keep: int = 2
    restarts: int = 10
    outage_timeout: float = OUTAGE_TIMEOUT
    key: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        every: object = self.every
        if not isinstance(every, int | float) or isinstance(every, bool) or not SHORTEST <= every < float("inf"):
            raise ConfigError(f"Checkpoint(every={every!r})", hint=f"Pass seconds, {SHORTEST:g} or more")
        timeout: object = self.outage_timeout
        if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 <= timeout < float("inf"):
            raise ConfigError(f"Checkpoint(outage_timeout={timeout!r})", hint="Pass seconds, 0 or more")
        for name, least in (("keep", 1), ("restarts", 0)):
            value: object = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"Checkpoint({name}={value!r})", hint=f"Pass a whole number, {least} or more")
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
