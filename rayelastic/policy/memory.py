"""The best configurations of loads that were met before.

Must not know how they were found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rayelastic.policy.estimate import Configuration, Profile

__all__ = ["Memory", "Remembered"]

LOADS = 8  # loads that are remembered
OTHER_EFFORT = 3.0  # log ratio of CPU time per tuple that counts like all work elsewhere; hops are a part of it
ALIKE = 0.25  # share of the work that may be elsewhere for two loads to be alike


@dataclass(frozen=True, slots=True)
class Remembered:
    """A load and what was best under it.

    Args:
        best: the configuration.
        throughput: what it gave, in tuples/s.
        others: CPUs that other processes used.
        costs: share of each operator in all work; empty without a profile.
        effort: CPU time per tuple, in s; 0 without a profile.
    """

    best: Configuration
    throughput: float
    others: int
    costs: Mapping[str, float]
    effort: float = 0.0


@dataclass(slots=True)
class Memory:
    """Loads, the latest last.

    >>> memory = Memory()
    >>> memory.keep(Remembered(Configuration(4, frozenset()), 1e6, others=0, costs={}))
    >>> memory.like(Profile(), others=0, now=Configuration(2, frozenset()), maximum=8).best.threads
    4
    """

    loads: list[Remembered] = field(default_factory=list)

    def keep(self, load: Remembered) -> None:
        """Remember a load, in place of one like it."""
        alike = [
            known
            for known in self.loads
            if known.others == load.others and _distance(known, load.costs, load.effort) < ALIKE / 2
        ]
        self.loads = [known for known in self.loads if known not in alike and known.best != load.best]
        self.loads = [*self.loads, load][-LOADS:]

    def of(self, best: Configuration, others: int) -> Remembered | None:
        """Return the load under which a configuration was best."""
        return next((known for known in self.loads if known.best == best and known.others == others), None)

    def like(self, profile: Profile, others: int, now: Configuration, maximum: int) -> Remembered | None:
        """Return the load most alike, if its configuration is another one that is allowed; the latest of equals."""
        costs = profile.costs() if profile.known else {}
        alike = [
            (_distance(known, costs, profile.effort), -i, known)
            for i, known in enumerate(self.loads)
            if known.others == others
        ]
        if not alike:
            return None
        distance, _, known = min(alike, key=lambda one: one[:2])
        if distance >= ALIKE or known.best == now or known.best.threads > maximum:
            return None
        return known


def _distance(known: Remembered, costs: Mapping[str, float], effort: float) -> float:
    """Return the share of the work that is elsewhere, or that is more or less; 0 where either has no profile."""
    if not known.costs or not costs:
        return 0.0
    elsewhere = math.fsum(abs(known.costs.get(name, 0.0) - cost) for name, cost in costs.items()) / 2
    other = abs(math.log(known.effort / effort)) if known.effort > 0 and effort > 0 else 0.0
    return elsewhere + other / OTHER_EFFORT
