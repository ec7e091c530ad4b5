"""Thread level of one elastic operator by peak rates: IPDPS'09 section 3, Fig. 2.

Keeps the highest rate seen at each level, lets it decay, and infers a busy system from a rate below its own peak. Must
not know what is run by the threads, or who else runs on the machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.policy.stage.shared_cpus import too_wide
from rayelastic.reasons import Code, Reason

__all__ = ["PeakRateElasticity", "PeakRateThresholds"]


@dataclass(frozen=True, slots=True)
class PeakRateThresholds:
    """Constants of peak-rate elasticity; the paper has no values (S06, S07).

    Args:
        tolerance: TOLERANCE, the relative difference of rates that counts; as in the later papers of its authors.
        decay: DECAY_RATE, the share by which a peak that wasn't reached sinks in a period of 1 s.
    """

    tolerance: float = 0.05
    decay: float = 0.01


class PeakRateElasticity:
    """Adds a thread while peaks rise; takes one away, on trial, when the rate falls below its peak (IPDPS'09 Fig. 2).

    Level n of the figure is n threads above the minimum, so that its thread 0 is never suspended.

    Args:
        thresholds: its constants.

    >>> controller = PeakRateElasticity()
    >>> controller.step(Observation(time=1, period=1, throughput=100.0, thread_count=1, maximum_threads=4)).thread_count
    2
    """

    def __init__(self, thresholds: PeakRateThresholds | None = None) -> None:
        self._thresholds = thresholds or PeakRateThresholds()
        self.reset()

    def reset(self) -> None:
        """Forget all rates."""
        self._peak: list[float] = []
        self._last: list[float] = []
        self._peaking = False

    def step(self, observation: Observation) -> Decision:
        """Return the next thread level."""
        if (bounded := too_wide(observation)) is not None:
            self.reset()  # rates were those of other shares
            return bounded
        minimum = min(observation.minimum_threads, observation.maximum_threads)
        n = max(0, observation.thread_count - minimum)
        rate = observation.throughput
        while len(self._peak) <= n:
            self._peak.append(0.0)
            self._last.append(0.0)
        self._set_peak(n, rate)
        self._last[n] = rate
        level, lines, why = self._decide(n, rate, created=len(self._peak))
        threads = min(minimum + level, observation.maximum_threads)
        seen = Code.MEASURED(rate=rate, setting={"threads": observation.thread_count})
        return Decision(threads, {}, (seen, why), lines)

    def _decide(self, n: int, rate: float, *, created: int) -> tuple[int, str, Reason]:
        peak = self._peak
        if self._peaking:  # lines 5-10: strict, so that performance doesn't creep downwards
            self._peaking = False
            if n + 1 < created and rate < self._last[n + 1]:
                return n + 1, "IPDPS'09 Fig. 2 lines 5-7 (S09)", Code.ONE_MORE_FASTER()
            return n, "IPDPS'09 Fig. 2 lines 5-10 (S09)", Code.STABLE_ABOVE()
        if self._less(rate, peak[n]) or (n > 0 and self._less(peak[n], peak[n - 1])):  # lines 13-20: a busy system
            if n == 0:
                return n, "IPDPS'09 Fig. 2 line 15 (S05)", Code.BUSY_LAST_THREAD()
            self._peaking = True
            return n - 1, "IPDPS'09 Fig. 2 lines 16-19 (S09)", Code.BUSY_TRY_FEWER()
        if n == 0 or self._less(peak[n - 1], peak[n]):  # line 26
            if n + 1 == created:  # lines 28-30
                return n + 1, "IPDPS'09 Fig. 2 lines 28-30 (S08)", Code.STILL_IMPROVING()
            if peak[n] < peak[n + 1]:  # lines 33-34
                return n + 1, "IPDPS'09 Fig. 2 lines 33-34 (S08)", Code.ONE_MORE_FASTER()
            return n, "IPDPS'09 Fig. 2 line 36 (S08)", Code.STABLE_ABOVE()
        return n, "IPDPS'09 Fig. 2 line 39 (S08)", Code.STABLE_BELOW()

    def _set_peak(self, n: int, rate: float) -> None:
        """Do `set` of Fig. 2; a peak that was invalidated takes the rate, where infinity would decay to no number."""
        if math.isinf(self._peak[n]):
            self._peak[n] = rate
        elif rate > self._peak[n]:
            if self._less(self._peak[n], rate):
                self._peak[n + 1 :] = [math.inf] * len(self._peak[n + 1 :])  # S06
            self._peak[n] = rate
        else:
            self._peak[n] -= self._peak[n] * self._thresholds.decay

    def _less(self, a: float, b: float) -> bool:
        if math.isinf(a):
            return False
        return b > 0 and (a == 0 or (b - a) / a >= self._thresholds.tolerance)  # S07
