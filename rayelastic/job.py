"""Running a topology: `run` in this process, `submit` on Ray, `attach` to what already runs there.

A `Job` looks the same whichever way it was started: it talks to a coordinator through one small interface.
"""

from __future__ import annotations

import atexit
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rayelastic.errors import ConfigError, GraphError, JobCancelledError, JobFailedError, RayelasticError
from rayelastic.graph.edges.sinks import ListSink
from rayelastic.graph.fluent.topology import Topology as GraphTopology
from rayelastic.graph.records.shown import shown
from rayelastic.on_ray.jobs import find_coordinator, start_coordinator
from rayelastic.plan.config import JobConfig
from rayelastic.plan.fusion import plan_topology
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.ingest.external_source import DriverSink, ExternalSource
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.snapshot import Snapshot, SnapshotFolder, check_restorable, checked
from rayelastic.runtime.values.specs import JobSpec
from rayelastic.runtime.values.status import Failure, JobMetrics, JobStatus, SinkResult, State
from rayelastic.runtime.watch.bottleneck import Bottleneck, find_bottleneck
from rayelastic.runtime.watch.metrics_port import MetricsPort
from rayelastic.watching import Reading, Watch, in_notebook, job_html, result_html

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.job.api import CoordinatorApi
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation
    from rayelastic.topology import Topology

CONTROL_TIMEOUT = 30.0  # seconds for a control call
SNAPSHOT_TIMEOUT = 1800.0  # seconds for a snapshot of all processing elements
START_TIMEOUT = 300.0  # seconds until every processing element runs
RESCALE_TIMEOUT = 600.0  # seconds for all keys of a region to move
FOLLOW_PERIOD = 0.5  # seconds between two questions for what was adapted
WAIT_PERIOD = 1.0  # seconds that one waiting call stays with the coordinator, so that Ctrl-C is never far


class Control(Protocol):
    """A coordinator, in this process or in an actor."""

    def within(self, timeout: float) -> CoordinatorApi:
        """Returns the coordinator itself, as far as the caller can tell.

        Args:
            timeout: seconds that each call of a method waits for its answer, which TimeoutError ends.
        """
        ...

    def close(self) -> None:
        """Ends the coordinator and everything that it started."""
        ...


class LocalControl:
    """A coordinator in this process."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        atexit.register(self.close)  # threads in native code mustn't outlive the interpreter

    def within(self, timeout: float) -> CoordinatorApi:  # noqa: ARG002  (nothing can be lost here)
        """Returns the coordinator."""
        return self._coordinator

    def close(self) -> None:
        """Ends the coordinator and everything that it started."""
        atexit.unregister(self.close)
        self._coordinator.close()


class JobResult(Mapping[str, Any]):
    """What the sinks of a finished job left, by operator name.

    Args:
        values: for each sink: a list, a table, a DataFrame, a path or a number of rows, as the sink says.
        metrics: the last counters.
        seconds: from start to end.
    """

    def __init__(self, values: dict[str, Any], metrics: JobMetrics, seconds: float) -> None:
        self._values = values
        self.metrics = metrics
        self.seconds = seconds

    def __getitem__(self, sink: str) -> Any:
        return self._values[sink]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _repr_html_(self) -> str:
        return result_html(self._values, self.seconds)

    def __repr__(self) -> str:
        return f"JobResult(sinks={list(self._values)}, seconds={self.seconds:.3f})"


class Job:
    """A running job.

    Args:
        name: the name of the job.
        control: its coordinator.
        topology: what runs, where it is known; `None` after `attach`.
    """

    def __init__(self, name: str, control: Control, topology: Topology | None = None) -> None:
        self.name = name
        self._control = control
        self._topology = topology
        self._final: JobStatus | None = None
        self._result: JobResult | None = None
        self._metrics: JobMetrics | None = None
        self._plan: ExecPlan | None = None
        self._started_at = time.monotonic()
        self._external: dict[str, ExternalSource] = {}
        self._metrics_port: MetricsPort | None = None

    @property
    def status(self) -> JobStatus:
        """The state of the job and of its processing elements."""
        return self._final or self._control.within(CONTROL_TIMEOUT).status()

    def metrics(self) -> JobMetrics:
        """Counters of every operator, link and processing element."""
        if self._final is None or self._metrics is None:
            self._metrics = self._control.within(CONTROL_TIMEOUT).metrics()
        return self._metrics

    def plan(self) -> ExecPlan:
        """The plan in force: regions, and which operators run in which processing element."""
        if self._plan is None or self._final is None:
            self._plan = self._control.within(CONTROL_TIMEOUT).plan()
        return self._plan

    def rescale(self, region: str, replicas: int) -> ExecPlan:
        """Gives a region another number of replicas while the job runs; needs JobConfig(regions='manual').

        Its keys are spread anew: those that move wait until their state has arrived, all others go on. Nothing is lost,
        doubled or reordered per key.

        Args:
            region: its name in the plan, such as 'r1'.
            replicas: 1 or more; each has a processing element of its own.

        Returns:
            The plan in force then.

        Raises:
            ConfigError: the region can't have so many.
            ChangeError: it couldn't be done, and has been undone; the job goes on as it was.
        """
        return self._control.within(RESCALE_TIMEOUT).rescale(region, replicas)

    def adaptations(self, follow: bool = False, every_pass: bool = False) -> Iterator[Adaptation | RegionAdaptation]:
        """Gives what was adapted: what was seen, what was decided, why, and what is in force.

        Args:
            follow: go on as it happens, until the job ends.
            every_pass: also the passes that left everything as it was.
        """
        since: dict[str, int] = {}
        while True:
            over = self._final is not None or self.status.state.is_final
            for adaptation in self._control.within(CONTROL_TIMEOUT).adaptations(since):
                since[adaptation.pe] = adaptation.number + 1
                if adaptation.changed or every_pass:
                    yield adaptation
            if over or not follow:
                return
            self._control.within(CONTROL_TIMEOUT).wait(FOLLOW_PERIOD)

    def bottleneck(self, seconds: float = 1.0) -> Bottleneck:
        """Names the operator that holds the job back, why, and which rule keeps it from being helped.

        Args:
            seconds: how long to look.

        >>> print(job.bottleneck())  # doctest: +SKIP
        out on pe0 (waiting): its function waits 99% of the time and computes 0%; back-pressure: operators upstream ...
        """
        before = self.metrics()
        self.pause(seconds)
        return find_bottleneck(before, self.metrics(), self.plan(), tuple(self.adaptations(every_pass=True)))

    def watch(self, period: float = 1.0) -> Watch:
        """Shows the job in a notebook, updated in place until it ends; returns at once.

        Args:
            period: seconds between two pictures.

        Returns:
            The watch, whose `stop` ends it earlier.
        """
        return Watch(self._read, in_notebook, period)

    def _read(self) -> Reading:
        return Reading(self.name, self.status, self.metrics(), self.plan())

    def _repr_html_(self) -> str:
        return job_html(self._read())

    def pause(self, seconds: float) -> None:
        """Returns after so many seconds, or when the job ends, whichever is first."""
        if self._final is None:
            self._control.within(seconds + CONTROL_TIMEOUT).wait(seconds)

    @property
    def metrics_port(self) -> int | None:
        """Where Prometheus finds the metrics on this machine, as `metrics_port=` asked; `None`: it didn't."""
        return self._metrics_port.port if self._metrics_port is not None else None

    def cancel(self, drain: bool = True) -> None:
        """Stops the job.

        Args:
            drain: stop the sources and let what they sent reach the sinks; otherwise stop at once.
        """
        if self._final is None:
            self._control.within(CONTROL_TIMEOUT).cancel(drain)
            for source in self._external.values():
                source.cancel()

    def stop(self, snapshot: Snapshot | str | Path) -> JobResult:
        """Stops the job where it is, and saves what a later one needs to go on from there.

        Sources stop between two tuples, and what they sent is processed. Then the state of every operator and the
        position of every source are saved, and the sinks complete what they have. The streams aren't at their end:
        aggregates that give their results at the end keep them for the job that goes on. What the sinks of both leave
        is what one would have left. If it can't be saved the job goes on as if nothing had been asked.

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
        ...     return numbers.key_by("odd").aggregate("totals", total=rel.sum("n"))
        >>> rows, gate = [(n % 2, n) for n in range(100)], testing.Gate()
        >>> topology = rel.Topology("odd_and_even")
        >>> numbers = topology.source("rows", testing.script([*rows[:50], gate], {"odd": int, "n": int}))
        >>> totals(numbers).sink("out", rel.list())
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
        self._control.within(SNAPSHOT_TIMEOUT).stop(checked(snapshot))
        return self.wait()

    def drain_on_stop(self) -> None:
        """Has SIGTERM end the job in order, as `cancel(drain=True)` does; `ray job stop` and Kubernetes send it.

        `wait` raises JobCancelledError then. `ray job stop` gives a process 3 seconds before it kills it; set
        RAY_JOB_STOP_WAIT_TIME_S on the cluster where draining takes longer.

        Raises:
            ValueError: not called from the main thread.
        """

        def stop(*_: object) -> None:  # in a thread: the handler may have interrupted a call that holds a lock
            threading.Thread(target=self.cancel, name=f"drain-{self.name}", daemon=True).start()

        signal.signal(signal.SIGTERM, stop)

    def wait(self, timeout: float | None = None) -> JobResult:
        """Waits for the end of the job and gives what its sinks left.

        Args:
            timeout: seconds; `None` waits for ever.

        Raises:
            JobFailedError: the job failed; the error names the operator and holds the traceback of the user's code.
            JobCancelledError: the job was cancelled.
            TimeoutError: the job still runs.
        """
        if self._result is None:
            status = self._wait_until_final(timeout)
            self._raise_unless_finished(status)
            left = self._control.within(START_TIMEOUT).results()
            self._result = JobResult(
                {sink: self._finish_sink(result) for sink, result in left.items()},
                self.metrics(),
                time.monotonic() - self._started_at,
            )
            self.close()
        return self._result

    def close(self) -> None:
        """Ends the job if it still runs and frees what it holds; safe to repeat."""
        if self._final is None or not self._final.state.is_final:
            for source in self._external.values():
                source.cancel()
        if self._metrics_port is not None:
            self._metrics_port.close()
            self._metrics_port = None
        self._control.close()

    # -- how it is done -------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._control.within(START_TIMEOUT).start()
        self.plan()
        self._started_at = time.monotonic()
        if self._topology is not None:
            self._external = {
                operator.name: operator.body
                for operator in self._topology.operators.values()
                if isinstance(operator.body, ExternalSource)
            }
        for operator, source in self._external.items():
            self.feed(operator, source)

    def feed(self, operator: str, source: ExternalSource) -> None:
        """Has a source that lives outside push its rows from this process, as `rel.submit` does for those it declares.

        After the driver of a job on Ray was lost, another one goes on with its source: `rel.attach(name).feed(...)`.

        Args:
            operator: the name of the source in the topology.
            source: what pushes, such as `rel.spark.stream(...)` with the same checkpoint.
        """
        self._external[operator] = source
        threading.Thread(target=self._feed, args=(operator, source), name=f"feed-{operator}", daemon=True).start()

    def _feed(self, operator: str, source: ExternalSource) -> None:
        """Has a source that lives outside push its rows, and tells the coordinator how that ended."""
        try:
            address = self._control.within(CONTROL_TIMEOUT).ingest_address(operator)
            rows = source.push(address, operator)
            self._control.within(CONTROL_TIMEOUT).finish_source(operator, rows)
        except Exception as error:  # whatever the source raises is the job's failure
            try:
                self._control.within(CONTROL_TIMEOUT).fail_source(operator, str(error))
            except RayelasticError:
                return  # the coordinator is gone: the job has ended already

    def _wait_until_final(self, timeout: float | None) -> JobStatus:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._final is None:
            period = WAIT_PERIOD if deadline is None else min(WAIT_PERIOD, deadline - time.monotonic())
            status = self._control.within(CONTROL_TIMEOUT).wait(max(0.0, period))
            if status.state.is_final:
                self.metrics()
                self._final = status
            elif deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"job {self.name!r} still runs after {timeout} s")
        return self._final

    def _raise_unless_finished(self, status: JobStatus) -> None:
        if status.state is State.FINISHED:
            return
        self.close()
        if status.state is State.CANCELLED:
            raise JobCancelledError(self.name)
        failure = status.failure or Failure("it gave no reason")
        raise JobFailedError(
            failure.reason,
            job=self.name,
            operator=failure.operator,
            failing_tuple=failure.failing_tuple,
            traceback_text=failure.traceback,
        )

    def _finish_sink(self, result: SinkResult) -> Any:
        if self._topology is None:
            return result.value if result.value is not None else result.rows
        operator = self._topology.operators[result.sink]
        if isinstance(operator.body, DriverSink):
            return operator.body.finish(result.rows, result.value)
        if isinstance(operator.body, ListSink):
            assert operator.input_schema is not None
            columns = [column.to_pylist() for column in result.value.columns]
            return list(map(operator.input_schema.tuple_type, *columns))
        return result.value if result.value is not None else result.rows


def prepare(
    topology: Topology,
    config: JobConfig | None = None,
    *,
    name: str | None = None,
    restore: Snapshot | str | Path | None = None,
) -> JobSpec:
    """Validates and plans a topology without starting anything.

    Args:
        topology: what to run.
        config: `JobConfig()` if not given.
        name: the name of the job; the topology's if not given.
        restore: the snapshot to go on from.

    Raises:
        DeclarationError: the topology, a source, a sink or the configuration is wrong.
        StateError: the snapshot is damaged, or the topology can't go on from it.
    """
    _check_given(topology, config)
    config = config or JobConfig()
    topology.validate(shipped=False)
    saved = None if restore is None else checked(restore)
    if saved is not None:
        check_restorable(saved, SnapshotFolder(saved).manifest(), topology.operators)
    return JobSpec(
        name=name or topology.name,
        operators={name: _for_pe(operator) for name, operator in topology.operators.items()},
        plan=plan_topology(topology, config),
        config=config,
        restore=saved,
    )


def _check_given(topology: object, config: object) -> None:
    if not isinstance(topology, GraphTopology):
        raise GraphError(
            f"{shown(topology)} is no topology", way_out="Give the rel.Topology itself, on which streams are declared"
        )
    if config is not None and not isinstance(config, JobConfig):
        raise ConfigError(f"{shown(config)} is no configuration", way_out="Give rel.JobConfig(...)")


def _for_pe(operator: OperatorSpec) -> OperatorSpec:
    """The operator without what only the driver can hold."""
    if isinstance(operator.body, ExternalSource | DriverSink):
        return replace(operator, body=operator.body.for_pe())
    return operator


def start(
    topology: Topology,
    config: JobConfig | None = None,
    *,
    metrics_port: int | None = None,
    restore: Snapshot | str | Path | None = None,
) -> Job:
    """Starts a topology in this process and gives the running job; `run` is this and `wait`."""
    spec = prepare(topology, config, restore=restore)
    job = Job(spec.name, LocalControl(Coordinator(spec, InProcessHost())), topology)
    try:
        if metrics_port is not None:
            job._metrics_port = MetricsPort(metrics_port, job.metrics, job.plan)
        job._start()
    except BaseException:
        job.close()
        raise
    return job


def run(
    topology: Topology,
    config: JobConfig | None = None,
    *,
    metrics_port: int | None = None,
    restore: Snapshot | str | Path | None = None,
) -> JobResult:
    """Runs a topology in this process, without Ray, until its sources end.

    Ctrl-C stops it and frees everything.

    Args:
        topology: what to run.
        config: thread counts, threading models and number of processing elements, where they shall be fixed.
        metrics_port: a port of this machine at which Prometheus finds the job's metrics while it runs; 0: a free one.
        restore: the snapshot to go on from, see Job.stop.

    Returns:
        What the sinks left, by their names.

    Raises:
        DeclarationError: the topology is wrong; nothing was started.
        JobFailedError: an operator raised; the error names it, its tuple and the traceback.

    Example:
        >>> import rayelastic as rel
        >>> topology = rel.Topology("squares")
        >>> numbers = topology.source("numbers", rel.rows([(1,), (2,), (3,)], schema={"n": int}))
        >>> numbers.map("square", lambda t: t.n * t.n, lane="python", schema={"value": int}).sink("out", rel.list())
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [1, 4, 9]
    """
    job = start(topology, config, metrics_port=metrics_port, restore=restore)
    try:
        return job.wait()
    finally:
        job.close()


def submit(
    topology: Topology,
    config: JobConfig | None = None,
    *,
    name: str | None = None,
    address: str | None = None,
    restore: Snapshot | str | Path | None = None,
) -> Job:
    """Starts a topology on Ray and returns at once.

    One actor hosts each processing element; a detached coordinator actor watches them.

    Args:
        topology: what to run.
        config: as for `run`.
        name: the name of the job, unique on the cluster; the topology's if not given.
        address: the Ray cluster; an initialised Ray is used as it is, otherwise one is found or started.
        restore: the snapshot to go on from, where every node can read it; see Job.stop.

    Raises:
        DeclarationError: the topology is wrong; nothing was started.
        RayUnreachableError: there is no Ray at the address.
    """
    spec = prepare(topology, config, name=name, restore=restore)
    job = Job(spec.name, start_coordinator(spec, address=address), topology)
    try:
        job._start()
    except BaseException:
        job.close()
        raise
    return job


def attach(name: str, *, address: str | None = None) -> Job:
    """Finds a job that runs on Ray by its name.

    Raises:
        RayUnreachableError: there is no Ray at the address.
        JobNotFoundError: no such job.
    """
    return Job(name, find_coordinator(name, address=address))
