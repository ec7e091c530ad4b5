"""A latency that users want becomes a utilisation to size replicas for: less of it where tuples take too long.

The busier a replica, the longer tuples wait for it: in proportion to 1 / (1 - utilisation) in the simplest queue. So
the free capacity that a change of plan leaves bounds the latency. Pure: latencies come in as counts, a utilisation
comes out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rayelastic.reasons import Code, Reason

__all__ = ["AimThresholds", "LatencyAim", "quantile"]


@dataclass(frozen=True, slots=True)
class AimThresholds:
    """Constants.

    Args:
        quantile: of the latencies that has to stay below the goal.
        periods: whose marks are taken together at least.
        fewest: marks from which a quantile is believed; of more periods where they have fewer.
        longest_look: periods at most.
        lower: factor of the aim where it takes too long.
        least: aim; below, more replicas bring nothing any more.
        well: share of the goal below which less would do.
        patience: periods in a row for which it has to; twice as many each time that it was too early.
        longest: doublings of these.
    """

    quantile: float = 0.99
    periods: int = 5
    fewest: int = 20
    longest_look: int = 60
    lower: float = 0.75
    least: float = 0.1
    well: float = 0.5
    patience: int = 30
    longest: int = 5


class LatencyAim:
    """Follows one job's latency.

    Args:
        p99: seconds that 99 of 100 tuples shall stay below.
        target: utilisation to size for where latency allows it.
        thresholds: constants.

    >>> aim = LatencyAim(p99=0.01, target=0.8)
    >>> late = (0,) * 14 + (100,)  # below 2 ** 14 us, and not below 2 ** 13
    >>> for _ in range(6):
    ...     aim.see(late)
    ...     decided = aim.decide()
    >>> round(decided, 2)
    0.45
    """

    def __init__(self, p99: float, target: float, thresholds: AimThresholds | None = None) -> None:
        self._p99, self._target, self._t = p99, target, thresholds or AimThresholds()
        self._seen: deque[Sequence[int]] = deque(maxlen=self._t.longest_look)
        self._well = self._waits = self._rest = 0
        self._raised = False
        self.aim = target
        self.reached: float | None = None

    def forget(self) -> None:
        """Another plan is in force: what was measured belongs to the old one."""
        self._seen.clear()
        self._well = 0

    def see(self, latencies: Sequence[int]) -> None:
        """Take one period's marks.

        Args:
            latencies: marks that took less than 2^i microseconds, and not less than half of that.
        """
        self._seen.append(latencies)
        self._rest = max(0, self._rest - 1)
        while len(self._seen) > self._t.periods and self._marks() - sum(self._seen[0]) >= self._t.fewest:
            self._seen.popleft()

    def decide(self) -> float:
        """Return the utilisation to size for."""
        t = self._t
        if self._rest or self._marks() < t.fewest:
            return self.aim
        self.reached = quantile(map(sum, _columns(self._seen)), t.quantile)
        self._well = self._well + 1 if self.reached < t.well * self._p99 else 0
        if self.reached > self._p99 and self.aim > t.least:
            self.aim = max(t.least, self.aim * t.lower)
            self._waits = min(t.longest, self._waits + 1) if self._raised else self._waits
            self._raised = False
            self._rest = t.periods  # until what was asked for is in force, and seen
            self.forget()
        elif self._well >= t.patience << self._waits and self.aim < self._target:
            self.aim = min(self._target, self.aim / t.lower)
            self._raised = True
            self.forget()
        return self.aim

    def _marks(self) -> int:
        return sum(map(sum, self._seen))

    @property
    def reason(self) -> Reason:
        """What was reached, and the utilisation to size for."""
        if self.reached is None:
            return Code.LATENCY_UNKNOWN(goal=self._p99)
        return Code.LATENCY(p99=self.reached, goal=self._p99, aim=self.aim)


def quantile(counts: Iterable[int], share: float) -> float:
    """Return the latency that a share of marks stayed below, in seconds, evenly spread within a bucket.

    Args:
        counts: of marks below 2^i microseconds and not below half of that; infinite in the last one counts as its half.
        share: 0 to 1.

    >>> quantile([0, 0, 0, 100], 0.5)  # all below 8 us, and not below 4
    6e-06
    """
    all_of_them = list(counts)
    wanted, seen = share * sum(all_of_them), 0.0
    for bucket, marks in enumerate(all_of_them):
        if marks and seen + marks >= wanted:
            low, high = (1 << bucket) / 2, float(1 << bucket)
            return (low + (high - low) * (wanted - seen) / marks) / 1e6
        seen += marks
    return 0.0


def _columns(rows: Iterable[Sequence[int]]) -> list[list[int]]:
    every = list(rows)
    return [[row[i] for row in every if i < len(row)] for i in range(max(map(len, every), default=0))]
