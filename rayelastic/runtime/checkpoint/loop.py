"""Takes a checkpoint of a running job once per period.

Must not know how one is taken, nor when the next one is due (protocol.py).
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from rayelastic.errors import ErrorCode, RayelasticError, StateError
from rayelastic.errors.invariants import invariant
from rayelastic.runtime.values.checkpoint_record import CheckpointCounters, CheckpointRecord
from rayelastic.runtime.values.status import State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rayelastic.runtime.checkpoint.protocol import Schedule


class Life(Protocol):
    """The life of a job; JobLife implements it."""

    checkpoints: CheckpointCounters

    @property
    def state(self) -> State:
        """The job's state."""
        ...

    @property
    def seconds(self) -> float:
        """Seconds since the job runs, under any coordinator."""
        ...


class CheckpointLoop:
    """Takes checkpoints, one after the other.

    Args:
        job: The job's name.
        schedule: Says when the next one is due.
        take: Takes one, and returns its record.
        life: The job's life, with its counters.
        clock: Returns seconds, monotonic.
    """

    def __init__(
        self,
        job: str,
        schedule: Schedule,
        take: Callable[[], CheckpointRecord],
        life: Life,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._schedule = schedule
        self._take = take
        self._life = life
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
        if self._life.state is not State.RUNNING:
            return StateError("the job doesn't run", code=ErrorCode.JOB_NOT_RUNNING)
        with self._changed:
            self._begun += 1
            begun = self._begun
        since = self._life.seconds
        try:
            record = self._take()
        except (RayelasticError, TimeoutError, OSError) as error:
            if self._stopped or self._life.state is not State.RUNNING:
                return error  # it ends, or recovers: others report that
            self._failed += 1
            now, reason = self._life.seconds, f"{error}"
            self._life.checkpoints = self._life.checkpoints.aborted(
                CheckpointRecord(0, now, now - since, problem=reason)
            )
            seconds = round(now - since, 3)
            tell("checkpoint abandoned", job=self._job, level=logging.WARNING, seconds=seconds, reason=reason)
            return error
        self._failed = 0
        self._life.checkpoints = self._life.checkpoints.completed(replace(record, at=self._life.seconds))
        with self._changed:
            invariant(self._complete < begun <= self._begun, "checkpoints are completed in order", begun)
            self._complete = begun
            self._changed.notify_all()
        return None

    def _run(self) -> None:
        while self._wait():
            self.take()

    def _wait(self) -> bool:
        """Wait until the next one is due; False: there is none."""
        began = self._clock()
        with self._changed:
            while not self._stopped:
                asked = self._wanted > self._begun
                left = began + self._schedule.wait(self._life.checkpoints, self._failed, asked=asked) - self._clock()
                if left <= 0:
                    break
                self._changed.wait(left)
            return not self._stopped
