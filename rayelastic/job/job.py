"""A job as the user holds it. It calls a coordinator, and knows nothing else of PEs."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from rayelastic.errors import ChangeError, PELostError, StateError
from rayelastic.job.control import CONTROL_TIMEOUT, saved
from rayelastic.job.feeding import Feeds
from rayelastic.job.observing import Observing
from rayelastic.job.result import JobResult, raise_failure, sink_value
from rayelastic.runtime.checkpoint.restore import snapshot_of
from rayelastic.runtime.ingest.external_source import ExternalSource
from rayelastic.runtime.values.status import JobStatus, State
from rayelastic.runtime.watch.dropped import warn_late
from rayelastic.runtime.watch.metrics_port import MetricsPort
from rayelastic.web.page import Page

if TYPE_CHECKING:
    from pathlib import Path

    from rayelastic.job.control import Control
    from rayelastic.plan.config import JobConfig
    from rayelastic.plan.settings.tls import TLS
    from rayelastic.runtime.values.snapshot import Snapshot
    from rayelastic.topology import Topology

SNAPSHOT_TIMEOUT = 1800.0  # seconds for a snapshot of all PEs
START_TIMEOUT = 300.0  # seconds until every PE runs
WAIT_PERIOD = 1.0  # seconds that one waiting call stays with the coordinator, so that Ctrl-C is never far


class Job(Observing):
    """A running job.

    Args:
        name: the name of the job.
        control: its coordinator.
        topology: what runs, where it is known; `None` after `attach`.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> gate = testing.Gate()
    >>> topology = rel.Topology("totals")
    >>> numbers = topology.source(testing.script([("a", 1), gate, ("a", 2)], {"key": str, "n": int}), name="numbers")
    >>> numbers.key_by("key").aggregate(name="total", n=rel.sum("n")).sink(rel.list(), name="out")
    <sink out>
    >>> job = rel.start(topology, rel.JobConfig(pes=2), metrics_port=0)
    >>> gate.wait_reached(60)
    True
    >>> job.status.state.value, job.describe()["total"].lane, job.web_url
    ('running', 'built-in', None)
    >>> job.plan().pe_of("numbers"), job.metrics_port > 0
    ('pe0', True)
    >>> job.pause_elasticity()
    >>> job.status.paused
    True
    >>> job.resume_elasticity()
    >>> gate.open()
    >>> [tuple(t) for t in job.wait(timeout=60)["out"]]
    [('a', 3)]
    >>> job.metrics().operator("total").tuples_in
    2
    >>> list(job.adaptations())
    []
    >>> job.close()
    """

    def __init__(self, name: str, control: Control, topology: Topology | None = None) -> None:
        self.name = name
        self._control = control
        self._operators = topology.operators if topology is not None else {}
        self._result: JobResult | None = None
        self._taking = threading.RLock()  # of what is kept of its end
        self._started_at = time.monotonic()
        self._feeds = Feeds(control)

    def cancel(self, drain: bool = True) -> None:
        """Stop the job.

        Args:
            drain: stop the sources and let what they sent reach the sinks; otherwise stop at once.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("endless")
        >>> topology.source(rel.sequence(2**62)).sink(rel.count(), name="n")
        <sink n>
        >>> job = rel.start(topology)
        >>> job.cancel(drain=False)
        >>> job.wait(timeout=60)
        Traceback (most recent call last):
        rayelastic.errors.JobCancelledError: job 'endless' was cancelled...
        """
        if self._final is None:
            self._control.within(CONTROL_TIMEOUT).cancel(drain)
            self._feeds.cancel()

    def snapshot(self, snapshot: Snapshot | str | Path) -> Snapshot:
        """Save the job as it is at one moment of its streams, for other jobs to restore; this one continues.

        Sources pause until what they emitted is processed and saved. A job restored from it (`restore=`) has the rows
        that sinks hold in memory, and removes from files what this job writes later. To let both write, restore
        Snapshot(..., drop=sinks) with other places. If it can't be saved, the job continues unchanged.

        Args:
            snapshot: where to, see Snapshot; a folder that has none yet.

        Returns:
            The snapshot, which `restore=` takes.

        Raises:
            StateError: it can't be saved, which names the operator; or its coordinator died, which says what is there.

        >>> import tempfile
        >>> import rayelastic as rel
        >>> from rayelastic import testing
        >>> def totals(numbers):
        ...     return numbers.key_by("odd").aggregate(name="totals", total=rel.sum("n"))
        >>> rows, gate = [(n % 2, n) for n in range(100)], testing.Gate()
        >>> topology = rel.Topology("odd_and_even")
        >>> script = testing.script([*rows[:50], gate, *rows[50:]], {"odd": int, "n": int})
        >>> numbers = topology.source(script, name="rows")
        >>> totals(numbers).sink(rel.list(), name="out")
        <sink out>
        >>> job = rel.start(topology)
        >>> gate.wait_reached(60)
        True
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = job.snapshot(f"{folder}/saved")
        ...     gate.open()
        ...     one = job.wait()["out"]
        ...     other = testing.collect(totals, rows, {"odd": int, "n": int}, restore=saved)
        >>> [tuple(t) for t in one] == other == [(0, 2450), (1, 2500)]
        True
        """
        where = snapshot_of(snapshot)
        saved(self._control, self.name, where, lambda: self._running(StateError, SNAPSHOT_TIMEOUT).snapshot(where))
        return where

    def stop(self, snapshot: Snapshot | str | Path) -> JobResult:
        """Stop the job where it is, and save what a later one needs to continue from there.

        Sources stop between two tuples, and what they emitted is processed. Then states and positions are saved, and
        sinks complete their rows. Streams haven't ended: aggregates that emit at the end keep their state for the next
        job. Both jobs together write what one would have written. If it can't be saved, the job continues unchanged.

        Args:
            snapshot: where to, see Snapshot; a folder that has none yet.

        Returns:
            What the sinks left so far.

        Raises:
            StateError: it can't be saved; names the operator.

        >>> import tempfile
        >>> import rayelastic as rel
        >>> from rayelastic import testing
        >>> def totals(numbers):
        ...     return numbers.key_by("odd").aggregate(name="totals", total=rel.sum("n"))
        >>> rows, gate = [(n % 2, n) for n in range(100)], testing.Gate()
        >>> topology = rel.Topology("odd_and_even")
        >>> numbers = topology.source(testing.script([*rows[:50], gate], {"odd": int, "n": int}), name="rows")
        >>> totals(numbers).sink(rel.list(), name="out")
        <sink out>
        >>> job = rel.start(topology)
        >>> gate.wait_reached(60)
        True
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     before = job.stop(f"{folder}/snapshot")["out"]
        ...     after = testing.collect(totals, rows, {"odd": int, "n": int}, restore=f"{folder}/snapshot")
        >>> before, after
        ([], [(0, 2450), (1, 2500)])
        """
        self.begin_stop(snapshot)
        return self.wait()

    def begin_stop(self, snapshot: Snapshot | str | Path) -> Snapshot:
        """Stop the job as `stop` does, without its results, which `wait` returns.

        Returns:
            The snapshot, which is complete.

        Raises:
            StateError: it can't be saved; names the operator.

        >>> job.begin_stop("/checkpoints/night")  # doctest: +SKIP
        Snapshot(...)
        """
        where = snapshot_of(snapshot)
        saved(self._control, self.name, where, lambda: self._running(StateError, SNAPSHOT_TIMEOUT).stop(where))
        return where

    def feed(self, operator: str, source: ExternalSource) -> None:
        """Push the rows of a source outside the job from this process, as `rel.submit` does for those that it declares.

        After the driver of a job on Ray was lost, another one continues with its source: `rel.attach(name).feed(...)`.

        Args:
            operator: the name of the source in the topology.
            source: what pushes, such as `rel.spark.stream(...)` with the same checkpoint.

        >>> rel.attach("prices").feed("ticks", rel.spark.stream(frame, checkpoint="s3://ticks"))  # doctest: +SKIP
        """
        self._running(ChangeError, CONTROL_TIMEOUT)
        self._feeds.begin(operator, source)

    def drain_on_stop(self) -> None:
        """Make SIGTERM end the job in order, as `cancel(drain=True)` does; `ray job stop` and Kubernetes send it.

        `wait` then raises JobCancelledError. `ray job stop` allows a process 3 seconds before it kills it; set
        RAY_JOB_STOP_WAIT_TIME_S on the cluster if draining takes longer.

        Raises:
            ValueError: not called from the main thread.

        >>> job = rel.submit(topology)  # doctest: +SKIP
        >>> job.drain_on_stop()  # doctest: +SKIP
        >>> job.wait()  # doctest: +SKIP
        """

        def stop(*_: object) -> None:  # in a thread: the handler may have interrupted a call that holds a lock
            threading.Thread(target=self.cancel, name=f"drain-{self.name}", daemon=True).start()

        signal.signal(signal.SIGTERM, stop)

    def wait(self, timeout: float | None = None) -> JobResult:
        """Wait for the end of the job and return the results of its sinks.

        Args:
            timeout: Seconds; `None` waits for ever.

        Raises:
            JobFailedError: The job failed; the error names the operator and holds the traceback of the user's code.
            JobCancelledError: The job was cancelled.
            TimeoutError: The job still runs.
        """
        status = self._wait_until_final(timeout)
        with self._taking:  # others may wait in other threads, and the first one closes the job
            if status.state is not State.FINISHED:
                self.close()
                raise_failure(status)
            if self._result is None:
                left = self._control.within(START_TIMEOUT).results()
                values = {sink: sink_value(value, self._operators.get(sink)) for sink, value in left.items()}
                self._result = JobResult(values, self.metrics(), time.monotonic() - self._started_at)
                self.close()
            return self._result

    def close(self) -> None:
        """End the job if it still runs and free what it holds; safe to repeat."""
        self._feeds.close()
        self._closed = True
        for served in (self._page, self._metrics_port):
            if served is not None:
                served.close()
        self._page = self._metrics_port = None
        self._control.close()

    def _start(self) -> None:
        self._control.within(START_TIMEOUT).start()
        self.plan()
        self._started_at = time.monotonic()
        for operator in self._operators.values():
            if isinstance(operator.body, ExternalSource):
                self.feed(operator.name, operator.body)

    def _show_metrics(self, port: int, tls: TLS | None) -> None:
        self._metrics_port = MetricsPort(port, self.metrics, self.plan, tls)

    def _show_page(self, config: JobConfig) -> None:
        if config.web_port is not None:
            self._page = Page({self.name: self}, port=config.web_port, tls=config.network.tls)
            sys.stderr.write(f"web UI of job {self.name}: {self._page.url}\n")

    def _wait_until_final(self, timeout: float | None) -> JobStatus:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._final is None:
            period = WAIT_PERIOD if deadline is None else min(WAIT_PERIOD, deadline - time.monotonic())
            try:
                status = self._control.within(CONTROL_TIMEOUT).wait(max(0.0, period))
                if status.state.is_final:
                    self._keep(status)
                elif deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError(f"job {self.name!r} still runs after {timeout} s")
            except PELostError:
                if self._final is None:  # otherwise another thread has waited, and closed the job
                    raise
        return self._final

    def _keep(self, status: JobStatus) -> None:
        """Keep what the coordinator of an ended job knows."""
        with self._taking:
            if self._final is None:
                warn_late(self.name, self.metrics())
                self._adapted, self._infos = self._adaptations({}), self.describe()
                self._final = status
