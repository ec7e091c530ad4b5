"""Takes a checkpoint of a running job once a period, and removes what isn't needed any more.

Must not know how one is taken.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.errors import RayelasticError
from rayelastic.runtime.checkpoint.saving import Taken
from rayelastic.runtime.values.status import CheckpointCounters, State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CheckpointLoop"]

STANDSTILL_SHARE = 20  # sources stand still for at most one part in so many of the time
FIRST = 1.0  # seconds until the first one: before it the job could only begin anew
LONGEST_WAIT = 600.0  # seconds between two checkpoints, however long they take
MOST_BACKOFF = 16  # periods after failures in a row


class CheckpointLoop:
    """Takes checkpoints, one after the other.

    Args:
        job: its name.
        every: seconds between two.
        take: takes one with a number, and tells how long it took.
        state: of the job.
        counters: reads and, with a value, writes what was counted.
        last: the number of the last one, of an earlier coordinator's.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        job: str,
        every: float,
        take: Callable[[int], Taken],
        state: Callable[[], State],
        counters: Callable[[CheckpointCounters | None], CheckpointCounters],
        *,
        last: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._every = every
        self._take = take
        self._state = state
        self._counters = counters
        self._number = last
        self._clock = clock
        self._failed = 0  # in a row
        self._taking = threading.RLock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts its thread."""
        self._thread = threading.Thread(target=self._run, name=f"checkpoints-{self._job}", daemon=True)
        self._thread.start()

    def halt(self) -> None:
        """Has it end with the checkpoint that it is at; returns at once."""
        self._stopped.set()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Has nobody else take one meanwhile."""
        with self._taking:
            yield

    def take(self) -> None:
        """Takes one now, if the job runs, after the one that is being taken."""
        with self._taking:
            self._take_next()

    def _take_next(self) -> None:
        if self._state() is not State.RUNNING:
            return
        self._number += 1
        counted = self._counters(None)
        try:
            taken = self._take(self._number)
        except (RayelasticError, TimeoutError, OSError) as error:
            if self._stopped.is_set() or self._state() is not State.RUNNING:
                return  # it ends, or goes back: that is told elsewhere
            self._failed += 1
            self._counters(replace(counted, abandoned=counted.abandoned + 1, problem=str(error)))
            tell("checkpoint abandoned", job=self._job, level=logging.WARNING, reason=str(error))
            return
        self._failed = 0
        self._counters(
            replace(
                self._counters(None),
                taken=counted.taken + 1,
                last=taken.epoch,
                seconds=taken.seconds,
                paused=taken.paused,
                problem="",
            )
        )

    def wait_before_next(self) -> float:
        """Seconds until the next one is due."""
        if not self._counters(None).taken and not self._failed:
            return min(FIRST, self._every)
        backoff = self._every * min(MOST_BACKOFF, 1 << self._failed)
        return min(LONGEST_WAIT, max(backoff, STANDSTILL_SHARE * self._counters(None).paused))

    def _run(self) -> None:
        while not self._stopped.wait(self.wait_before_next()):
            self.take()
