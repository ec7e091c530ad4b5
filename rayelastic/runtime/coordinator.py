"""Starts the processing elements of a job, watches them, and answers for the job as a whole.

The coordinator decides and never touches tuples. It knows processing elements only by their handles (host.py), so that
the same object runs in the calling process and in a detached Ray actor. A processing element that fails or dies fails
the job, with the reason; the others are ended then, so that nothing hangs.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayelastic.runtime.adaptation import Adaptation
from rayelastic.runtime.host import PELostError
from rayelastic.runtime.specs import IngestAddress, JobSpec, PESpec
from rayelastic.runtime.status import Failure, JobMetrics, JobStatus, PESample, PEStatus, SinkResult, State

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.data_port import PortAddress
    from rayelastic.runtime.host import PEHandle, PEHost

START_TIMEOUT = (
    120.0  # seconds for a processing element to open its port, connect and start; a cold machine compiles here
)
CALL_TIMEOUT = 10.0  # seconds for any other control call
CAUSE_WAIT = 1.0  # seconds between a broken link and the word of the one who broke it
JOIN_TIMEOUT = 5.0  # seconds for a watching thread to see that all is over
WATCH_PERIOD = 2.0  # seconds that one watching call stays with a processing element; its death ends the call at once


class Coordinator:
    """The one who answers for a job.

    Args:
        job: what to run.
        host: makes processing elements.
        clock: seconds, monotonic.
    """

    def __init__(self, job: JobSpec, host: PEHost, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._job = job
        self._host = host
        self._clock = clock
        self._handles: dict[str, PEHandle] = {}
        self._addresses: dict[str, PortAddress | None] = {}
        self._watchers: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._statuses: dict[str, PEStatus] = {pe: PEStatus(pe, State.CREATED) for pe in job.plan.pes}
        self._samples: dict[str, PESample] = {}
        self._adaptations: dict[str, tuple[Adaptation, ...]] = {}  # of those that have ended
        self._results: dict[str, SinkResult] = {}
        self._state = State.CREATED
        self._failure: Failure | None = None
        self._cancelling = False
        self._started_at = clock()

    def start(self) -> None:
        """Starts every processing element: all open their ports, then all connect, then all run.

        Raises:
            RayelasticError: a processing element couldn't be started; nothing is left running.
        """
        try:
            for spec in self._pe_specs():
                self._handles[spec.pe] = self._host.start_pe(spec)
            for pe, handle in self._handles.items():
                self._addresses[pe] = handle.call("open", timeout=START_TIMEOUT)
            for step in (("connect", self._addresses), ("start",)):
                for handle in reversed(self._handles.values()):  # consumers first: they wait for their producers
                    handle.call(*step, timeout=START_TIMEOUT)
        except BaseException as error:
            self._end(State.FAILED, Failure(f"the job could not be started: {error}"))
            raise
        with self._changed:
            self._state = State.RUNNING
            self._started_at = self._clock()
        for handle in self._handles.values():
            watcher = threading.Thread(target=self._watch, args=(handle,), name=f"watch-{handle.pe}", daemon=True)
            self._watchers.append(watcher)
            watcher.start()

    def status(self) -> JobStatus:
        """The state of the job and of each processing element, without asking them."""
        with self._changed:
            return JobStatus(self._job.name, self._state, self._failure, tuple(self._statuses.values()))

    def plan(self) -> ExecPlan:
        """The plan in force."""
        return self._job.plan

    def metrics(self) -> JobMetrics:
        """Counters of each processing element: fresh where it answers, the last ones where it doesn't."""
        for pe, handle in list(self._handles.items()):
            if not self._statuses[pe].state.is_final:
                try:
                    self._samples[pe] = handle.call("sample", timeout=CALL_TIMEOUT)
                except (PELostError, TimeoutError):
                    continue  # its watcher reports a loss
        samples = tuple(self._samples[pe] for pe in self._statuses if pe in self._samples)
        return JobMetrics(self._job.name, self._clock() - self._started_at, samples)

    def adaptations(self, since: Mapping[str, int]) -> tuple[Adaptation, ...]:
        """What the loops of the processing elements did, in the order of time.

        Args:
            since: {processing element: number of the first pass wanted}; 0 for those that aren't named.
        """
        found: list[Adaptation] = []
        for pe, handle in list(self._handles.items()):
            number = since.get(pe, 0)
            if pe not in self._adaptations:  # it still runs
                try:
                    found += handle.call("adaptations", number, timeout=CALL_TIMEOUT)
                except (PELostError, TimeoutError):
                    continue  # its watcher reports a loss
            else:
                found += (adaptation for adaptation in self._adaptations[pe] if adaptation.number >= number)
        return tuple(sorted(found, key=lambda adaptation: (adaptation.observation.time, adaptation.pe)))

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Waits until the job is finished, failed or cancelled.

        Args:
            timeout: seconds; `None` waits for ever.

        Returns:
            The status then; not final if the time ran out.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._state.is_final, timeout)
        return self.status()

    def results(self) -> dict[str, SinkResult]:
        """What the sinks of a finished job left, by operator."""
        with self._changed:
            return dict(self._results)

    def cancel(self, drain: bool = True) -> JobStatus:
        """Stops the job.

        Args:
            drain: stop the sources and let everything that they sent reach the sinks; otherwise stop at once.

        Returns:
            The status; with `drain`, the job is cancelled as soon as the last tuple arrived.
        """
        with self._changed:
            if self._state.is_final:
                return self.status()
            self._cancelling = True
        if drain:
            for handle in self._handles.values():
                self._try_call(handle, "stop", True)
        else:
            self._end(State.CANCELLED, None)
        return self.status()

    def ingest_address(self, source: str) -> IngestAddress:
        """Where to push the rows of a source that is fed from outside."""
        handle = self._handle_of(source)
        address: IngestAddress = handle.call("ingest_address", source, timeout=CALL_TIMEOUT)
        return address

    def finish_source(self, source: str, rows: dict[int, int]) -> None:
        """Says that a source which is fed from outside is complete.

        Args:
            source: the operator.
            rows: how many rows each partition had, by its number.

        Raises:
            SourceError: other rows arrived.
        """
        self._handle_of(source).call("finish_source", source, rows, timeout=CALL_TIMEOUT)

    def fail_source(self, source: str, reason: str) -> None:
        """Says that a source which is fed from outside failed: so does the job, unless it is being cancelled."""
        if not self._cancelling:
            self._end(State.FAILED, Failure(reason, operator=source))

    def close(self) -> None:
        """Ends whatever still runs, and the threads that watch it; safe to repeat."""
        if not self._state.is_final:
            self._end(State.CANCELLED, None)
        for watcher in self._watchers:
            watcher.join(JOIN_TIMEOUT)

    # -- how it is done -------------------------------------------------------------------------------------------

    def _pe_specs(self) -> list[PESpec]:
        job = self._job
        return [
            PESpec(
                pe=pe,
                job=job.name,
                job_id=job.job_id,
                secret=job.secret,
                operators=tuple(job.operators[name] for name in names),
                links_in=tuple(link for link in job.plan.links if link.to_pe == pe),
                links_out=tuple(link for link in job.plan.links if link.from_pe == pe),
                config=job.config,
            )
            for pe, names in job.plan.pes.items()
        ]

    def _handle_of(self, operator: str) -> PEHandle:
        return self._handles[self._job.plan.pe_of(operator)]

    def _watch(self, handle: PEHandle) -> None:
        """Stays with one processing element until it is final; its loss or failure fails the job."""
        while True:
            try:
                status: PEStatus = handle.call("wait", WATCH_PERIOD, timeout=WATCH_PERIOD + CALL_TIMEOUT)
                sample, results = None, {}
                adaptations: tuple[Adaptation, ...] = ()
                if status.state is State.FINISHED:
                    sample = handle.call("sample", timeout=CALL_TIMEOUT)
                    adaptations = handle.call("adaptations", timeout=CALL_TIMEOUT)
                    results = handle.call("results", timeout=START_TIMEOUT)
            except TimeoutError:
                self._lose(handle.pe, f"processing element {handle.pe} stopped answering")
                return
            except Exception as error:  # whatever it is, the job must not hang
                self._lose(handle.pe, f"processing element {handle.pe} was lost: {error}")
                return
            with self._changed:
                if self._state.is_final:
                    return
                self._statuses[handle.pe] = status
                if sample is not None:
                    self._samples[handle.pe] = sample
                    self._adaptations[handle.pe] = adaptations
                self._results.update(results)
                all_finished = all(status.state is State.FINISHED for status in self._statuses.values())
            if status.state is State.FAILED:
                if status.failure is not None and status.failure.lost_link:
                    self._await_cause()
                self._end(State.FAILED, status.failure)
            elif all_finished:
                self._end(State.CANCELLED if self._cancelling else State.FINISHED, None)
            if status.state.is_final:
                return

    def _await_cause(self) -> None:
        """Gives whoever broke a link the time to be found out; its watcher ends the job then."""
        with self._changed:
            self._changed.wait_for(lambda: self._state.is_final, CAUSE_WAIT)

    def _lose(self, pe: str, reason: str) -> None:
        with self._changed:
            if self._state.is_final:
                return
            self._statuses[pe] = replace(self._statuses[pe], state=State.FAILED, failure=Failure(reason))
        self._end(State.FAILED, Failure(reason))

    def _end(self, state: State, failure: Failure | None) -> None:
        """Makes the job final, once, and ends every processing element."""
        with self._changed:
            if self._state.is_final:
                return
            self._state, self._failure = state, failure
        for handle in self._handles.values():
            try:
                handle.kill()
            except PELostError:
                continue
        self._sweep()
        with self._changed:
            self._changed.notify_all()

    def _sweep(self) -> None:
        """Removes the Unix sockets that processing elements of this node left behind because they were killed."""
        for address in self._addresses.values():
            if address is not None and address.unix_path:
                shutil.rmtree(Path(address.unix_path).parent, ignore_errors=True)

    def _try_call(self, handle: PEHandle, method: str, *arguments: Any) -> None:
        try:
            handle.call(method, *arguments, timeout=CALL_TIMEOUT)
        except (PELostError, TimeoutError):
            return  # its watcher reports it
