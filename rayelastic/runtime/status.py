"""What processing elements and jobs say of themselves: immutable values that cross processes.

Must not know how they are carried (Ray, or a call in the same process).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class State(enum.Enum):
    """The life of a processing element and of a job."""

    CREATED = "created"
    RUNNING = "running"
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


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a processing element or a job failed.

    Args:
        reason: one line in plain words.
        operator: the operator whose code or source failed; `None` if it was not an operator.
        failing_tuple: the tuple that was being processed, as text; `None` if unknown.
        traceback: the traceback of the user's code as text; empty if there is none.
        lost_link: a link broke; where another processing element failed too, that is the cause.
    """

    reason: str
    operator: str | None = None
    failing_tuple: str | None = None
    traceback: str = ""
    lost_link: bool = False


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
        blocked_seconds: time that threads waited for room for what it gave.
        errors: 1 if its function raised, which ends the job; else 0.
        lane: how it runs; empty if unknown.
        state_keys: keys that it keeps state of.
        state_bytes: memory of that state, without what Python values hold.
    """

    name: str
    model: str
    tuples_in: int
    tuples_out: int
    queued: int
    queue_capacity: int = 0
    cpu_seconds: float = 0.0
    inside_seconds: float = 0.0
    blocked_seconds: float = 0.0
    errors: int = 0
    lane: str = ""
    state_keys: int = 0
    state_bytes: int = 0

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
        operators: one sample an operator, in topological order.
        links: counters by link, e.g. `bytes_sent`, `frames_received`, `refused`.
        port: counters of the data port, e.g. `accepted`, `refused_secret`.
        threads_stuck: of the scheduler threads, those that stay in user code.
        rss_bytes: memory of its process.
        cpu_seconds: CPU time of its threads, in operators and outside.
    """

    pe: str
    seconds: float
    threads: int
    token_wait_seconds: float
    operators: tuple[OperatorSample, ...]
    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    port: dict[str, int] = field(default_factory=dict)
    threads_stuck: int = 0
    rss_bytes: int = 0
    cpu_seconds: float = 0.0


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
    """

    pe: str
    state: State
    failure: Failure | None = None
    node: str = ""
    pid: int = 0
    lost_peers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job and of its processing elements.

    Args:
        name: the job.
        state: where it is in its life.
        failure: why it failed, if it did.
        pes: the state of each processing element.
    """

    name: str
    state: State
    failure: Failure | None = None
    pes: tuple[PEStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """Counters of a whole job.

    Args:
        name: the job.
        seconds: since its start.
        pes: one sample a processing element.
    """

    name: str
    seconds: float
    pes: tuple[PESample, ...]

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
            blocked_seconds=sum(sample.blocked_seconds for sample in found),
            errors=sum(sample.errors for sample in found),
            lane=found[0].lane,
            state_keys=sum(sample.state_keys for sample in found),
            state_bytes=sum(sample.state_bytes for sample in found),
        )


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
