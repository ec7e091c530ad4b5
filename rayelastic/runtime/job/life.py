"""The life of a job and of its PEs: created, running, and then finished, failed or cancelled.

Owns these states only: watchers report changes, waiters are notified, and the callback of the end does the rest.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, StateError
from rayelastic.runtime.values.checkpoint_record import CheckpointCounters
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import JobStatus, PEStatus, State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from rayelastic.runtime.values.outage import Outage


class JobLife:
    """The states of one job.

    Args:
        job: The job's name.
        pes: Its PEs, which aren't started yet.
        ending: Called once, with the state and the failure, before waiters are notified of the end.
        clock: Returns seconds, monotonic.
        wall: Returns seconds since 1970, which another process can continue.
        owner: The user who started the job.
    """

    def __init__(
        self,
        job: str,
        pes: Collection[str],
        ending: Callable[[State, Failure | None], None],
        clock: Callable[[], float],
        wall: Callable[[], float] = time.time,
        owner: str = "",
    ) -> None:
        self._job = job
        self._owner = owner
        self._ending = ending
        self._clock = clock
        self.wall = wall
        self._changed = threading.Condition()
        self._state = State.CREATED
        self._failure: Failure | None = None
        self._over = False  # final, and waiters were notified
        self._cancelling = False
        self._saving = 0  # the number of savepoints that are being written
        self._elements = {pe: PEStatus(pe, State.CREATED) for pe in pes}
        self._started_at = clock()
        self.checkpoints = CheckpointCounters()  # set by the taker of checkpoints
        self.completes: Callable[[], None] | None = None  # set by the part that completes a job with checkpoints
        self.paused = False  # set when the elasticity is paused
        self.outage: Outage | None = None  # set while the job waits for the end of an outage

    # --- its reports --------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The job's state."""
        return self._state

    @property
    def failure(self) -> Failure | None:
        """Why it failed, if it did."""
        return self._failure

    @property
    def is_cancelling(self) -> bool:
        """Whether its sources have been stopped."""
        return self._cancelling

    @property
    def is_recovering(self) -> bool:
        """Whether its elements have been replaced by new ones, which don't run yet."""
        return self._state is State.RECOVERING

    @property
    def has_finished(self) -> bool:
        """Whether the streams of all elements have ended, and the job isn't over."""
        with self._changed:
            finished = [status.state is State.FINISHED for status in self._elements.values()]
            live = not self._state.is_final and self._state is not State.RECOVERING
            return live and bool(finished) and all(finished)

    @property
    def seconds(self) -> float:
        """Seconds since the job runs, under any coordinator."""
        return self._clock() - self._started_at

    def status(self) -> JobStatus:
        """Return the state of the job and of each element."""
        with self._changed:
            elements = tuple(self._elements.values())
            outage = self.outage if self._state is State.RECOVERING else None
            said = self._job, self._state, self._failure, elements, self.checkpoints, self.paused, outage
            return JobStatus(*said, owner=self._owner)

    def elements(self) -> dict[str, PEStatus]:
        """Return the states of the existing elements, by id."""
        with self._changed:
            return dict(self._elements)

    def wait(self, timeout: float | None) -> bool:
        """Wait until the job is over and its elements have ended, or so many seconds; return whether they have."""
        with self._changed:
            return self._changed.wait_for(lambda: self._over, timeout)

    # --- changes of elements ------------------------------------------------------------------------------------

    def begins(self, status: PEStatus) -> None:
        """Record an element that has been started."""
        with self._changed:
            self._elements[status.pe] = status

    def progresses(self, status: PEStatus) -> None:
        """Record the state of an element; a retired one is ignored."""
        with self._changed:
            if status.pe in self._elements and not self._state.is_final:
                self._elements[status.pe] = status

    def loses(self, pe: str, reason: str) -> bool:
        """Record that an element is gone; return whether the job still had it."""
        with self._changed:
            if self._state.is_final or pe not in self._elements:
                return False
            self._elements[pe] = replace(
                self._elements[pe], state=State.FAILED, failure=Failure(reason, code=ErrorCode.PE_LOST)
            )
            return True

    def keeps(self, pes: Collection[str]) -> None:
        """Remove all elements but these; the job is over if these have ended meanwhile."""
        with self._changed:
            self._elements = {pe: status for pe, status in self._elements.items() if pe in pes}
        self.end_if_finished()

    # --- changes of the job ---------------------------------------------------------------------------------------

    def runs(self, began: float | None = None) -> None:
        """Record that all elements run under this coordinator.

        Args:
            began: When they first did, by the wall clock, if that was under an earlier coordinator.
        """
        with self._changed:
            age = 0.0 if began is None else max(0.0, self.wall() - began)
            self._started_at = self._clock() - age
            if self._state is State.CREATED:  # a short job may be over, or an element may be lost already
                self._state = State.RUNNING

    def runs_again(self) -> None:
        """Record that the new elements run."""
        with self._changed:
            if self._state is State.RECOVERING:
                self._state = State.RUNNING

    def recovers(self) -> bool:
        """Record that all elements are replaced by new ones; return whether the job isn't over."""
        with self._changed:
            if self._state.is_final:
                return False
            self._state = State.RECOVERING
            self._elements = {}
            return True

    def cancels(self) -> bool:
        """Record that the job is to stop; return whether it wasn't over already."""
        with self._changed:
            self._cancelling = self._cancelling or not self._state.is_final
            return not self._state.is_final

    def was_over(self, state: State, failure: Failure | None) -> None:
        """Record how the job ended under an earlier coordinator, so that nothing is left to end."""
        with self._changed:
            self._state, self._failure = state, failure
            self._over = True

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Keep a job that runs from finishing inside the context, in which it is saved.

        Raises:
            StateError: It doesn't run.
        """
        with self._changed:
            if self._state is not State.RUNNING:
                message = f"job '{self._job}' is {self._state.value}: nothing to save"
                raise StateError(message, code=ErrorCode.JOB_NOT_RUNNING)
            self._saving += 1
        try:
            yield
        finally:
            with self._changed:
                self._saving -= 1
            self.end_if_finished()

    def end_if_finished(self) -> None:
        """End the job if all of its elements have finished; one that takes checkpoints is completed before."""
        if self.completes is None:
            self.finish()
        elif self._state is State.RUNNING and self.has_finished and not self._saving:
            self.completes()

    def finish(self) -> None:
        """End the job if all of its elements have finished and are completed."""
        with self._changed:  # under one lock: a loss in between would leave no element, and so no unfinished one
            if not self.has_finished or self._saving:
                return
            state = State.CANCELLED if self._cancelling else State.FINISHED
            over = self._becomes(state, None)
        if over:
            self._ends(state, None)

    def fail(self, failure: Failure | None) -> None:
        """End the job as failed; the first failure counts."""
        self.end(State.FAILED, failure)

    def end(self, state: State, failure: Failure | None = None) -> None:
        """Make the job final, once."""
        if self._becomes(state, failure):
            self._ends(state, failure)

    def _becomes(self, state: State, failure: Failure | None) -> bool:
        with self._changed:
            if self._state.is_final:
                return False
            self._state, self._failure = state, failure
            return True

    def _ends(self, state: State, failure: Failure | None) -> None:
        try:
            self._ending(state, failure)
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()
