"""The best configurations of loads that were met before.

Loads are distinguished by each operator's share of the work and by the work for a tuple. Both depend little on the
configuration in force. Must not know how the configurations were found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rayelastic.policy.element.guided.estimate import Configuration, Profile
from rayelastic.policy.element.guided.measurement import Series

__all__ = ["Memory", "Remembered", "elsewhere"]

LOADS = 8  # loads that are remembered
OTHER_EFFORT = 3.0  # log ratio of the work of a tuple that counts like all work elsewhere; caches and SMT change it too
ALIKE = 0.25  # share of the work that may be elsewhere for two loads to be alike


def elsewhere(costs: Mapping[str, float], samples: float, others: Mapping[str, float], more: float) -> float:
    """Return the share of the work that is in other operators, by so many samples of either, less what is chance.

    >>> elsewhere({"a": 0.5, "b": 0.5}, 1e9, {"a": 0.25, "b": 0.75}, 1e9) < elsewhere({"a": 1.0}, 1e9, {"b": 1.0}, 1e9)
    True
    """
    differ = math.fsum(abs(costs.get(name, 0.0) - cost) for name, cost in others.items()) / 2
    # few samples of equal work differ too: by the mean deviation of a normal variable
    spread = math.fsum(math.sqrt(cost * (1 - cost)) for cost in others.values() if cost < 1)
    return max(0.0, differ - spread * math.sqrt((1 / samples + 1 / more) / (2 * math.pi)))


@dataclass(frozen=True, slots=True)
class Remembered:
    """A load and what was best under it.

    Args:
        best: the configuration.
        series: its throughput; may grow while it stays in force.
        others: CPUs that other processes used.
        costs: share of each operator in all work; empty without a profile.
        samples: of the profiler, from which the costs were computed.
        effort: samples per tuple; 0 without a profile.
        budget: CPUs that its coordinator left to this element; None: all.
    """

    best: Configuration
    series: Series
    others: int
    costs: Mapping[str, float] = field(default_factory=dict)
    samples: float = 0.0
    effort: float = 0.0
    budget: int | None = None

    @classmethod
    def of(
        cls, best: Configuration, series: Series, others: int, profile: Profile, budget: int | None = None
    ) -> Remembered:
        """Return a load with the costs and the effort of its profile."""
        costs = profile.costs() if profile.known else {}
        return cls(best, series, others, costs, profile.total, profile.effort, budget)

    def had_as_much(self, other: Remembered) -> bool:
        """Return whether the same CPUs were there for it."""
        return (self.others, self.budget) == (other.others, other.budget)

    def gave(self, series: Series, tolerance: float) -> bool:
        """Return whether a throughput is the same, but for a relative difference."""
        return abs(series.mean - self.series.mean) < tolerance

    def distance(self, other: Remembered) -> float:
        """Return the share of the work that is elsewhere, or that is more or less; 0 where either has no profile.

        >>> best = Configuration(2, frozenset())
        >>> one = Remembered(best, Series([14.0]), 0, {"a": 0.5, "b": 0.5}, samples=1e9, effort=1e-4)
        >>> other = Remembered(best, Series([14.0]), 0, {"a": 0.25, "b": 0.75}, samples=1e9, effort=1e-4)
        >>> round(one.distance(other), 2)
        0.25
        """
        if not self.costs or not other.costs:
            return 0.0
        more = abs(math.log(self.effort / other.effort)) if self.effort > 0 and other.effort > 0 else 0.0
        return elsewhere(self.costs, self.samples, other.costs, other.samples) + more / OTHER_EFFORT


@dataclass(slots=True)
class Memory:
    """Loads, the latest last.

    >>> memory = Memory()
    >>> memory.keep(Remembered(Configuration(4, frozenset()), Series([14.0]), others=0))
    >>> memory.like(Remembered(Configuration(2, frozenset()), Series([13.5]), others=0), maximum=8).best.threads
    4
    """

    loads: list[Remembered] = field(default_factory=list)

    def keep(self, load: Remembered) -> None:
        """Remember a load, in place of those like it."""
        others = [one for one in self.loads if not one.had_as_much(load) or one.distance(load) >= ALIKE / 2]
        self.loads = [*others, load][-LOADS:]

    def like(self, now: Remembered, maximum: int) -> Remembered | None:
        """Return the load most alike, if its configuration is another one that is allowed; the latest of equals."""
        alike = [(one.distance(now), -at, one) for at, one in enumerate(self.loads) if one.had_as_much(now)]
        if not alike:
            return None
        distance, _, found = min(alike, key=lambda one: one[:2])
        if distance >= ALIKE or found.best == now.best or found.best.threads > maximum:
            return None
        return found

    def met(self, now: Remembered, tolerance: float) -> bool:
        """Return whether a configuration was the best of a load before, and gave the same."""
        return any(
            one.best == now.best and one.had_as_much(now) and one.gave(now.series, tolerance) for one in self.loads
        )
