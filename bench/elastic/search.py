"""The best static setting of a job that runs: families of placements by measured costs, then small steps from the best.

Each is looked at for a moment, so that many can be. What is the best by that takes turns, afterwards, with what it is
compared with: looks alone would choose the luckiest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from bench.elastic.live import Live, Setting
from rayelastic.runtime.watch.machine_load import available_cpus

PROFILE = 1.0  # s in which costs are measured
BOUNDS = 8  # of the cost of a piece, between the dearest operator's and all
DEAREST = (1, 2, 4)  # so many operators with a queue, the dearest ones
STEPS = 2  # rounds of small steps from the best
NEIGHBOURS = 4  # queues more, and fewer, that are tried in each
FINALISTS = 4  # that are looked at for longer
LONGER = 3.0  # times


def best_static(live: Live, found: Setting, looks: int, seconds: float, draw: random.Random) -> tuple[Setting, int]:
    """Search the best setting; it may be the one that was found.

    Args:
        live: the job; elasticity doesn't decide there.
        found: by elasticity.
        looks: settings that are looked at, about.
        seconds: that each is.
        draw: which ones, where there are too many.

    Returns:
        The best, and how many were looked at.
    """
    costs = live.costs(PROFILE)
    movable = live.movable
    seen: dict[Setting, float] = {}

    def look(setting: Setting) -> float:
        if setting not in seen:
            seen[setting] = live.rate(setting, seconds)
        return seen[setting]

    families = list(dict.fromkeys(_families(live, costs, movable)))
    first, rest = families[:2], families[2:]  # no queues and all of them, always
    settings = [Setting(threads, queued) for queued in first + rest for threads in _threads(queued)]
    budget = max(4, looks * 2 // 3)
    for setting in settings if len(settings) <= budget else [*settings[:3], *draw.sample(settings[3:], budget - 3)]:
        look(setting)
    look(found)
    for _ in range(STEPS):
        at = max(seen, key=seen.__getitem__)
        near = [one for one in dict.fromkeys(_near(at, costs, movable)) if one not in seen]
        if len(seen) >= looks or not near:
            break
        for setting in near[: looks - len(seen)]:
            look(setting)
    finalists = sorted(seen, key=lambda one: -seen[one])[:FINALISTS]
    longer = {one: live.rate(one, LONGER * seconds) for one in finalists}
    return max(longer, key=longer.__getitem__), len(seen)


def _threads(queued: frozenset[str]) -> range:
    return range(1, max(1, min(available_cpus(), len(queued))) + 1)  # a thread without a queue of its own finds no work


def _families(live: Live, costs: dict[str, float], movable: list[str]) -> Iterator[frozenset[str]]:
    yield frozenset()
    yield frozenset(movable)
    total, dearest = sum(costs.values()), max(costs.values())
    joins = frozenset(movable) & live.graph.joins
    for step in range(BOUNDS):
        most = dearest * (total / max(dearest, 1e-9)) ** (step / BOUNDS)
        queued = live.graph.cut(costs, most, lambda name: name in movable)
        yield queued
        if joins:
            yield queued - joins
            yield queued | joins
    by_cost = sorted(movable, key=lambda name: -costs[name])
    for count in DEAREST:
        yield frozenset(by_cost[:count])


def _near(at: Setting, costs: dict[str, float], movable: list[str]) -> Iterator[Setting]:
    """What differs by one step."""
    for threads in (at.threads - 1, at.threads + 1):
        if threads in range(1, available_cpus() + 1):
            yield Setting(threads, at.queued)
    by_cost = sorted(movable, key=lambda name: -costs[name])
    for name in [one for one in by_cost if one not in at.queued][:NEIGHBOURS]:
        yield Setting(at.threads, at.queued | {name})
        yield Setting(min(available_cpus(), at.threads + 1), at.queued | {name})
    for name in [one for one in reversed(by_cost) if one in at.queued][:NEIGHBOURS]:
        yield Setting(at.threads, at.queued - {name})
    for name in sorted(at.queued)[:NEIGHBOURS]:  # the cut one operator further
        after = movable.index(name) + 1
        if after < len(movable) and movable[after] not in at.queued:
            yield Setting(at.threads, at.queued - {name} | {movable[after]})
