"""How fast threads get through one lock, and why more of them may get through it more slowly.

The model of S. Boyd-Wickizer et al., Non-scalable locks are dangerous (OLS'12): a birth-death chain over the number of
threads at the lock, whose handover takes longer the more of them wait. Beyond a number of threads it collapses,
which is what the papers' counting sink does (PLDI'17 5.2, ElasticLoadBalance).
"""

from __future__ import annotations

import numpy as np

INSTANT = 1e-6  # ns that no time is taken for


def visits_per_ns(threads: float, think: float, hold: float, handover: float) -> float:
    """Return how many times per ns a lock is taken by all threads together.

    Args:
        threads: threads that come back to the lock again and again; fractions are interpolated.
        think: ns between letting the lock go and wanting it again.
        hold: ns that the lock is held.
        handover: ns that a handover takes for each thread that waits.

    >>> alone = visits_per_ns(1, think=900, hold=100, handover=50)
    >>> round(alone, 6), round(visits_per_ns(4, 900, 100, 50) / alone, 1)
    (0.001, 3.6)
    >>> visits_per_ns(64, 900, 100, 50) < visits_per_ns(8, 900, 100, 50)
    True
    """
    whole = int(threads)
    if whole < 1:
        return threads / max(think + hold, INSTANT)
    rate = _visits(whole, think, hold, handover)
    if threads > whole:
        rate += (threads - whole) * (_visits(whole + 1, think, hold, handover) - rate)
    return rate


def _visits(threads: int, think: float, hold: float, handover: float) -> float:
    """Solve the chain: n threads at the lock, arrivals (threads - n) / think, services hold + handover (n - 1)."""
    at_lock = np.arange(1, threads + 1)
    service = max(hold, INSTANT) + handover * (at_lock - 1)
    steps = np.log((threads - at_lock + 1) * service / max(think, INSTANT))
    weights = np.concatenate(([0.0], np.cumsum(steps)))
    chances = np.exp(weights - weights.max())
    chances /= chances.sum()
    return float((chances[1:] / service).sum())
