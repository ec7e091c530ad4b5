"""Whether a settled configuration does the same work as before, only faster or slower: the machine, not the load.

A machine's clock, its caches and its memory are shared with others whom nobody sees. Must not know searches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from rayelastic.policy.element.guided.memory import elsewhere
from rayelastic.policy.element.observation import Observation

__all__ = ["Work"]

SAME = 0.2  # share of the work that may be elsewhere
SLOWER = math.log(2.0)  # how many times as long a tuple may take, or as short: what was best stays the best
AS_BUSY = 0.1  # how much more or less of the CPUs may be busy: if no more are, threads wait for each other as before
QUEUES = ""  # what stands for work outside operators


@dataclass(slots=True)
class Work:
    """What was done in some periods with one configuration: where, by the profiler, and by how many CPUs.

    >>> from rayelastic.policy.element.observation import OperatorObservation
    >>> operators = (OperatorObservation("a", samples=500), OperatorObservation("b", samples=500))
    >>> before, now, other = (
    ...     Work.of([Observation(time=1, period=1, throughput=rate, thread_count=1, operators=operators, own_cpu=1)])
    ...     for rate in (2e6, 1.5e6, 0.5e6)
    ... )
    >>> before.goes_on_as(now), before.goes_on_as(other)
    (True, False)
    """

    samples: dict[str, float] = field(default_factory=dict)
    tuples: float = 0.0
    busy: float = 0.0  # CPU seconds
    seconds: float = 0.0

    @classmethod
    def of(cls, observations: Iterable[Observation]) -> Self:
        """Return that of several periods."""
        work = cls()
        for observation in observations:
            work.add(observation)
        return work

    def add(self, observation: Observation) -> None:
        """Take a period."""
        for one in observation.operators:
            self.samples[one.name] = self.samples.get(one.name, 0.0) + one.samples
        self.samples[QUEUES] = self.samples.get(QUEUES, 0.0) + observation.system_samples
        self.tuples += observation.throughput * observation.period
        self.busy += observation.own_cpu * observation.period
        self.seconds += observation.period

    def goes_on_as(self, now: Work) -> bool:
        """Return whether that is the same work by as many CPUs."""
        total, more = math.fsum(self.samples.values()), math.fsum(now.samples.values())
        if not all((total, more, self.tuples, now.tuples, self.busy, now.busy)):
            return False
        busy = math.log(self.busy / self.seconds) - math.log(now.busy / now.seconds)
        longer = math.log(self.busy / self.tuples) - math.log(now.busy / now.tuples)
        costs, others = (
            {name: one / of for name, one in some.samples.items()} for some, of in ((self, total), (now, more))
        )
        return abs(busy) < AS_BUSY and abs(longer) < SLOWER and elsewhere(costs, total, others, more) < SAME
