"""The reports of PEs and jobs: immutable values that cross processes."""

# Must not know the transport (Ray, or a call in the same process).

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rayelastic.graph.records.shown import counted
from rayelastic.policy.element.cpu_budgets import CpuBudget
from rayelastic.runtime.values.checkpoint_record import CheckpointCounters
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.hot_key import HotKey
from rayelastic.runtime.values.metrics import Alert, Panel, combined, described, gauge, metric
from rayelastic.runtime.values.outage import Outage
from rayelastic.runtime.values.region_counters import RegionCounters


class State(enum.Enum):
    """The life of a PE and of a job."""

    CREATED = "created"
    RUNNING = "running"
    RECOVERING = "recovering"  # of a job: it restores its last checkpoint, after a loss or for another plan
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen.

        >>> State.RUNNING.is_final, State.FAILED.is_final
        (False, True)
        """
        return self in (State.FINISHED, State.FAILED, State.CANCELLED)


CPU_TIMES = "CPU time and waiting for the GIL"  # a panel of the dashboard
FAILED = "failed"  # the reason of tuples that on_error="skip" dropped
BAD_ROW = "bad_row"  # the reason of rows of a file that on_bad_row="skip" dropped


def _summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def latency_bound(bucket: int) -> float:
    """Return the seconds that the latencies of a bucket stay below."""
    return float(1 << bucket) / 1e6


@described
@dataclass(frozen=True, slots=True)
class OperatorSample:
    """Counters of one operator since its start.

    Args:
        name: The operator.
        model: Its threading model in force: `manual`, `dynamic` or `dedicated`.
        lane: Its execution mode; empty if unknown.
    """

    name: str
    model: str
    # fmt: off
    tuples_in: int = metric("Tuples received.", top="in", page="tuples received", panel="Tuples into operators")
    tuples_out: int = metric(
        "Tuples emitted.", page="tuples emitted", panel="Tuples out of operators", alert=Alert(
            "JobStalled", "no tuple moved for 5 minutes", "sum by (rel_job) (rate({}[5m])) == 0", "5m",
            "Job {{ $labels.rel_job }} has moved no tuple for 5 minutes"))
    queued: int = gauge("Tuples in its queue.", page="tuples in its queue")
    queue_capacity: int = gauge("Tuples that its queue holds; 0 without a queue.", exported=False)
    cpu_seconds: float = metric(
        "CPU time inside its function, without that of operators downstream, seconds.")
    inside_seconds: float = metric(
        "Time of threads inside its function, running or waiting, seconds.", alert=Alert(
            "FallsBehind", "an operator was busy more than 95 % of 10 minutes",
            "max by (rel_job, operator) (rate({}[5m])) > 0.95", "10m",
            "{{ $labels.operator }} of job {{ $labels.rel_job }} is busy all the time: "
            "it may not keep up with its input"))
    waited_seconds: float = metric(
        "Time of threads asleep inside its function, for an answer from outside and not for a CPU, seconds.")
    blocked_seconds: float = metric(
        "Time of threads blocked on its output, seconds.", panel="Blocked on output", alert=Alert(
            "BackPressure", "an operator was blocked on its output more than 80 % of the time",
            "max by (rel_job, operator) (rate({}[5m])) > 0.8", "10m",
            "{{ $labels.operator }} of job {{ $labels.rel_job }} is blocked on its output most of the time"))
    errors: int = metric(
        "Calls of its function that raised; the first one ends the job.",
        top="errors", page="errors", panel=Panel("Errors", expr="{}"))
    lane: str = ""
    lag: int = gauge(
        "Of a source that reads Kafka, unread messages of the topic; 0 for others.",
        top="lag", page="messages behind", panel="Lag")
    behind_seconds: float = gauge(
        "Of a source that reads Kafka and has a lag, age of the last message read, seconds. Of several "
        "partitions, the highest.",
        combine=max, top="behind", page="time behind", panel="Time behind", alert=Alert(
            "SourceLags", "a source was more than 5 minutes behind its topic", "{} > 300", "5m",
            "{{ $labels.operator }} of job {{ $labels.rel_job }} is more than 5 minutes behind its topic"))
    state_keys: int = gauge("Keys with state.", page="keys with state")
    state_bytes: int = gauge(
        "Memory of that state, bytes; without the Python objects in it.", page="state", panel="State")
    latency: tuple[int, ...] = metric(
        "Of a sink, its latency markers by latency: entry i counts those below 2^i microseconds that no earlier entry "
        "counts, the last one all others. Each source sends ten a second.",
        default=(), combine=lambda marks: tuple(map(sum, zip(*marks, strict=True))), exported=False)
    channels: int = gauge("Channels in use by an elastic or parallel stage; 0 for others.")
    answered_by_python: int = metric(
        "Tuples that its compiled function left to the Python function.", short="tuples_answered_by_python")
    dropped: Mapping[str, int] = metric(
        "Tuples dropped, by reason: an output port without a sink, such as `late`; `failed` (on_error='skip'); "
        "`bad_row` (on_bad_row='skip').",
        default=dict, combine=_summed, short="tuples_dropped", more=("reason",),
        top="dropped", page="tuples dropped", alert=Alert(
            "TuplesDropped", "tuples were dropped: the label `reason` says why", "increase({}[5m]) > 0", "",
            "{{ $labels.operator }} of job {{ $labels.rel_job }} drops tuples ({{ $labels.reason }})"))
    lines_repaired: int = metric("Lines that a text source read with bytes that aren't UTF-8, which became U+FFFD.")
    watermark: float | None = gauge(
        "Its watermark, seconds since 1970: tuples up to then have arrived. None without an event time.",
        default=None, combine=lambda values: min((one for one in values if one is not None), default=None),
        exported=False)
    # fmt: on

    def latency_quantile(self, quantile: float) -> float | None:
        """Return the latency that this share of the marks stayed below, in seconds: a power of two of microseconds.

        Args:
            quantile: 0 to 1, such as 0.5 and 0.99.

        Returns:
            None if no mark has arrived; infinite if it is in the last bucket, which has no bound.

        >>> sample = OperatorSample("out", "manual", 0, 0, 0, latency=(0, 0, 98, 0, 1, 1))
        >>> sample.latency_quantile(0.5), sample.latency_quantile(0.99), sample.latency_quantile(1.0)
        (4e-06, 1.6e-05, inf)
        """
        seen, wanted = 0, quantile * sum(self.latency)
        for bucket, marks in enumerate(self.latency[:-1]):
            seen += marks
            if marks and seen >= wanted:
                return latency_bound(bucket)
        return math.inf if any(self.latency) else None

    @property
    def queue_fill(self) -> float:
        """The share of its queue that is full, 0..1; 0 without a queue."""
        return min(1.0, self.queued / self.queue_capacity) if self.queue_capacity else 0.0


@described
@dataclass(frozen=True, slots=True)
class PESample:
    """The counters of a PE.

    Args:
        pe: Its id.
        seconds: Seconds since its start.
        operators: A sample per operator, in topological order: an OperatorTable, or a tuple.
        links: Counters by link, e.g. `bytes_sent`, `frames_received`, `refused`.
        port: Counters of the data port, e.g. `accepted`, `refused_secret`.
        hot_keys: {region: its most frequent key}, of the regions that it routes to.
    """

    pe: str
    seconds: float
    threads: int = gauge("Scheduler threads in force.", panel="Scheduler threads")
    gil_wait_seconds: float = metric(
        "Time of threads that waited for the GIL, seconds.", panel=Panel(CPU_TIMES, "GIL wait {{pe}}")
    )
    operators: Sequence[OperatorSample] = ()
    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    port: dict[str, int] = field(default_factory=dict)
    threads_stuck: int = gauge(
        "Scheduler threads that don't return from user code.", alert=Alert(
            "ThreadStuck", "user code doesn't return", "{} > 0", "2m",
            "A thread of {{ $labels.pe }} (job {{ $labels.rel_job }}) doesn't return from user code"))  # fmt: skip
    rss_bytes: int = gauge("Memory of its process, bytes; `rel.run` has all PEs in one process.", panel="Memory")
    memory_share: float = gauge(
        "Share in use of the memory that its process may use: of its control group or of the host.",
        panel="Share of the memory in use", alert=Alert(
            "MemoryShort", "a process comes near its memory", "{} > 0.9", "1m",
            "The memory that {{ $labels.pe }} (job {{ $labels.rel_job }}) may use is nearly full"))  # fmt: skip
    cpu_seconds: float = metric(
        "CPU time of its native threads, in operators and outside, seconds.", panel=Panel(CPU_TIMES, "CPU {{pe}}")
    )
    hot_keys: Mapping[str, HotKey] = field(default_factory=dict)
    # fmt: off
    adaptations: int = metric("Changes of its threads or queues by elasticity.", panel="Changes of threads and queues")
    adaptations_back: int = metric(
        "Of these, changes back to what was in force before under the same load: trials and oscillation.")
    settling_seconds: float = gauge(
        "Time from the start, or from the first change under a new load, to the last change, seconds.",
        panel="Settling time")
    overshoot_threads: int = gauge("Most threads in force under this load, above those in force now.")
    trial_seconds: float = metric(
        "Throughput lost to trials of threads and queues, in seconds of the best one; at most 1 % over 10 minutes, but "
        "for trials that promise much.", panel="Cost of trials")
    # fmt: on


@dataclass(frozen=True, slots=True)
class PEStatus:
    """The state of a PE.

    Args:
        pe: Its id.
        state: Its state.
        failure: Why it failed, if it did.
        node: The host that it runs on.
        pid: Its operating system process.
        lost_peers: {PE: why}, for broken links of an elastic region.
        encryption: The encryption of its links; empty if it has neither links nor a port.
        budget: CPUs of its host that it may use beside other elements of the job there; None: unlimited.
    """

    pe: str
    state: State
    failure: Failure | None = None
    node: str = ""
    pid: int = 0
    lost_peers: Mapping[str, str] = field(default_factory=dict)
    encryption: str = ""
    budget: CpuBudget | None = None


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job and of its PEs.

    Args:
        name: the job.
        state: where it is in its life.
        failure: why it failed, if it did.
        pes: the state of each PE.
        checkpoints: those that it took, and its restarts from them.
        paused: whether its elasticity is paused: nothing is adapted until it is resumed.
        outage: the server or store that it waits for while it recovers; None: it waits for none.
        savepoint: Where it was saved when it was stopped, without secrets. Empty: it wasn't stopped with a savepoint.
        owner: The user who started it, by the name on the driver's machine.

    >>> status = JobStatus("prices", State.RUNNING)
    >>> status.state.is_final, status.failure, status.checkpoints.restarts
    (False, None, 0)
    """

    name: str
    state: State
    failure: Failure | None = None
    pes: tuple[PEStatus, ...] = ()
    checkpoints: CheckpointCounters = field(default_factory=CheckpointCounters)
    paused: bool = False
    outage: Outage | None = None
    savepoint: str = ""
    owner: str = ""

    @property
    def history(self) -> str:
        """What happened to the job besides its state, for people: recoveries, and a savepoint; empty: nothing.

        >>> JobStatus("words", State.FINISHED, checkpoints=CheckpointCounters(restarts=2), savepoint="/saved/1").history
        'recovered 2 times, stopped with a savepoint in /saved/1'
        """
        restarts, saved = self.checkpoints.restarts, [one.place for one in self.checkpoints.recent if one.is_savepoint]
        parts = [f"recovered {counted(restarts, 'time')}"] if restarts else []
        if self.savepoint:
            parts.append(f"stopped with a savepoint in {self.savepoint}")
        elif saved:
            parts.append(f"last savepoint in {saved[-1]}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """Counters of a whole job.

    Args:
        name: The job.
        seconds: Seconds since its start.
        pes: A sample per PE. A PE counts from 0 when it is replaced, as after a restart of the job.
        regions: {region: its plan changes}, of those that had any.
        checkpoints: Its checkpoints.
        earlier: {operator: the counters of PEs that were replaced or stopped}. The totals of operators include them.
        silent: The PEs that don't answer at the moment: their last counters are shown.
    """

    name: str
    seconds: float
    pes: tuple[PESample, ...]
    regions: Mapping[str, RegionCounters] = field(default_factory=dict)
    checkpoints: CheckpointCounters = field(default_factory=CheckpointCounters)
    earlier: Mapping[str, OperatorSample] = field(default_factory=dict)
    silent: tuple[str, ...] = ()

    def dropped(self, reason: str) -> dict[str, int]:
        """Return the number of tuples dropped for a reason, such as `late`, by operator, without zeros."""
        return {name: one.dropped[reason] for name, one in self.operators().items() if reason in one.dropped}

    def operators(self) -> dict[str, OperatorSample]:
        """Return {operator: its counters}, summed over the PEs that host or hosted it, in the order of the PEs."""
        samples: dict[str, list[OperatorSample]] = {}
        for pe in self.pes:
            for sample in pe.operators:
                samples.setdefault(sample.name, []).append(sample)
        for name, sample in self.earlier.items():
            samples.setdefault(name, []).append(sample)
        return {name: combined(found) for name, found in samples.items()}

    def operator(self, name: str) -> OperatorSample:
        """Return the counters of one operator, summed over the PEs that host or hosted it: they never fall.

        Tuples that are processed again after a recovery count again.

        Raises:
            KeyError: An unknown operator.
        """
        samples = [sample for pe in self.pes for sample in pe.operators if sample.name == name]
        samples += [self.earlier[name]] if name in self.earlier else []
        if not samples:
            raise KeyError(name)
        return combined(samples)


@dataclass(frozen=True, slots=True)
class SinkResult:
    """The result of a sink when its stream is final.

    Args:
        sink: The operator.
        rows: Tuples that it received.
        value: What it collected (a `pyarrow.Table`), the path that it wrote to (a `str`), or `None`.
    """

    sink: str
    rows: int
    value: Any = None
