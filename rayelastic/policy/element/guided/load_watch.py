"""Signs of another load beside throughput: CPUs that other processes use, idle threads, and the cost of a tuple.

Each sign has to stand for some periods before it is believed. Must not know searches, nor what follows from a sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.policy.element.guided.load import LoadThresholds, Saturation, cpus_of_others
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Code, Reason

__all__ = ["Demand", "DemandSign", "OtherProcesses", "TupleCost"]


@dataclass(slots=True)
class OtherProcesses:
    """CPUs that other processes are believed to use (P32, C004-3).

    >>> others = OtherProcesses()
    >>> seen = Observation(time=1, period=1, throughput=1.0, thread_count=4, cpu_count=4, own_cpu=2.0, host_cpu=0.9)
    >>> others.changed(seen, LoadThresholds()), str(others.changed(seen, LoadThresholds())), others.cpus
    (None, 'other processes use 2 of 4 CPUs, 0 before', 2)

    This process yields CPUs only once its own threads wait for one, if that is measured: until then nothing is missing.
    It stays that way as long as other processes use these CPUs, as its threads would wait again otherwise.
    """

    cpus: int = 0
    _seen: int = 0
    _periods: int = 0

    def changed(self, observation: Observation, thresholds: LoadThresholds) -> Reason | None:
        """Take a period and return what changed, if it did."""
        seen = cpus_of_others(observation, thresholds)
        waiting = observation.waiting_cpu
        if self.cpus == 0 and waiting is not None and waiting < thresholds.blocked * observation.own_cpu:
            seen = 0
        self._periods = self._periods + 1 if seen == self._seen else 1
        self._seen = seen
        least = max(1, round(thresholds.capacity * observation.cpu_count))
        if abs(seen - self.cpus) < least or self._periods < thresholds.confirm:
            return None
        before, self.cpus = self.cpus, seen
        return Code.OTHER_PROCESSES(cpus=seen, of=observation.cpu_count, before=before)


class DemandSign(Enum):
    """What the last periods say of the demand."""

    NONE = "nothing new"
    MET = "threads are idle, as the sources have no more"
    UNMET = "it was met, and no longer is"


@dataclass(slots=True)
class Demand:
    """Whether the sources emit less than the threads can process, so that threads follow the demand (C001-2).

    Args:
        met: whether they do.
        slack: periods in a row in which threads had nothing to do.
        full: periods in a row in which they had enough.

    >>> demand = Demand()
    >>> [demand.take(Saturation.SLACK, LoadThresholds()).name for _ in range(3)], demand.met
    (['NONE', 'MET', 'NONE'], True)
    """

    met: bool = False
    slack: int = 0
    full: int = 0

    def take(self, state: Saturation, thresholds: LoadThresholds) -> DemandSign:
        """Take a period and return what it and those before it say."""
        self.full = self.full + 1 if state is Saturation.FULL else 0
        self.slack = self.slack + 1 if state is Saturation.SLACK else 0
        if self.met and self.full >= thresholds.confirm:
            self.met = False
            return DemandSign.UNMET
        if not self.met and self.slack >= thresholds.confirm:
            self.met = True
            return DemandSign.MET
        return DemandSign.NONE


@dataclass(slots=True)
class _Cost:
    samples: float
    tuples: float
    periods: int = 1

    def away(self, samples: float, tuples: float, doubts: float) -> float:
        """Return the factor to another cost, less what few samples may show by chance; as a logarithm."""
        doubt = math.sqrt(1 / samples + 1 / self.samples)
        away = abs(math.log(samples) - math.log(tuples) - math.log(self.samples) + math.log(self.tuples))
        return away if away >= doubts * doubt else 0.0


@dataclass(slots=True)
class TupleCost:
    """What a tuple costs in each configuration: a change of it is another load, whatever a trial does to throughput.

    >>> cost, now = TupleCost(), Configuration(2, frozenset())
    >>> [cost.changed(now, samples, 1e6, LoadThresholds()) for samples in (500, 510, 50, 52)]
    [False, False, False, True]
    """

    leaning: int = 0  # periods in a row that show it
    _known: dict[Configuration, _Cost] = field(default_factory=dict)

    def changed(self, now: Configuration, samples: float, tuples: float, thresholds: LoadThresholds) -> bool:
        """Take a period and return whether the cost changed."""
        if samples <= 0 or tuples <= 0:
            return False
        known = self._known.get(now)
        if self._leans(known, samples, tuples, thresholds):
            self.leaning += 1
            return self.leaning >= thresholds.confirm
        self.leaning = 0
        if known is None or known.away(samples, tuples, thresholds.doubts) >= math.log(thresholds.costlier):
            self._known[now] = _Cost(samples, tuples)  # a first period may show the change of configuration itself
        else:
            self._known[now] = _Cost(known.samples + samples, known.tuples + tuples, known.periods + 1)
        return False

    def _leans(self, known: _Cost | None, samples: float, tuples: float, thresholds: LoadThresholds) -> bool:
        if known is not None and known.periods > 1:
            return known.away(samples, tuples, thresholds.doubts) >= math.log(thresholds.costlier)
        away = [one.away(samples, tuples, thresholds.doubts) for one in self._known.values()]
        return min(away, default=0.0) >= math.log(thresholds.costlier_elsewhere)
