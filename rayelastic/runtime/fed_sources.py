"""The sources of a job that are fed from outside, as its coordinator manages them.

The client (rayelastic/job/feeding.py) asks for their address, reports failures, and waits until a checkpoint has its
rows. Must not know how checkpoints are taken or restored.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rayelastic.connectors.pushed.declaration import IngestSource
from rayelastic.errors import ErrorCode, PELostError, SourceError
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.runtime.ingest.feed import Secured
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import JobStatus, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rayelastic.connectors.pushed.frames import Epoch
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.values.specs import IngestAddress

PATIENCE = 5.0  # seconds that one call waits for a checkpoint; the client calls again
DRAIN_PATIENCE = 30.0  # seconds for a micro-batch to be complete before a job is stopped
LOOK = 0.02  # seconds between two checks


def is_streamed(operator: OperatorSpec) -> bool:
    """Return whether the client of a source drops its rows once a checkpoint has them."""
    return isinstance(operator.body, IngestSource) and operator.body.streams


class FedSources:
    """The fed sources of one job.

    Args:
        operators: The job's operators.
        hosting: Returns the element that has a source; raises PELostError if it is gone.
        status: Returns the job's status.
        checkpoint: Requests a checkpoint, waits for it, so many seconds at most, and returns whether one is complete
            that was started since. None: the job takes none.
        fail: Fails the job.
    """

    def __init__(
        self,
        operators: Iterable[OperatorSpec],
        hosting: Callable[[str], ElementApi],
        status: Callable[[], JobStatus],
        checkpoint: Callable[[float], bool] | None,
        fail: Callable[[Failure], None],
    ) -> None:
        self._streamed = tuple(operator.name for operator in operators if is_streamed(operator))
        self._hosting = hosting
        self._status = status
        self._checkpoint = checkpoint
        self._fail = fail
        self._nobody = threading.Event()
        self._stops = False
        self._saving = False
        self._unsafe: set[str] = set()  # sources whose micro-batch has arrived, and is in no checkpoint

    @contextmanager
    def saved(self) -> Iterator[None]:
        """Keep pushes from failing while a job is stopped with a savepoint, which ends its sources."""
        self._saving = True
        try:
            yield
        except BaseException:
            self._saving = False
            raise

    def address(self, source: str) -> IngestAddress | None:
        """Return the address to push rows to; None while the job recovers.

        Raises:
            SourceError: The job is over, or is being stopped.
        """
        status = self._status()
        if status.state.is_final or self._stops:
            raise SourceError("its job has ended or is about to end", operator=source, code=ErrorCode.JOB_NOT_RUNNING)
        if status.state is not State.RUNNING or self._saving:
            return None
        try:
            return self._hosting(source).ingest_address(source)
        except (PELostError, TimeoutError):
            if self._checkpoint is None:
                raise
            return None

    def fail(self, source: str, reason: str, pushed_to: IngestAddress | None) -> bool:
        """Report a failed push, which fails the job unless it recovers; True: repeat the push."""
        if self._status().state.is_final or self._stops:
            return False
        if self._saving:
            return True
        if pushed_to is not None and self._checkpoint is not None and self._is_gone(source, pushed_to):
            return True
        self._fail(Failure(reason, operator=source, code=ErrorCode.FEED_FAILED))
        return False

    def secure(self, source: str, address: IngestAddress, epoch: Epoch, rows: dict[int, int]) -> Secured:
        """Wait until a checkpoint has the rows of a micro-batch, a few seconds at most. Safe to repeat.

        In a job without checkpoints, it suffices that they have arrived.

        Raises:
            SourceError: Other rows have arrived, or the job is over.
        """
        self._unsafe.add(source)
        secured = self._secured(source, address, epoch, rows)
        if secured is Secured.HELD:
            self._unsafe.discard(source)
        return secured

    def await_complete(self) -> None:
        """Wait until no micro-batch is open, and let none begin, because the job is about to be stopped."""
        self._stops = True
        until = time.monotonic() + DRAIN_PATIENCE
        while self._under_way() and not self._status().state.is_final and time.monotonic() < until:
            self._nobody.wait(LOOK)

    @property
    def has_streams(self) -> bool:
        """Whether there are sources of micro-batches."""
        return bool(self._streamed)

    # -- implementation -------------------------------------------------------------------------------------------

    def _secured(self, source: str, address: IngestAddress, epoch: Epoch, rows: dict[int, int]) -> Secured:
        until, status = time.monotonic() + PATIENCE, self._status()
        if status.state.is_final:
            raise SourceError("its job has ended", operator=source, code=ErrorCode.JOB_NOT_RUNNING)
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
            # The checkpoint has the rows only if their element still exists: the job may have recovered.
            same = self._hosting(source).ingest_address(source).is_same(address)
        except (PELostError, TimeoutError):
            return Secured.NOT_YET  # the next call detects the outcome
        return Secured.HELD if done and same else Secured.NOT_YET

    def _under_way(self) -> bool:
        try:
            return bool(self._unsafe) or any(self._hosting(source).has_open_epoch(source) for source in self._streamed)
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
