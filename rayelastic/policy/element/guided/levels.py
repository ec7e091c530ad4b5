"""Which thread count to try next, from the throughput at those that were tried.

Assumes what PLDI'17 4.2.2 does, a curve that rises, peaks, and then stays or falls, and that threads help less and
less. Then lines through known points bound what lies between them, and the next try goes where a bound promises
something instead of halfway. Must not know noise, queues or costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = ["LevelTry", "Purpose", "fewer_threads", "more_threads", "peak_above"]

STILL_RISING = 0.5  # gain per thread, as a share of the mean one so far, at which a peak isn't reached yet
STEEP = 0.1  # gain up to which a peak as steep on either side isn't believed
LEAST_SAVING = 0.9  # a smaller thread count is worth a try from a tenth fewer on


class Purpose(Enum):
    """Why a configuration is tried."""

    GROWTH = "growth"  # it must be better
    EXPLORATION = "exploration"  # it may be better by all that was measured; a period tells more
    SAVING = "saving"  # it mustn't be worse
    RECALL = "recall"  # it was the best under such a load before; it mustn't be worse


@dataclass(frozen=True, slots=True)
class LevelTry:
    """A thread count that is worth a try."""

    threads: int
    purpose: Purpose
    why: str


def more_threads(known: Mapping[int, float], level: int, maximum: int, factor: int) -> LevelTry | None:
    """Return a thread count above all that are known.

    >>> more_threads({2: 10.0, 4: 19.0}, 4, maximum=64, factor=2).threads
    8
    """
    if level < max(known) or level >= maximum:
        return None
    return LevelTry(min(maximum, level * factor), Purpose.GROWTH, f"nothing is known above {level} threads")


def peak_above(known: Mapping[int, float], level: int, gain: float) -> LevelTry | None:
    """Return where a peak may hide between the level and the next known one above it.

    The line that led up to the level and the one that leads down from the level above meet where the peak would be.

    Args:
        known: throughput by thread count.
        level: the best thread count so far.
        gain: relative gain from which a peak is worth a try.

    >>> peak_above({32: 32.0, 64: 64.0, 128: 32.0}, 64, gain=0.05).threads
    80
    >>> peak_above({2: 2.0, 4: 4.0, 7: 1.0}, 4, gain=0.05).threads
    5
    >>> peak_above({8: 8.0, 10: 10.0, 16: 10.0, 32: 10.0}, 10, gain=0.05) is None
    True
    """
    higher = sorted(n for n in known if n > level)
    if not higher or higher[0] - level < 2:
        return None
    lower = max((n for n in known if n < level), default=0)
    rise = (known[level] - known.get(lower, 0.0)) / (level - lower)
    above = higher[0]
    fall = -rise  # of a peak of which only one side is known
    if len(higher) > 1:
        fall = (known[higher[1]] - known[above]) / (higher[1] - above)
    if rise <= max(fall, 0.0):
        return None
    meet = (known[above] - known[level] + rise * level - fall * above) / (rise - fall)
    promise = known[level] + rise * (meet - level)
    target = min(max(round(meet), level + 1), above - 1)
    one_side = len(higher) == 1 and rise >= STILL_RISING * known[level] / level
    if one_side and promise < known[level] * (1 + STEEP):
        middle = round(math.sqrt(level * above))  # of a steep fall nothing is known but where it has happened
        return LevelTry(middle, Purpose.GROWTH, f"it rose up to {level} threads, and fell before {above}")
    if promise < known[level] * (1 + gain):
        return None
    return LevelTry(target, Purpose.GROWTH, f"up to {promise:.4g} may be had between {level} and {above} threads")


def fewer_threads(
    known: Mapping[int, float], level: int, minimum: int, best: float, loss: float, busy: float | None
) -> LevelTry | None:
    """Return the fewest threads that can give as much, going by the line from the next lower level.

    Args:
        known: throughput by thread count.
        level: the thread count to undercut.
        minimum: the fewest threads allowed.
        best: the throughput to keep.
        loss: share of it that may be lost.
        busy: threads that were busy, where the processing element tells.

    >>> fewer_threads({4: 4.0, 8: 8.0, 16: 10.0}, 16, minimum=2, best=10.0, loss=0.03, busy=None).threads
    10
    """
    if level <= minimum:
        return None
    lower = max((n for n in known if n < level), default=None)
    floor = minimum
    if lower is None:
        target = max(minimum, level // 2)
        why = f"nothing is known below {level} threads"
    else:
        floor = lower + 1
        before = max((n for n in known if n < lower), default=0)
        slope = (known[lower] - known.get(before, 0.0)) / (lower - before)
        slope = min(slope, known[lower] / lower)
        missing = best * (1 - loss) - known[lower]
        if missing > 0 and slope <= 0:
            return None
        target = lower + max(1, math.ceil(missing / slope)) if missing > 0 else floor
        if 0 < missing < loss * best:  # it nearly did: the line says one more, noise says anything
            target = max(target, (lower + level) // 2)
        why = f"{target} threads may do by what {lower} gave"
    if busy is not None and target < math.ceil(busy) < level:
        target, why = math.ceil(busy), f"only {busy:.1f} of {level} threads were busy"
    target = max(target, floor, minimum)
    if target > LEAST_SAVING * level or target in known:
        return None
    return LevelTry(target, Purpose.SAVING, why)
