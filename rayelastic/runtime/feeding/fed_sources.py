"""The sources of a job that are fed from outside, as its coordinator answers for them.

Whoever pushes (rayelastic/job/feeding.py) asks where to, tells of failures, and waits until a checkpoint has what came.
Must not know how checkpoints are taken, nor how a job goes back to one.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rayelastic.errors import PELostError, SourceError
from rayelastic.graph.edges.pushed import IngestSource
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.runtime.ingest.feed import Secured
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import JobStatus, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.ingest.frames import Epoch
    from rayelastic.runtime.values.specs import IngestAddress

__all__ = ["FedSources", "is_streamed"]

PATIENCE = 5.0  # seconds that one call waits for a checkpoint; whoever pushes asks again
DRAIN_PATIENCE = 30.0  # seconds for a micro-batch to be complete before a job is stopped
LOOK = 0.02  # seconds between two looks


def is_streamed(operator: OperatorSpec) -> bool:
    """Return whether it is a source whose rows are forgotten by whoever pushes once a checkpoint has them."""
    return isinstance(operator.body, IngestSource) and operator.body.streams


class FedSources:
    """Those of one job.

    Args:
        operators: of the job.
        hosting: the element that has a source; raises PELostError if it is gone.
        status: of the job.
        checkpoint: has a checkpoint be taken and waits for it, so many seconds at most; whether one is complete that
            was begun since. None: the job takes none.
        fail: ends the job.
    """

    def __init__(
        self,
        operators: Iterable[OperatorSpec],
        hosting: Callable[[str], ElementApi],
        status: Callable[[], JobStatus],
        checkpoint: Callable[[float], bool] | None,
        fail: Callable[[Failure], None],
    ) -> None:
        self._streamed = tuple(one.name for one in operators if is_streamed(one))
        self._hosting = hosting
        self._status = status
        self._checkpoint = checkpoint
        self._fail = fail
        self._nobody = threading.Event()
        self._stops = False
        self._saving = False
        self._unsafe: set[str] = set()  # sources whose micro-batch has come, and is in no checkpoint

    @contextmanager
    def saved(self) -> Iterator[None]:
        """While a job is stopped into a snapshot, which ends its sources: nobody's push fails by that."""
        self._saving = True
        try:
            yield
        except BaseException:
            self._saving = False
            raise

    def address(self, source: str) -> IngestAddress | None:
        """Where to push rows to; None while the job goes back.

        Raises:
            SourceError: the job is over, or is being stopped.
        """
        status = self._status()
        if status.state.is_final or self._stops:
            raise SourceError("its job is over, or about to be", operator=source)
        if status.state is not State.RUNNING or self._saving:
            return None
        try:
            return self._hosting(source).ingest_address(source)
        except (PELostError, TimeoutError):
            if self._checkpoint is None:
                raise
            return None

    def fail(self, source: str, reason: str, pushed_to: IngestAddress | None) -> bool:
        """Says that a push failed; so has the job, unless it goes back and the push is to be repeated: True then."""
        if self._status().state.is_final or self._stops:
            return False
        if self._saving:
            return True
        if pushed_to is not None and self._checkpoint is not None and self._is_gone(source, pushed_to):
            return True
        self._fail(Failure(reason, operator=source))
        return False

    def secure(self, source: str, address: IngestAddress, epoch: Epoch, rows: dict[int, int]) -> Secured:
        """Wait until a checkpoint has the rows of a micro-batch, a few seconds at most. Safe to repeat.

        A job without checkpoints has nothing better than that they have arrived.

        Raises:
            SourceError: other rows have arrived, or the job is over.
        """
        self._unsafe.add(source)
        secured = self._secured(source, address, epoch, rows)
        if secured is Secured.HELD:
            self._unsafe.discard(source)
        return secured

    def await_complete(self) -> None:
        """Wait until no micro-batch is under way, and let none begin: the job is about to be stopped."""
        self._stops = True
        until = time.monotonic() + DRAIN_PATIENCE
        while self._under_way() and not self._status().state.is_final and time.monotonic() < until:
            self._nobody.wait(LOOK)

    @property
    def has_streams(self) -> bool:
        """Whether there are sources that get micro-batches."""
        return bool(self._streamed)

    # -- how it is done -------------------------------------------------------------------------------------------

    def _secured(self, source: str, address: IngestAddress, epoch: Epoch, rows: dict[int, int]) -> Secured:
        until, status = time.monotonic() + PATIENCE, self._status()
        if status.state.is_final:
            raise SourceError("its job is over", operator=source)
        if status.state is not State.RUNNING:
            return Secured.GONE
        try:
            element = self._hosting(source)
            if not element.ingest_address(source).is_same(address):
                return Secured.GONE
            while element.end_epoch(source, epoch, rows) and self._checkpoint is not None:
                if time.monotonic() > until:
                    return Secured.NOT_YET
                self._nobody.wait(LOOK)
            if self._checkpoint is None:
                return Secured.HELD
            done = self._checkpoint(max(LOOK, until - time.monotonic()))
            # It is of what has the rows only if that is still there: the job may have gone back, or on by another plan.
            same = self._hosting(source).ingest_address(source).is_same(address)
        except (PELostError, TimeoutError):
            return Secured.NOT_YET  # the next call hears what has become of it
        return Secured.HELD if done and same else Secured.NOT_YET

    def _under_way(self) -> bool:
        try:
            return bool(self._unsafe) or any(self._hosting(one).has_open_epoch(one) for one in self._streamed)
        except (PELostError, TimeoutError):
            return False

    def _is_gone(self, source: str, pushed_to: IngestAddress) -> bool:
        if self._status().state is not State.RUNNING:
            return True
        try:
            element = self._hosting(source)
            return element.status().state is State.FAILED or not element.ingest_address(source).is_same(pushed_to)
        except (PELostError, TimeoutError):
            return True
