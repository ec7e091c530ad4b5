"""Why throughput grows less than the number of threads: a few parameters, and their most plausible values.

Each parameter has a prior, so one without evidence keeps its usual value. The sum of squares measures how unlikely an
explanation is. Must not know how throughput follows from the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

__all__ = ["HOP_SECONDS", "LOCK_SECONDS", "USUAL_BALANCE", "USUAL_GROWTH", "Explanation", "plausible"]

HOP_SECONDS = 12e-9  # s; a tuple through a queue between two threads, finding work included (`./dev bench micro`)
LOCK_SECONDS = 3.4e-10  # s; a contended try-lock takes 22 ns, once for a run of 64 tuples (findings, section 1)
USUAL_BALANCE = 0.15  # of Graham's bound; two cores gave 1.7-1.9 times one with many pieces (findings, section 4)
USUAL_GROWTH = 0.02  # of a hop, for each further thread; shared lines in transit

HOP_RANGE = 1e3  # the cost of a hop is sought within this factor of the usual one
HOP_STEPS = 12  # each way
HOP_WONDER = 30.0  # the factor to the usual one that is as unlikely as a standard deviation
BALANCES = (0.0, 0.15, 0.3, 0.5, 0.75, 1.0)  # among which the balance is sought
BALANCE_WONDER = 0.5  # the difference to the usual one that is as unlikely as a standard deviation
GROWTHS = (0.0, 0.005, 0.02, 0.06, 0.2)  # among which the growth is sought
GROWTH_WONDER = 5.0  # the factor to the usual one that is as unlikely as a standard deviation
LOCKS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # of the usual one, among which the cost of a lock is sought
LOCK_WONDER = 10.0  # the factor to the usual one that is as unlikely as a standard deviation
PLAUSIBLE = 4.0  # an explanation is worth a look while it is less than two standard deviations from the best one
MISS = 0.05  # relative error of an estimate that is as unlikely as a standard deviation
ROUNDS = 2  # of improving one number after the other


@dataclass(frozen=True, slots=True)
class Explanation:
    """Costs of running on several threads.

    Args:
        hop: cost of a tuple's way through a queue, as a share of all work for one source tuple.
        balance: share of Graham's bound by which threads wait for each other, 0..1 (R. L. Graham, Bounds on
            Multiprocessing Timing Anomalies, SIAM J. Applied Mathematics 17(2), 1969).
        growth: share by which the cost of a hop rises with each further thread.
        lock: cost of one more thread that waits where pieces meet, for each tuple there, in the unit of a hop.
    """

    hop: float
    balance: float
    growth: float = 0.0
    lock: float = 0.0


def plausible(misses: Callable[[Explanation], float], usual: Explanation) -> tuple[Explanation, ...]:
    """Return the most plausible explanations, the best first, each with another balance.

    Args:
        misses: sum of squared relative errors that an explanation leaves.
        usual: what is taken for likely without any measurement.

    >>> usual = Explanation(hop=0.1, balance=0.15, growth=0.02, lock=0.005)
    >>> plausible(lambda one: (math.log(one.hop / 0.4)) ** 2, usual)[0].hop > 0.3
    True
    """
    found = []
    known: dict[Explanation, float] = {}

    def wonder(one: Explanation) -> float:
        if one not in known:
            known[one] = _wonder(one, usual, misses)
        return known[one]

    for balance in BALANCES:
        explanation = replace(usual, balance=balance)
        for _ in range(ROUNDS):
            for options in (_hops(usual), _growths(), _locks(usual)):
                explanation = min((replace(explanation, **one) for one in options), key=wonder)
        found.append((wonder(explanation), explanation))
    found.sort(key=lambda one: one[0])
    return tuple(explanation for wonder, explanation in found if wonder < found[0][0] + PLAUSIBLE)


def _wonder(one: Explanation, usual: Explanation, misses: Callable[[Explanation], float]) -> float:
    def times(value: float, wonder: float) -> float:
        return (math.log(value) / math.log(wonder)) ** 2

    growth = times(max(one.growth, GROWTHS[1]) / usual.growth, GROWTH_WONDER) if usual.growth > 0 else 0.0
    lock = times(one.lock / usual.lock, LOCK_WONDER) if usual.lock > 0 else 0.0
    balance = ((one.balance - usual.balance) / BALANCE_WONDER) ** 2
    return misses(one) / MISS**2 + times(one.hop / usual.hop, HOP_WONDER) + balance + growth + lock


def _hops(usual: Explanation) -> list[dict[str, float]]:
    return [{"hop": usual.hop * HOP_RANGE ** (step / HOP_STEPS)} for step in range(-HOP_STEPS, HOP_STEPS + 1)]


def _growths() -> list[dict[str, float]]:
    return [{"growth": growth} for growth in GROWTHS]


def _locks(usual: Explanation) -> list[dict[str, float]]:
    return [{"lock": usual.lock * factor} for factor in LOCKS]
