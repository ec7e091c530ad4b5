"""The reports of PEs and jobs: immutable values that cross processes."""

# Must not know the transport (Ray, or a call in the same process).

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rayelastic.graph.records.shown import counted
from rayelastic.policy.element.cpu_budgets import CpuBudget
from rayelastic.runtime.values.checkpoint_record import MOST_RECORDS, CheckpointRecord
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.hot_key import HotKey
from rayelastic.runtime.values.outage import Outage


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


FAILED = "failed"  # the reason of tuples that on_error="skip" dropped
BAD_ROW = "bad_row"  # the reason of rows of a file that on_bad_row="skip" dropped


def latency_bound(bucket: int) -> float:
    """Return the seconds that the latencies of a bucket stay below."""
    return float(1 << bucket) / 1e6


@dataclass(frozen=True, slots=True)
class OperatorSample:
    """Counters of one operator since its start.

    Args:
        name: The operator.
        model: Its threading model in force: `manual`, `dynamic` or `dedicated`.
        tuples_in: Tuples consumed.
        tuples_out: Tuples submitted.
        queued: Tuples that wait in its queue now.
        queue_capacity: Tuples that its queue holds; 0 without a queue.
        cpu_seconds: CPU time inside its function, without that of operators downstream.
        inside_seconds: Time that threads were inside its function, whether they ran or waited.
        waited_seconds: The part of that in which they slept: for an answer from outside, not for a CPU.
        blocked_seconds: Time that threads were blocked on output.
        errors: 1 if its function raised, which ends the job; else 0.
        lane: Its execution mode; empty if unknown.
        state_keys: Keys that it keeps state of.
        state_bytes: Memory of that state, without what Python values hold.
        latency: Of a sink, the number of marks by latency. Sources emit a mark ten times a second; entry i counts those
            below 2^i microseconds that no earlier entry counts, the last one all others. Empty for other operators.
        channels: Channels in use, of a stage that distributes tuples; 0 for others.
        answered_by_python: Tuples that its machine code rejected, and that the Python function processed.
        dropped: {reason: dropped tuples}: an output port without consumer, such as `late`; `failed`, `bad_row`.
        lines_repaired: Of a text source, lines with invalid UTF-8, whose bytes became U+FFFD.
        watermark: Progress of its event time, in seconds since 1970: tuples up to then have arrived. Of several
            processes the least. None: its stream has no event time, or no watermark yet.
    """

    name: str
    model: str
    tuples_in: int
    tuples_out: int
    queued: int
    queue_capacity: int = 0
    cpu_seconds: float = 0.0
    inside_seconds: float = 0.0
    waited_seconds: float = 0.0
    blocked_seconds: float = 0.0
    errors: int = 0
    lane: str = ""
    state_keys: int = 0
    state_bytes: int = 0
    latency: tuple[int, ...] = ()
    channels: int = 0
    answered_by_python: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    lines_repaired: int = 0
    watermark: float | None = None

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


@dataclass(frozen=True, slots=True)
class PESample:
    """The counters of a PE.

    Args:
        pe: Its id.
        seconds: Seconds since its start.
        threads: Scheduler threads in force.
        token_wait_seconds: Time that threads waited for the Python token, summed.
        operators: A sample per operator, in topological order: an OperatorTable, or a tuple.
        links: Counters by link, e.g. `bytes_sent`, `frames_received`, `refused`.
        port: Counters of the data port, e.g. `accepted`, `refused_secret`.
        threads_stuck: Scheduler threads that stay in user code.
        rss_bytes: Memory of its process.
        cpu_seconds: CPU time of its threads, in operators and outside.
        hot_keys: {region: its most frequent key}, of the regions that it routes to.
    """

    pe: str
    seconds: float
    threads: int
    token_wait_seconds: float
    operators: Sequence[OperatorSample]
    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    port: dict[str, int] = field(default_factory=dict)
    threads_stuck: int = 0
    rss_bytes: int = 0
    cpu_seconds: float = 0.0
    hot_keys: Mapping[str, HotKey] = field(default_factory=dict)


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
class CheckpointCounters:
    """The checkpoints of a job, and its restarts from them.

    Args:
        taken: Complete ones.
        abandoned: Aborted ones; the job continued.
        abandoned_seconds: The duration of those, in all.
        last: The number of the last complete one; 0: none yet.
        seconds: The duration of the last complete one.
        paused: The part of that for which the longest held sources were held. They are held until their barriers were
            sent. If `standstill` has a reason, it is until all tuples in flight had been processed and saved.
        restarts: How often the job restored one, or restarted from its beginning.
        problem: Why there are none, or why the last one was aborted; empty if all is well.
        standstill: Why all sources are held until their tuples are processed; empty if barriers flow with the records.
        recent: The last ones, including aborted ones and savepoints; oldest first.
        called_again: Sources that are functions: a restart calls them from their beginning, and skips what they emitted
            before. They have to emit the same again.
    """

    taken: int = 0
    abandoned: int = 0
    abandoned_seconds: float = 0.0
    last: int = 0
    seconds: float = 0.0
    paused: float = 0.0
    restarts: int = 0
    problem: str = ""
    standstill: str = ""
    called_again: tuple[str, ...] = ()
    recent: tuple[CheckpointRecord, ...] = ()

    def with_record(self, record: CheckpointRecord) -> CheckpointCounters:
        """Add a record to the last ones.

        >>> CheckpointCounters().with_record(CheckpointRecord(1, 2.0, 0.5)).recent[0].number
        1
        """
        return replace(self, recent=(*self.recent, record)[-MOST_RECORDS:])


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

    >>> status = JobStatus("prices", State.RUNNING)
    >>> status.state.is_final, status.failure, status.checkpoints.restarts
    (False, None, 0)
    """

    name: str
    state: State
    failure: Failure | None = None
    pes: tuple[PEStatus, ...] = ()
    checkpoints: CheckpointCounters = CheckpointCounters()
    paused: bool = False
    outage: Outage | None = None
    savepoint: str = ""

    @property
    def history(self) -> str:
        """What happened to the job besides its state, for people: recoveries, and a savepoint; empty: nothing.

        >>> JobStatus("words", State.FINISHED, checkpoints=CheckpointCounters(restarts=2), savepoint="/saved/1").history
        'recovered 2 times, stopped with a savepoint in /saved/1'
        """
        restarts, saved = self.checkpoints.restarts, [one.place for one in self.checkpoints.recent if one.is_savepoint]
        said = [f"recovered {counted(restarts, 'time')}"] if restarts else []
        if self.savepoint:
            said.append(f"stopped with a savepoint in {self.savepoint}")
        elif saved:
            said.append(f"last savepoint in {saved[-1]}")
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class RegionCounters:
    """The plan changes of one region since the job's start.

    Args:
        changes: Changes of its replicas, without those that were undone.
        undone: Changes that failed, and were undone.
        moved_keys: Keys whose state migrated to another replica.
        moved_bytes: Bytes of state that migrated to another replica.
        held_seconds: Time that migrating keys waited, from the first router that held them to the last one that knew
            their new owner, summed over all batches.
        longest_hold: The longest that keys waited, in seconds.
        to_move: Partitions that the current change has yet to migrate, including those in progress; 0: none.
        held: The ones among them whose keys wait now for their state to arrive.
    """

    changes: int = 0
    undone: int = 0
    moved_keys: int = 0
    moved_bytes: int = 0
    held_seconds: float = 0.0
    longest_hold: float = 0.0
    to_move: int = 0
    held: int = 0

    def with_change(self, *, undone: bool = False) -> RegionCounters:
        """Count a change."""
        return replace(self, changes=self.changes + (not undone), undone=self.undone + undone)

    def moving(self, to_move: int, held: int) -> RegionCounters:
        """Set the number of partitions that the current change has yet to migrate, and that are held."""
        return replace(self, to_move=to_move, held=held)

    def with_move(self, keys: int, size: int, seconds: float) -> RegionCounters:
        """Count a batch of partitions.

        >>> moved = RegionCounters().with_move(10, 400, 0.5).with_move(5, 200, 0.25)
        >>> moved.moved_keys, moved.moved_bytes, moved.held_seconds, moved.longest_hold
        (15, 600, 0.75, 0.5)
        """
        return replace(
            self,
            moved_keys=self.moved_keys + keys,
            moved_bytes=self.moved_bytes + size,
            held_seconds=self.held_seconds + seconds,
            longest_hold=max(self.longest_hold, seconds),
        )


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """Counters of a whole job.

    Args:
        name: The job.
        seconds: Seconds since its start.
        pes: A sample per PE.
        regions: {region: its plan changes}, of those that had any.
        checkpoints: Its checkpoints.
    """

    name: str
    seconds: float
    pes: tuple[PESample, ...]
    regions: Mapping[str, RegionCounters] = field(default_factory=dict)
    checkpoints: CheckpointCounters = CheckpointCounters()

    def dropped(self, reason: str) -> dict[str, int]:
        """Return the number of tuples dropped for a reason, such as `late`, by operator, without zeros."""
        names = {sample.name: None for pe in self.pes for sample in pe.operators if reason in sample.dropped}
        return {name: self.operator(name).dropped[reason] for name in names}

    def operator(self, name: str) -> OperatorSample:
        """Return the counters of one operator, summed over the PEs that host it.

        Raises:
            KeyError: An unknown operator.
        """
        samples = [sample for pe in self.pes for sample in pe.operators if sample.name == name]
        if not samples:
            raise KeyError(name)
        return OperatorSample(
            name=name,
            model=samples[0].model,
            tuples_in=sum(sample.tuples_in for sample in samples),
            tuples_out=sum(sample.tuples_out for sample in samples),
            queued=sum(sample.queued for sample in samples),
            queue_capacity=sum(sample.queue_capacity for sample in samples),
            cpu_seconds=sum(sample.cpu_seconds for sample in samples),
            inside_seconds=sum(sample.inside_seconds for sample in samples),
            waited_seconds=sum(sample.waited_seconds for sample in samples),
            blocked_seconds=sum(sample.blocked_seconds for sample in samples),
            errors=sum(sample.errors for sample in samples),
            lane=samples[0].lane,
            state_keys=sum(sample.state_keys for sample in samples),
            state_bytes=sum(sample.state_bytes for sample in samples),
            latency=tuple(map(sum, zip(*(sample.latency for sample in samples), strict=True))),
            channels=sum(sample.channels for sample in samples),
            answered_by_python=sum(sample.answered_by_python for sample in samples),
            dropped=_summed([sample.dropped for sample in samples]),
            lines_repaired=sum(sample.lines_repaired for sample in samples),
            watermark=min((sample.watermark for sample in samples if sample.watermark is not None), default=None),
        )


def _summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


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
