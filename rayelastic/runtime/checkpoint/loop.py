"""Takes a checkpoint of a running job once per period, and removes obsolete ones.

Must not know how one is taken.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, RayelasticError, StateError
from rayelastic.runtime.checkpoint.saving import Taken
from rayelastic.runtime.values.checkpoint_record import CheckpointCounters, CheckpointRecord
from rayelastic.runtime.values.status import State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CheckpointLoop"]

STANDSTILL_SHARE = 20  # sources are held for at most one part in so many of the time
ASKED_SHARE = 2  # the same for a requested checkpoint, because the requesting source waits anyway
FIRST = 1.0  # seconds until the first one: before it the job could only restart from its beginning
LONGEST_WAIT = 600.0  # seconds between two checkpoints, however long they take
MOST_BACKOFF = 16  # periods after failures in a row


class CheckpointLoop:
    """Takes checkpoints, one after the other.

    Args:
        job: The job's name.
        every: Seconds between two.
        take: Takes one, and returns its duration.
        state: Returns the job's state.
        counters: Reads and, with a value, writes the counters.
        clock: Returns seconds, monotonic.
        age: Returns seconds since the start of the job, for the records; `clock` by default.
    """

    def __init__(
        self,
        job: str,
        every: float,
        take: Callable[[], Taken],
        state: Callable[[], State],
        counters: Callable[[CheckpointCounters | None], CheckpointCounters],
        *,
        clock: Callable[[], float] = time.monotonic,
        age: Callable[[], float] | None = None,
    ) -> None:
        self._age = age or clock
        self._job = job
        self._every = every
        self._take = take
        self._state = state
        self._counters = counters
        self._clock = clock
        self._failed = 0  # in a row
        self._taking = threading.RLock()
        self._changed = threading.Condition()  # guards the fields below
        self._begun = 0  # the number of started checkpoints
        self._complete = 0  # the number of the last complete one
        self._wanted = 0  # a caller waits for the one of this number, or for a later one
        self._stopped = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start its thread."""
        self._thread = threading.Thread(target=self._run, name=f"checkpoints-{self._job}", daemon=True)
        self._thread.start()

    def halt(self) -> None:
        """Make it end with the current checkpoint; return at once."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def join(self, timeout: float) -> None:
        """Wait until its thread has ended, and its last checkpoint is written; so many seconds at most."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def ask(self, timeout: float) -> bool:
        """Request a checkpoint as soon as possible, wait, and return whether one is complete that was started since.

        Args:
            timeout: Seconds.
        """
        with self._changed:
            wanted = self._begun + 1
            self._wanted = max(wanted, self._wanted)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._complete >= wanted or self._stopped, timeout)
            return self._complete >= wanted

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Prevent other checkpoints inside the context."""
        with self._taking:
            yield

    def take(self) -> Exception | None:
        """Take one now, if the job runs, after the current one; return why it failed."""
        with self._taking:
            return self._take_next()

    def _take_next(self) -> Exception | None:
        if self._state() is not State.RUNNING:
            return StateError("the job doesn't run", code=ErrorCode.JOB_NOT_RUNNING)
        with self._changed:
            self._begun += 1
            begun = self._begun
        counted, since = self._counters(None), self._age()
        try:
            taken = self._take()
        except (RayelasticError, TimeoutError, OSError) as error:
            if self._stopped or self._state() is not State.RUNNING:
                return error  # it ends, or recovers: others report that
            self._failed += 1
            now, reason = self._age(), f"{error}"
            given_up = self._counters(None).with_record(CheckpointRecord(0, now, now - since, problem=reason))
            spent = counted.abandoned_seconds + now - since
            self._counters(replace(given_up, abandoned=counted.abandoned + 1, abandoned_seconds=spent, problem=reason))
            seconds = round(now - since, 3)
            tell("checkpoint abandoned", job=self._job, level=logging.WARNING, seconds=seconds, reason=reason)
            return error
        self._failed = 0
        self._counters(
            replace(
                self._counters(None).with_record(taken.record(self._age())),
                taken=counted.taken + 1,
                last=taken.epoch,
                seconds=taken.seconds,
                paused=taken.paused,
                problem="",
            )
        )
        with self._changed:
            self._complete = begun
            self._changed.notify_all()
        return None

    def wait_before_next(self, *, asked: bool = False) -> float:
        """Return the seconds until the next one is due.

        Args:
            asked: Whether it is requested by a source that waits meanwhile.
        """
        if asked:
            backoff = min(FIRST, self._every) * min(MOST_BACKOFF, (1 << self._failed) - 1)
            return min(LONGEST_WAIT, max(backoff, ASKED_SHARE * self._counters(None).paused))
        if not self._counters(None).taken and not self._failed:
            return min(FIRST, self._every)
        backoff = self._every * min(MOST_BACKOFF, 1 << self._failed)
        return min(LONGEST_WAIT, max(backoff, STANDSTILL_SHARE * self._counters(None).paused))

    def _run(self) -> None:
        while self._wait():
            self.take()

    def _wait(self) -> bool:
        """Wait until the next one is due; False: there is none."""
        began = self._clock()
        with self._changed:
            while not self._stopped:
                left = began + self.wait_before_next(asked=self._wanted > self._begun) - self._clock()
                if left <= 0:
                    break
                self._changed.wait(left)
            return not self._stopped
