"""What two settings give beside each other: they take turns, so that a machine's drift cancels, until that is known."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

MEDIAN = math.sqrt(math.pi / 2)  # standard errors of a mean that the one of a median is, if errors are normal


@dataclass(frozen=True, slots=True)
class Share:
    """How much one gives of what the other does.

    Args:
        share: median over the turns.
        error: its relative standard error.
        turns: how many there were.
    """

    share: float
    error: float
    turns: int


def share_of(one: Callable[[], float], other: Callable[[], float], turns: int, most: int, error: float) -> Share:
    """Have both take turns until the standard error is small enough.

    Args:
        one: gives its rate in a turn.
        other: likewise; takes its turn after it.
        turns: at least, two or more.
        most: turns, however large the error still is.
        error: relative standard error of the median that is small enough.

    >>> share_of(lambda: 95.0, lambda: 100.0, turns=7, most=40, error=0.01)
    Share(share=0.95, error=0.0, turns=7)
    """
    shares: list[float] = []
    while True:
        mine = one()
        shares.append(mine / other())
        if len(shares) < turns:
            continue
        off = MEDIAN * statistics.stdev(map(math.log, shares)) / math.sqrt(len(shares))
        if off <= error or len(shares) >= most:
            return Share(statistics.median(shares), off, len(shares))
