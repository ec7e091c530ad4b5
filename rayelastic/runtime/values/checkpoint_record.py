"""The record of one checkpoint or savepoint: an immutable value that crosses processes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MOST_RECORDS", "CheckpointRecord"]

MOST_RECORDS = 20  # kept for a job: the last ones


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A checkpoint or savepoint of a job, complete or not.

    Args:
        number: Its number; 0: it was aborted before it had one.
        at: Seconds since the start of the job, under any coordinator, when it ended.
        seconds: Its duration.
        paused: The part of that for which sources were held.
        bytes: Bytes of state that were written, compressed. State that hasn't changed isn't written again, and rows of
            sinks don't count.
        slowest: The operator whose state was written last: the barrier reached it late, or its state was large.
        slowest_seconds: From the start of the checkpoint until its state was written.
        held: The operator that was held longest while its state was written; empty: all were copied while they ran.
        held_seconds: How long it was held.
        place: The location of a savepoint; empty: a checkpoint.
        problem: Why it was aborted; empty: it is complete.
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
