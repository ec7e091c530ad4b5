"""What a controller sees of a PE in one period, as plain values.

Must not know who measured it, or what a controller makes of it. An observation has the settings *in force*, never the
requested ones. So it shows threads that are stuck in user code, and ports that couldn't be switched (architecture,
section 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from rayelastic.plan.settings.threads import ThreadingModel

__all__ = ["Observation", "OperatorObservation"]


@dataclass(frozen=True, slots=True)
class OperatorObservation:
    """One operator during a period.

    Args:
        name: its name in the topology.
        model: the threading model in force.
        switchable: False for a source, and for a port that can't be switched, such as one that got stuck (M15).
        rate: tuples/s that it took; of a source: that it made.
        samples: profiler samples in which a thread ran it, over the last full window (M02, E9).
        queue_fill: share of its queue that is full, 0..1; 0 without a queue.
        given: tuples/s that it emitted; None: not measured.
        shared: whether whoever fills its queue runs it, too, at the same time, where it finds that full.

    >>> OperatorObservation("parse", ThreadingModel.MANUAL, rate=2e6, samples=40).as_dict()["model"]
    'manual'
    """

    name: str
    model: ThreadingModel = ThreadingModel.MANUAL
    switchable: bool = True
    rate: float = 0.0
    samples: int = 0
    queue_fill: float = 0.0
    given: float | None = None
    shared: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"model": self.model.value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the observation from the result of `as_dict`."""
        return cls(**{**values, "model": ThreadingModel(values["model"])})


@dataclass(frozen=True, slots=True)
class Observation:
    """One PE during a period.

    Args:
        time: seconds since its start, at the end of the period.
        period: seconds that it covers.
        throughput: tuples/s over all operators (P27).
        thread_count: scheduler threads in force.
        minimum_threads: the fewest that cannot deadlock (P33).
        maximum_threads: the most that are allowed (P31).
        operators: each operator, sources first, upstream before downstream.
        system_samples: profiler samples of threads that were busy outside operators: queues, free ports, wake-ups.
        idle: share of the time of scheduler threads asleep for want of work, 0..1.
        blocked: share of the time of all threads spent waiting for room in queues, 0..1.
        token_wait: share of the time of all threads spent waiting for the Python token, 0..1.
        source_wait: share of its time that the busiest source waits for input, 0..1; None: not known.
        cpu_count: logical CPUs that the process may use, and one more for each operator that mostly sleeps.
        own_cpu: CPUs that this process kept busy. A thread that sleeps in an operator which mostly sleeps, such as one
            that calls a service, counts as one CPU. Its time counts as samples of that operator.
        asleep: the part of `own_cpu` that such sleeping threads account for.
        sleepers: operators that mostly sleep; `cpu_count` includes one CPU for each.
        host_cpu: share of all CPUs of the host that were busy, whoever used them, 0..1 (P32).
        waiting_cpu: CPUs that threads of this process waited for while others used them; None: not measured.
        thread_stuck: threads that are stuck in user code (P25).
        adapted: whether what was asked for last is in force.
        budget: CPUs that the coordinator leaves to this element of several on one host, which `cpu_count` is made of;
            None: it isn't bounded.

    >>> seen = Observation(time=5.0, period=5.0, throughput=1e6, thread_count=2, maximum_threads=8, cpu_count=8,
    ...                    operators=(OperatorObservation("numbers", switchable=False), OperatorObservation("square")))
    >>> Observation.from_dict(seen.as_dict()) == seen
    True
    """

    time: float
    period: float
    throughput: float
    thread_count: int
    minimum_threads: int = 1
    maximum_threads: int = 1
    operators: tuple[OperatorObservation, ...] = ()
    system_samples: int = 0
    idle: float = 0.0
    blocked: float = 0.0
    token_wait: float = 0.0
    source_wait: float | None = None
    cpu_count: int = 1
    own_cpu: float = 0.0
    asleep: float = 0.0
    sleepers: int = 0
    host_cpu: float = 0.0
    waiting_cpu: float | None = None
    thread_stuck: int = 0
    adapted: bool = True
    budget: int | None = None

    @property
    def queued(self) -> frozenset[str]:
        """Names of the operators with a scheduler queue in front of them."""
        return frozenset(o.name for o in self.operators if o.model is ThreadingModel.DYNAMIC)

    @property
    def cpus_used(self) -> float:
        """CPUs that ran this process; unlike in `own_cpu`, a sleeping thread uses none.

        >>> seen = Observation(1, 1, 1e3, 1, cpu_count=5, own_cpu=1.0, asleep=0.96, sleepers=1, host_cpu=0.392)
        >>> round(seen.cpus_used, 2), seen.cpus, round(seen.host_busy, 2)
        (0.04, 4, 0.25)
        """
        return max(0.0, self.own_cpu - self.asleep)

    @property
    def cpus(self) -> int:
        """Logical CPUs that the process may use."""
        return self.cpu_count - self.sleepers

    @property
    def host_busy(self) -> float:
        """The share of `cpus` that were busy, 0..1; a sleeping thread uses none."""
        return max(0.0, self.host_cpu * self.cpu_count - self.asleep) / max(1, self.cpus)

    @property
    def samples(self) -> int:
        """Profiler samples inside operators."""
        return sum(o.samples for o in self.operators)

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values, so that a journal can be replayed through a controller."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {"operators": [operator.as_dict() for operator in self.operators]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the observation from the result of `as_dict`."""
        operators = tuple(OperatorObservation.from_dict(operator) for operator in values["operators"])
        return cls(**{**values, "operators": operators})
