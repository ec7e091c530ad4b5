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

from rayelastic.reasons import Code, Reason

__all__ = ["LevelTry", "Purpose", "fewer_threads", "hidden_peak", "more_threads"]

STILL_RISING = 0.5  # gain per thread, as a share of the mean one so far, at which a peak isn't reached yet
STEEP = 0.1  # gain up to which a peak by such lines isn't believed
WIDE = 0.3  # gain by the line that led up, from which a peak far beyond that isn't ruled out by what lies behind
LEAST_SAVING = 0.9  # a smaller thread count is worth a try from a tenth fewer on


class Purpose(Enum):
    """Why a configuration is tried."""

    GROWTH = "growth"  # it must be better
    EXPLORATION = "exploration"  # the measurements suggest that it is better; a period will show
    SAVING = "saving"  # it mustn't be worse
    RECALL = "recall"  # it was the best under such a load before; it mustn't be worse


@dataclass(frozen=True, slots=True)
class LevelTry:
    """A thread count that is worth a try."""

    threads: int
    purpose: Purpose
    why: Reason


def more_threads(known: Mapping[int, float], level: int, maximum: int, factor: int) -> LevelTry | None:
    """Return a thread count above all that are known.

    >>> more_threads({2: 10.0, 4: 19.0}, 4, maximum=64, factor=2).threads
    8
    """
    if level < max(known) or level >= maximum:
        return None
    return LevelTry(min(maximum, level * factor), Purpose.GROWTH, Code.UNKNOWN_ABOVE(threads=level))


def hidden_peak(known: Mapping[int, float], level: int, gain: float) -> LevelTry | None:
    """Return where a peak may hide between the level and the next known one above it, or else the one below it.

    The line that led up to such a gap and the one that leads down from it meet where the peak would be.

    Args:
        known: throughput by thread count.
        level: the best thread count so far.
        gain: relative gain from which a peak is worth a try.

    >>> hidden_peak({32: 32.0, 64: 64.0, 128: 32.0}, 64, gain=0.05).threads
    80
    >>> hidden_peak({2: 2.0, 4: 4.0, 7: 1.0}, 4, gain=0.05).threads
    5
    >>> hidden_peak({16: 16.0, 32: 32.0, 62: 36.0}, 62, gain=0.05).threads
    49
    >>> hidden_peak({8: 8.0, 10: 10.0, 16: 10.0, 32: 10.0}, 10, gain=0.05) is None
    True
    """
    above = min((n for n in known if n > level), default=level)
    below = max((n for n in known if n < level), default=level)
    return _peak_between(known, level, level, above, gain) or _peak_between(known, level, below, level, gain)


def _peak_between(known: Mapping[int, float], level: int, low: int, high: int, gain: float) -> LevelTry | None:
    if high - low < 2:
        return None
    before = max((n for n in known if n < low), default=0)
    beyond = min((n for n in known if n > high), default=None)
    rise = (known[low] - known.get(before, 0.0)) / (low - before)
    fall = -rise if beyond is None else (known[beyond] - known[high]) / (beyond - high)  # only one side is known
    still_rising = rise >= STILL_RISING * known[low] / low
    if rise <= max(fall, 0.0) or (level == high and not (before and still_rising)):
        return None
    meet = (known[high] - known[low] + rise * low - fall * high) / (rise - fall)
    promise = known[low] + rise * (meet - low)
    # of a steep fall nothing is known but where it has happened, whatever a line beyond it says
    wide = beyond is None or rise * (high - low) >= WIDE * known[low]
    if level == low and fall < 0 and still_rising and wide and promise < known[low] * (1 + STEEP):
        why = Code.PEAK_PASSED(low=low, high=high)
        return LevelTry(round(math.sqrt(low * high)), Purpose.GROWTH, why)
    if promise < known[level] * (1 + gain):
        return None
    target = min(max(round(meet), low + 1), high - 1)
    return LevelTry(target, Purpose.GROWTH, Code.PEAK_BETWEEN(rate=promise, low=low, high=high))


def fewer_threads(
    known: Mapping[int, float], level: int, minimum: int, best: float, loss: float, busy: float | None
) -> LevelTry | None:
    """Return the fewest threads that should keep the throughput, by the line from the next lower level.

    Args:
        known: throughput by thread count.
        level: the thread count to undercut.
        minimum: the fewest threads allowed.
        best: the throughput to keep.
        loss: share of it that may be lost.
        busy: threads that were busy; None: not measured.

    >>> fewer_threads({4: 4.0, 8: 8.0, 16: 10.0}, 16, minimum=2, best=10.0, loss=0.03, busy=None).threads
    10
    """
    if level <= minimum:
        return None
    lower = max((n for n in known if n < level), default=None)
    floor = minimum
    if lower is None:
        target = max(minimum, level // 2)
        why = Code.UNKNOWN_BELOW(threads=level)
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
        why = Code.FEWER_MAY_DO(threads=target, known=lower)
    if busy is not None and target < math.ceil(busy) < level:
        target, why = math.ceil(busy), Code.THREADS_BUSY(busy=busy, threads=level)
    target = max(target, floor, minimum)
    if target > LEAST_SAVING * level or target in known:
        return None
    return LevelTry(target, Purpose.SAVING, why)
