"""What trials cost: throughput that is lost while something worse than the best configuration is in force.

A bound on it keeps a job whose trials don't pay from being disturbed by them. Must not know why something was tried.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from rayelastic.policy.element.guided.measurement import Series
from rayelastic.policy.element.observation import Observation

__all__ = ["TrialCostThresholds", "TrialCosts"]


@dataclass(frozen=True, slots=True)
class TrialCostThresholds:
    """Constants of the bound.

    Args:
        most: share of the throughput that trials may cost; beyond it nothing is tried that doesn't promise much.
        window: longest periods that the share is taken over; 10 minutes of the default.
    """

    most: float = 0.01
    window: int = 600


@dataclass(slots=True)
class TrialCosts:
    """What trials have cost so far.

    Args:
        thresholds: its constants.
        lost: seconds of the best throughput.

    >>> from math import log
    >>> seen = Observation(time=9, period=3, throughput=50.0, thread_count=1)
    >>> costs = TrialCosts()
    >>> costs.add(seen, Series([log(100.0)]))
    >>> round(costs.lost, 6), round(costs.share(seen), 6)
    (1.5, 0.000833)
    >>> TrialCosts().share(Observation(time=0, period=0, throughput=0.0, thread_count=1))
    0.0
    """

    thresholds: TrialCostThresholds = field(default_factory=TrialCostThresholds)
    lost: float = 0.0
    _trials: deque[tuple[float, float]] = field(default_factory=deque)  # the end of a period, seconds lost in it
    _longest: float = 0.0

    def add(self, observation: Observation, best: Series | None) -> None:
        """Take a period of a trial."""
        self._longest = max(self._longest, observation.period)
        if best is None or observation.throughput >= best.throughput:
            return
        lost = observation.period * (1 - observation.throughput / best.throughput)
        self.lost += lost
        self._trials.append((observation.time, lost))

    def share(self, now: Observation) -> float:
        """Return the share of the throughput that trials have cost lately."""
        window = self.thresholds.window * max(self._longest, now.period)
        while self._trials and self._trials[0][0] <= now.time - window:
            self._trials.popleft()
        return math.fsum(lost for _, lost in self._trials) / window if window > 0 else 0.0
