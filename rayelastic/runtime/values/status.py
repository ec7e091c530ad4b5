"""What processing elements and jobs say of themselves: immutable values that cross processes.

Must not know how they are carried (Ray, or a call in the same process).
"""

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
    """The life of a processing element and of a job."""

    CREATED = "created"
    RUNNING = "running"
    RECOVERING = "recovering"  # of a job: after a loss or for another plan it goes on from its last checkpoint
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


FAILED = "failed"  # the reason of dropped tuples that on_error="skip" left out
BAD_ROW = "bad_row"  # and of rows of a file that on_bad_row="skip" left out


def latency_bound(bucket: int) -> float:
    """Seconds that the latencies of a bucket stay below."""
    return float(1 << bucket) / 1e6


@dataclass(frozen=True, slots=True)
class OperatorSample:
    """Counters of one operator since its start.

    Args:
        name: the operator.
        model: its threading model in force: `manual`, `dynamic` or `dedicated`.
        tuples_in: tuples consumed.
        tuples_out: tuples submitted.
        queued: tuples that wait in its queue now.
        queue_capacity: tuples that its queue holds; 0 without a queue.
        cpu_seconds: CPU time inside its function, without that of operators downstream.
        inside_seconds: time that threads were inside its function, whether they ran or waited.
        waited_seconds: of that, time asleep: for an answer from outside, not for a CPU.
        blocked_seconds: time that threads waited for room for what it gave.
        errors: 1 if its function raised, which ends the job; else 0.
        lane: how it runs; empty if unknown.
        state_keys: keys that it keeps state of.
        state_bytes: memory of that state, without what Python values hold.
        latency: of a sink: marks that sources put into their streams ten times a second, by the time they were under
            way: shorter than 2^i microseconds and not counted before; the last took longer. Empty for others.
        channels: in use, of a stage that deals tuples out to several; 0 of others.
        answered_by_python: tuples that its machine code refused, and that went on with what the Python function gives.
        dropped: {reason: tuples that went nowhere}: the output port that nobody takes, as `late`; `failed`, `bad_row`.
        lines_repaired: of a text source: lines with bytes that aren't UTF-8, which became U+FFFD.
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
            None if no mark has come; infinite if it took longer than the last bucket tells.

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
    """What a processing element counted so far.

    Args:
        pe: its id.
        seconds: since its start.
        threads: scheduler threads in force.
        token_wait_seconds: time that threads waited for the Python token, summed.
        operators: one sample an operator, in topological order: an OperatorTable, or a tuple.
        links: counters by link, e.g. `bytes_sent`, `frames_received`, `refused`.
        port: counters of the data port, e.g. `accepted`, `refused_secret`.
        threads_stuck: of the scheduler threads, those that stay in user code.
        rss_bytes: memory of its process.
        cpu_seconds: CPU time of its threads, in operators and outside.
        hot_keys: {region: its most frequent key}, of those in front of which it has a router.
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
    """The state of a processing element.

    Args:
        pe: its id.
        state: where it is in its life.
        failure: why it failed, if it did.
        node: the host that it runs on.
        pid: its operating system process.
        lost_peers: {processing element: why}, where a link of an elastic region broke.
        encryption: what is in force on its links; empty if it has neither links nor a port.
        budget: CPUs of its host that it may keep busy beside other elements of the job there; None: it isn't bounded.
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
    """What checkpoints a job took, and how often it went back to one.

    Args:
        taken: complete ones.
        abandoned: that couldn't be completed; the job went on.
        abandoned_seconds: that these took, all in all.
        last: the number of the last complete one; 0: none yet.
        seconds: that the last complete one took, all in all.
        paused: of that, seconds for which sources were held, those that were longest: until their marks were on
            the way, or, where `standstill` says why, until all that was under way had been processed and saved.
        restarts: times that the job went back to one, or to its start.
        problem: why there are none, or why the last one was abandoned; empty if all is well.
        standstill: why all sources stand still until what they sent is processed; empty if marks go with the records.
        recent: the last ones, also those that were given up, and savepoints; oldest first.
        called_again: sources that are functions: a restart calls them from their beginning, and leaves out what they
            gave before. They have to give the same again.
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
        """Keep one more record, of the last ones.

        >>> CheckpointCounters().with_record(CheckpointRecord(1, 2.0, 0.5)).recent[0].number
        1
        """
        return replace(self, recent=(*self.recent, record)[-MOST_RECORDS:])


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job and of its processing elements.

    Args:
        name: the job.
        state: where it is in its life.
        failure: why it failed, if it did.
        pes: the state of each processing element.
        checkpoints: those that it took, and its restarts from them.
        paused: whether its elasticity is paused: nothing is adapted until it is resumed.
        outage: the server or store that it waits for while it recovers; None: it waits for none.
        savepoint: Where it was saved when it was stopped, without secrets. Empty: it wasn't stopped with a savepoint.
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
    """What changes of plan did to one region since the job's start.

    Args:
        changes: changes of its replicas, those that were undone not counted.
        undone: changes that couldn't be carried out, and were undone.
        moved_keys: keys whose state went to another replica.
        moved_bytes: of state that went to another replica.
        held_seconds: time that moving keys waited, from the first router that held them to the last one that knew their
            new owner; one batch of partitions after the other, summed.
        longest_hold: the longest that keys waited, in seconds.
        to_move: partitions of keys that the change under way has yet to move, those that move now among them; 0: none.
        held: of these, whose keys wait now for their state to arrive.
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
        """Count one more change."""
        return replace(self, changes=self.changes + (not undone), undone=self.undone + undone)

    def moving(self, to_move: int, held: int) -> RegionCounters:
        """Says how much there is to move in the change under way, and what waits for it."""
        return replace(self, to_move=to_move, held=held)

    def with_move(self, keys: int, size: int, seconds: float) -> RegionCounters:
        """Count one more batch of partitions.

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
        name: the job.
        seconds: since its start.
        pes: one sample a processing element.
        regions: {region: what changes of plan did to it}, of those that had any.
        checkpoints: those that it took.
    """

    name: str
    seconds: float
    pes: tuple[PESample, ...]
    regions: Mapping[str, RegionCounters] = field(default_factory=dict)
    checkpoints: CheckpointCounters = CheckpointCounters()

    def dropped(self, reason: str) -> dict[str, int]:
        """Return how many tuples were dropped for a reason, such as `late`, by operator; of those that dropped any."""
        names = {one.name: None for pe in self.pes for one in pe.operators if reason in one.dropped}
        return {name: self.operator(name).dropped[reason] for name in names}

    def operator(self, name: str) -> OperatorSample:
        """Counters of one operator, summed over the processing elements that host it.

        Raises:
            KeyError: no such operator.
        """
        found = [sample for pe in self.pes for sample in pe.operators if sample.name == name]
        if not found:
            raise KeyError(name)
        return OperatorSample(
            name=name,
            model=found[0].model,
            tuples_in=sum(sample.tuples_in for sample in found),
            tuples_out=sum(sample.tuples_out for sample in found),
            queued=sum(sample.queued for sample in found),
            queue_capacity=sum(sample.queue_capacity for sample in found),
            cpu_seconds=sum(sample.cpu_seconds for sample in found),
            inside_seconds=sum(sample.inside_seconds for sample in found),
            waited_seconds=sum(sample.waited_seconds for sample in found),
            blocked_seconds=sum(sample.blocked_seconds for sample in found),
            errors=sum(sample.errors for sample in found),
            lane=found[0].lane,
            state_keys=sum(sample.state_keys for sample in found),
            state_bytes=sum(sample.state_bytes for sample in found),
            latency=tuple(map(sum, zip(*(sample.latency for sample in found), strict=True))),
            channels=sum(sample.channels for sample in found),
            answered_by_python=sum(sample.answered_by_python for sample in found),
            dropped=_summed([sample.dropped for sample in found]),
            lines_repaired=sum(sample.lines_repaired for sample in found),
            watermark=min((sample.watermark for sample in found if sample.watermark is not None), default=None),
        )


def _summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


@dataclass(frozen=True, slots=True)
class SinkResult:
    """What a sink leaves when its stream is final.

    Args:
        sink: the operator.
        rows: tuples that it took.
        value: what it collected (a `pyarrow.Table`), where it wrote (a path as `str`), or `None`.
    """

    sink: str
    rows: int
    value: Any = None
