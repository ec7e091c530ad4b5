"""What is told of one checkpoint or savepoint: an immutable value that crosses processes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MOST_RECORDS", "CheckpointRecord"]

MOST_RECORDS = 20  # of a job that are kept: the last ones


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A checkpoint or savepoint of a job, complete or not.

    Args:
        number: of it; 0: it had none when it was given up.
        at: seconds since the start of the job, when it ended; under whichever coordinator.
        seconds: that it took.
        paused: of that, seconds for which sources were held.
        bytes: of state that was written, compressed; what hasn't changed since the last one isn't written again, and
            what sinks keep of their rows isn't counted.
        slowest: the operator whose state was there last: the mark came late to it, or there was much to write.
        slowest_seconds: from the start of the checkpoint until its state was written.
        held: the operator that stood still longest while its state was written; empty: all were copied while they
            went on.
        held_seconds: for which it did.
        place: of a savepoint, where it is; empty: a checkpoint.
        problem: why it was given up; empty: it is complete.
    """

    number: int
    at: float
    seconds: float
    paused: float = 0.0
    bytes: int = 0
    slowest: str = ""
    slowest_seconds: float = 0.0
    held: str = ""
    held_seconds: float = 0.0
    place: str = ""
    problem: str = ""

    @property
    def is_savepoint(self) -> bool:
        """Whether it is a complete savepoint."""
        return bool(self.place) and not self.problem
