"""Sources outside the PEs, which this process pushes, in a thread for each, until the job is over.

When the job restores a checkpoint, its source has another address and needs again what the checkpoint lacks. So it is
pushed again, and the source drops what the checkpoint has.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from rayelastic.errors import ErrorCode, PELostError, RayelasticError, SourceError
from rayelastic.job.control import CONTROL_TIMEOUT
from rayelastic.runtime.ingest.feed import Secured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rayelastic.connectors.pushed.frames import Epoch
    from rayelastic.job.control import Control
    from rayelastic.runtime.ingest.external_source import ExternalSource
    from rayelastic.runtime.job.api import CoordinatorApi
    from rayelastic.runtime.values.specs import IngestAddress

LOOK = 0.1  # seconds between two checks whether the job runs again
CLOSE_PATIENCE = 30.0  # seconds for a source to end
WATCH = 1.0  # seconds between two checks whether pushed rows are needed again
COORDINATOR_PATIENCE = 60.0  # seconds for a lost coordinator to be replaced

T = TypeVar("T")


class Feeds:
    """The sources that this process pushes into one job.

    Args:
        control: The job's coordinator.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._feeds: list[tuple[_JobFeed, threading.Thread]] = []

    def begin(self, operator: str, source: ExternalSource) -> None:
        """Begin to push the rows of a source; return at once."""
        feed = _JobFeed(self._control, operator, source)
        thread = threading.Thread(target=feed.run, name=f"feed-{operator}", daemon=True)
        self._feeds.append((feed, thread))
        thread.start()

    def cancel(self) -> None:
        """Stop all sources; return at once."""
        for feed, _ in self._feeds:
            feed.cancel()

    def close(self) -> None:
        """Stop all sources, and wait until they have, so that accepted rows are committed."""
        self.cancel()
        for _, thread in self._feeds:
            if thread is not threading.current_thread():
                thread.join(CLOSE_PATIENCE)


class _JobFeed:
    """One pushed source: a Feed."""

    def __init__(self, control: Control, operator: str, source: ExternalSource) -> None:
        self._control = control
        self.operator = operator
        self._source = source
        self._cancelled = threading.Event()

    def run(self) -> None:
        """Push all rows, as often as the job requests them, and report the outcome to the coordinator."""
        address: IngestAddress | None = None
        while True:
            try:
                address = self.address()
                if not address.complete:
                    rows = self._source.push(self)
                    self._ask(lambda coordinator, rows=rows: coordinator.finish_source(self.operator, rows))  # type: ignore[misc]
                if not self._is_wanted_again():
                    return
            except Exception as error:  # any error of the source fails the job
                if self._cancelled.is_set() or not self._tells(address, f"{error}"):
                    return

    def cancel(self) -> None:
        """Stop the source."""
        self._cancelled.set()
        self._source.cancel()

    # --- calls of the source ----------------------------------------------------------------------------------------

    def address(self) -> IngestAddress:
        """Return the address to push to; see Feed.address."""
        while (address := self._ask(lambda coordinator: coordinator.ingest_address(self.operator))) is None:
            if self._cancelled.wait(LOOK):
                raise SourceError("its push was cancelled", operator=self.operator, code=ErrorCode.PUSH_CANCELLED)
        return address

    def must_repeat(self, address: IngestAddress, reason: str) -> bool:
        """Return whether a push is to be repeated; see Feed.must_repeat."""
        return not self._cancelled.is_set() and self._ask(
            lambda coordinator: coordinator.fail_source(self.operator, reason, address)
        )

    def secure(self, address: IngestAddress, epoch: Epoch, rows: Mapping[int, int]) -> bool:
        """Wait until a checkpoint has a micro-batch; see Feed.secure."""
        counts = dict(rows)
        while True:
            secured = self._ask(lambda coordinator: coordinator.secure_source(self.operator, address, epoch, counts))
            if secured is not Secured.NOT_YET:
                return secured is Secured.HELD

    # -- implementation -------------------------------------------------------------------------------------------

    def _tells(self, address: IngestAddress | None, reason: str) -> bool:
        """Report a failure to the coordinator; return whether the source is to be pushed again."""
        try:
            if address is not None:
                return self.must_repeat(address, reason)
            self._ask(lambda coordinator: coordinator.fail_source(self.operator, reason))
        except RayelasticError:
            pass  # the coordinator is gone: the job has ended already
        return False

    def _is_wanted_again(self) -> bool:
        """Wait until the job is over, or needs rows again, because it restores a checkpoint without all of them."""
        while not self._cancelled.is_set():
            if self._ask(lambda coordinator: coordinator.wait(WATCH)).state.is_final:
                return False
            with suppress(PELostError, TimeoutError, SourceError):  # it recovers, or is about to end
                found = self._control.within(CONTROL_TIMEOUT).ingest_address(self.operator)
                if found is not None and not found.complete:
                    return True
        return False

    def _ask(self, question: Callable[[CoordinatorApi], T]) -> T:
        """Call the coordinator; retry if it is being replaced, so that a call may arrive twice."""
        until = time.monotonic() + COORDINATOR_PATIENCE
        while True:
            try:
                return question(self._control.within(CONTROL_TIMEOUT))
            except (PELostError, TimeoutError):
                if time.monotonic() > until or self._cancelled.wait(LOOK):
                    raise
