"""A thread for each PE that watches it until it is final; a loss or failure fails the job."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.runtime.job.job_cluster import ANSWER_TIMEOUT, CALL_TIMEOUT
from rayelastic.runtime.job.telemetry import Legacy
from rayelastic.runtime.values.status import State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from rayelastic.runtime.element.host import PEHandle
    from rayelastic.runtime.job.job_cluster import JobCluster
    from rayelastic.runtime.job.life import JobLife
    from rayelastic.runtime.job.plan_in_force import PlanInForce
    from rayelastic.runtime.job.telemetry import JobTelemetry
    from rayelastic.runtime.values.failure import Failure
    from rayelastic.runtime.values.status import PEStatus

CAUSE_WAIT = 1.0  # seconds between a broken link and the report of the element that broke it
LOST_MACHINE = 12.0  # seconds, of a machine that accepts no connection: links survive ten; Ray needs 15 to 75
JOIN_TIMEOUT = 5.0  # seconds for a watching thread to detect the end
WATCH_PERIOD = 2.0  # seconds of one watching call to a PE; its death ends the call at once


class Watchers:
    """The watchers of one job.

    Args:
        cluster: Its elements.
        life: Records their states.
        plan: Decides whether the job can continue without one.
        telemetry: Keeps the reports of those that finish.
        lost: Called after a loss that the job can't continue without; it fails then, or restores a checkpoint.
        patience: Seconds after which a silent link counts as lost, and an element whose machine is silent, too: for
            that LOST_MACHINE suffices.
        clock: Returns seconds, monotonic.
    """

    def __init__(
        self,
        cluster: JobCluster,
        life: JobLife,
        plan: PlanInForce,
        telemetry: JobTelemetry,
        lost: Callable[[Failure], None],
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._life = life
        self._plan = plan
        self._telemetry = telemetry
        self._lost = lost
        self._patience = min(patience, LOST_MACHINE)
        self._clock = clock
        self._threads: list[threading.Thread] = []

    def watch(self, handle: PEHandle, status: PEStatus) -> None:
        """Begin to watch an element that has been started.

        Args:
            handle: The element.
            status: Its state.
        """
        if status.state is State.FINISHED:  # an adopted one: its watcher records that, with its reports
            status = replace(status, state=State.RUNNING)
        self._life.begins(status)
        watcher = threading.Thread(target=self._stay_with, args=(handle,), name=f"watch-{handle.pe}", daemon=True)
        self._threads.append(watcher)
        watcher.start()

    def lose(self, handle: PEHandle, reason: str) -> None:
        """Record an element as lost; the job fails if it can't continue without it."""
        pe = handle.pe
        if self._cluster.handles.get(pe) is not handle:
            return  # it was retired, and another may have its name
        self._cluster.loses(pe)
        if not self._plan.is_dispensable(pe) and self._life.loses(pe, reason):
            self._lost(self._plan.loss(reason, pe))

    def join(self) -> None:
        """Wait until all threads have detected that the job is over."""
        for thread in self._threads:
            if thread.ident is not None:  # an interrupt may have come before it was started
                thread.join(JOIN_TIMEOUT)

    # -- implementation -------------------------------------------------------------------------------------------

    def _stay_with(self, handle: PEHandle) -> None:
        heard = self._clock()
        while True:
            try:
                status = handle.within(WATCH_PERIOD + ANSWER_TIMEOUT).wait(WATCH_PERIOD)
                heard = self._clock()
                ended = status.state is State.FINISHED
                legacy = Legacy.of(handle, complete=not self._cluster.takes_checkpoints) if ended else None
            except TimeoutError:  # it is busy, or its library holds the GIL; or its machine is gone
                is_silent = self._clock() - heard >= self._patience and not handle.is_reachable()
                if is_silent or not handle.is_alive():
                    self.lose(handle, f"PE {handle.pe} stopped answering")
                    return
                if self._life.state.is_final or self._cluster.handles.get(handle.pe) is not handle:
                    return
                tell("no answer", job=self._life.status().name, pe=handle.pe, level=logging.WARNING)
                continue
            except Exception as error:  # the job must not hang after any error
                self.lose(handle, f"PE {handle.pe} was lost: {error}")
                return
            if self._cluster.handles.get(handle.pe) is not handle:
                return  # it was retired, and another may have its name
            if status.state.is_final:
                self._cluster.ends(handle.pe)
            if self._life.state.is_final:
                return
            if legacy is not None:  # before the state, because waiters of the end read the results
                self._telemetry.keep(handle.pe, legacy)
            self._life.progresses(status)
            if self._ends_job(handle, status) or status.state.is_final:
                if legacy is not None and self._cluster.takes_checkpoints:
                    self._stay_until_completed(handle)
                return

    def _stay_until_completed(self, handle: PEHandle) -> None:
        """Watch an element whose streams have ended until the job is over, when hidden output of its sinks is shown."""
        while not self._life.wait(WATCH_PERIOD) and self._cluster.handles.get(handle.pe) is handle:
            try:
                handle.within(CALL_TIMEOUT).status()
            except TimeoutError:
                if not handle.is_alive():
                    self.lose(handle, f"PE {handle.pe} stopped answering")
                    return
            except Exception as error:
                self.lose(handle, f"PE {handle.pe} was lost: {error}")
                return

    def _ends_job(self, handle: PEHandle, status: PEStatus) -> bool:
        """End the job, or make it recover, if the state of one of its elements requires it; return whether it does."""
        lost = [(peer, why) for peer, why in status.lost_peers.items() if not self._plan.is_dispensable(peer)]
        failure = status.failure
        if lost:
            peer, why = lost[0]
            return self._loses_link(handle, replace(self._plan.loss(why, peer), lost_link=True))
        if status.state is not State.FAILED:
            self._life.end_if_finished()
        elif not self._plan.is_dispensable(status.pe):
            if failure is not None and failure.lost_link:
                return self._loses_link(handle, failure)
            if failure is not None and (failure.outside or failure.outage):
                self._lost(failure)
                return True
            self._life.fail(failure)
        return self._life.state.is_final

    def _loses_link(self, handle: PEHandle, failure: Failure) -> bool:
        self._life.wait(CAUSE_WAIT)  # until the element that broke the link is found, which ends the job
        if self._cluster.handles.get(handle.pe) is handle:  # otherwise the job has recovered meanwhile
            self._lost(failure)
        return True
