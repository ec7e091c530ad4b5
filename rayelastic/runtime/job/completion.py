"""Completes a job with checkpoints once all of its streams have ended: with a last checkpoint, then its sinks.

So the last rows are as safe as all others. They are prepared, their checkpoint is recorded, and only then are they
shown. After any failure meanwhile, the job recovers from the last complete checkpoint, as after any other loss.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.connectors.description import Sink
from rayelastic.errors import PELostError, SinkError, is_outage
from rayelastic.runtime.element.failures import completion_failure, sink_failure
from rayelastic.runtime.job.telemetry import Legacy
from rayelastic.runtime.rounds import call_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.element.host import PEHandle
    from rayelastic.runtime.job.context import JobContext
    from rayelastic.runtime.values.failure import Failure


class Completion:
    """The end of one job.

    Args:
        context: The job; its rescaling holds the plan, and a recovery, meanwhile. A job that was stopped with a
            savepoint takes no last checkpoint.
        take: Takes a checkpoint; returns why it failed.
        lost: Starts a recovery.
    """

    def __init__(
        self, context: JobContext, take: Callable[[], Exception | None], lost: Callable[[Failure], None]
    ) -> None:
        self._context = context
        self._take = take
        self._lost = lost
        self._needs_last = any(map(shows_rows, context.job.operators.values()))
        self._lock = threading.Lock()
        self._underway = False

    def begin(self) -> None:
        """Complete the job in a thread of its own, unless that is under way; return at once."""
        with self._lock:
            if self._underway:
                return
            self._underway = True
        threading.Thread(target=self._run, name=f"complete-{self._context.job.name}", daemon=True).start()

    def _run(self) -> None:
        stop = self._context.journal.open_stop
        stopped = stop is not None and stop.saved
        failure = self._last_checkpoint() if self._needs_last and not stopped else None
        with self._context.rescaling.standing_still():  # a recovery replaces the elements before this or after it
            current = self._context.life.has_finished
            if current and failure is None:
                failure = self._completed()
            if current and failure is not None:
                if stopped or not failure.outside:
                    self._context.life.fail(failure)
                else:
                    self._lost(failure)
            with self._lock:
                self._underway = False
        if not current:  # the job has recovered meanwhile, so other elements may have finished
            self._context.life.end_if_finished()
        elif failure is None:
            self._context.life.finish()

    def _last_checkpoint(self) -> Failure | None:
        error = self._take()
        if error is None:
            return None
        if isinstance(error, SinkError):
            return sink_failure(error)
        return replace(self._lost_with(f"the last checkpoint couldn't be taken: {error}"), outage=is_outage(error))

    def _completed(self) -> Failure | None:
        handles = {
            pe: handle
            for pe, handle in self._context.cluster.handles.items()
            if not self._context.plan.is_dispensable(pe)
        }
        failures = call_all(handles, self._complete).values()
        return next((failure for failure in failures if failure is not None), None)

    def _complete(self, handle: PEHandle) -> Failure | None:
        while True:
            try:
                legacy = Legacy.of(handle, complete=True)
            except TimeoutError:  # a large file takes long
                if handle.is_alive():
                    continue
                return self._lost_with(f"PE {handle.pe} stopped answering", handle.pe)
            except PELostError as error:
                return self._lost_with(f"PE {handle.pe} was lost: {error}", handle.pe)
            except Exception as error:  # raised by a sink, or by a user's object
                return completion_failure(error)
            self._context.telemetry.keep(handle.pe, legacy)
            return None

    def _lost_with(self, reason: str, pe: str = "") -> Failure:
        return replace(self._context.plan.loss(reason, pe), outside=True)


def shows_rows(spec: OperatorSpec) -> bool:
    """Return whether an operator shows rows outside the job when a checkpoint is complete."""
    return isinstance(spec.body, Sink) and spec.body.shows_rows
