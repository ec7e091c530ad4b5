"""What a region could carry in another shape: the true processing rates of DS2.

In DS2 (Kalavri et al., "Three steps is all you need", OSDI'18) an operator's capacity follows from its useful time, not
from its observed rate. One pass downstream computes all needs from the rates that the sources offer. So the right
number of replicas is computed at once rather than approached in steps (J32). Useful time is CPU time, and the time that
an operator waits for an answer from outside. The latter keeps a thread as busy, but needs no CPU. Pure arithmetic: no
memory, no decisions.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rayelastic.plan.exec_plan import ExecPlan, RegionPlan
from rayelastic.plan.hash_ring import MAX_REPLICAS, PARTITIONS
from rayelastic.plan.regions import Region, RegionKind

__all__ = ["RegionModel", "Shape", "affordable", "best_cuts", "demands", "shape_of", "shapes", "widest"]

Shape = tuple[tuple[str, ...], int]  # of a region: the operators that start its further pipelines; its replicas

CLOSE = 1.05  # cuts that are this close to the best ones stay as they are


@dataclass(frozen=True, slots=True)
class RegionModel:
    """A region, measured, per tuple that it takes.

    Args:
        region: what it is.
        times: of each operator, s of CPU time.
        overhead: s of a pipeline's thread outside operators.
        selectivity: tuples that it emits.
        skew: load of the busiest replica relative to the mean, where there are several: hot keys, or a slow node. Taken
            to stay as it is; if it doesn't, because one key is too hot, growing fails its trial.
        hot: share of the load that can't be divided if one key causes all of the skew. The busiest of n replicas has
            this share and an n-th of the rest, which bounds the number of replicas that are tried. With one replica,
            which has no skew, the share of the most frequent key in the tuples.
        key: that key, as text, if it has much of what can't be divided; empty: not known.
        efficiency: what it carried as a bottleneck, relative to what its useful time says; below 1, its threads wait.
        waits: of each operator, s that its thread sleeps inside it, for an answer from outside; empty: none.
        spread: `times` are those of one thread. All threads of a process use so many times more CPU in a pipeline; 1
            where no two are in it at once.
        passes: tuples that each operator takes for one of the region; empty: one each.
        partitions: of its keys.

    >>> model = RegionModel(Region("r1", RegionKind.DATA_PARALLEL, ("a", "b")), (3e-6, 1e-6), overhead=1e-6)
    >>> round(model.capacity(((), 1))), round(model.capacity((("b",), 2)))
    (200000, 500000)
    >>> hot = RegionModel(Region("r1", RegionKind.DATA_PARALLEL, ("a",)), (1e-6,), overhead=0.0, hot=0.5)
    >>> [round(hot.capacity(((), replicas))) for replicas in (1, 2, 16)]
    [1000000, 1333333, 1882353]
    >>> many = RegionModel(Region("r1", RegionKind.DATA_PARALLEL, ("a",)), (1e-6,), overhead=0.0)
    >>> [round(many.capacity(((), replicas)) / 1e6, 1) for replicas in (16, 100, 200, 250, 4096)]
    [16.0, 99.9, 195.0, 240.9, 4096.0]
    """

    region: Region
    times: tuple[float, ...]
    overhead: float
    selectivity: float = 1.0
    skew: float = 1.0
    hot: float = 0.0
    efficiency: float = 1.0
    waits: tuple[float, ...] = ()
    key: str = ""
    spread: float = 1.0
    passes: tuple[float, ...] = ()
    partitions: int = PARTITIONS

    @property
    def cpu_times(self) -> tuple[float, ...]:
        """CPU time of each operator, s, of whatever threads."""
        return tuple(self.spread * time for time in self.times)

    @property
    def useful(self) -> tuple[float, ...]:
        """Time of each operator that its thread can do nothing else in."""
        if not self.waits:
            return self.times
        return tuple(time + wait for time, wait in zip(self.times, self.waits, strict=True))

    @property
    def token_time(self) -> float:
        """Useful time under the Python token."""
        bound = set(self.region.token_bound)
        return sum(time for name, time in zip(self.region.operators, self.useful, strict=True) if name in bound)

    def cpu(self, shape: Shape) -> float:
        """Return the CPU time of all pipelines together, s."""
        return self.spread * (sum(self.times) + self.overhead * (len(shape[0]) + 1))

    def longest(self, cuts: Sequence[str]) -> float:
        """Return the time of the slowest pipeline, s."""
        longest, time = 0.0, self.overhead
        for name, own in zip(self.region.operators, self.useful, strict=True):
            if name in cuts:
                longest, time = max(longest, time), self.overhead
            time += own
        return max(longest, time)

    def capacity(self, shape: Shape) -> float:
        """Return the tuples/s that it could take in a shape."""
        cuts, replicas = shape
        longest = self.longest(cuts)
        if longest <= 0:
            return float("inf")
        even = self._even(replicas)
        if self.hot > 0 and (self.key or self.skew <= 1.0):  # it is known that no replica takes that from its owner
            return self.efficiency / (self.hot + (1.0 - self.hot) / even) / longest
        return self.efficiency * min(replicas / self.skew if replicas > 1 else 1.0, even) / longest

    def fewest(self, cuts: Sequence[str], capacity: float) -> int:
        """Return a number of replicas below which none can carry a rate, tuples/s, whatever their skew."""
        longest = self.longest(cuts)
        return max(1, math.floor(capacity * longest / self.efficiency)) if longest > 0 and self.efficiency > 0 else 1

    def _even(self, replicas: int) -> float:
        """How many times what the busiest replica has of the partitions there is: 200 replicas do as much as 195."""
        if self.region.kind is not RegionKind.DATA_PARALLEL or replicas <= MAX_REPLICAS:  # even to half a percent
            return replicas
        return self.partitions / math.ceil(self.partitions / replicas)


def shape_of(planned: RegionPlan) -> Shape:
    """Return the shape that a region has in a plan."""
    return planned.cuts, planned.replicas


def best_cuts(operators: Sequence[str], times: Sequence[float], pipelines: int) -> tuple[str, ...]:
    """Cut operators into pipelines so that the slowest is as fast as can be.

    Args:
        operators: names, in order.
        times: of each.
        pipelines: between 1 and their number.

    >>> best_cuts("abcd", [1, 1, 1, 3], 2)
    ('d',)
    """
    count = len(times)
    sums = [0.0]
    for time in times:
        sums.append(sums[-1] + time)
    best = [[float("inf")] * (count + 1) for _ in range(pipelines + 1)]
    at = [[0] * (count + 1) for _ in range(pipelines + 1)]
    best[0][0] = 0.0
    for p in range(1, pipelines + 1):
        for end in range(p, count + 1):
            for start in range(p - 1, end):
                slowest = max(best[p - 1][start], sums[end] - sums[start])
                if slowest < best[p][end]:
                    best[p][end], at[p][end] = slowest, start
    cuts, end = [], count
    for p in range(pipelines, 1, -1):
        end = at[p][end]
        cuts.append(operators[end])
    return tuple(reversed(cuts))


def shapes(model: RegionModel, now: Shape, capacity: float, most_replicas: int, *, cut: bool = True) -> Iterator[Shape]:
    """Give the shapes that carry a rate, the one with the fewest threads first, then the one that moves least keys.

    Args:
        model: the region.
        now: its shape.
        capacity: tuples/s to be carried.
        most_replicas: allowed; 1 for regions without keys.
        cut: whether there may be more and fewer pipelines.
    """
    found: list[tuple[int, bool, int, Shape]] = []
    operators = model.region.operators
    counts: Sequence[int] = range(1, len(operators) + 1)
    whole = bool(model.region.token_bound)  # threads of one process would only wait for its GIL
    if whole or not cut:
        counts = (len(now[0]) + 1,)
    fewest = len(operators) * most_replicas
    for pipelines in counts:
        if pipelines > fewest + 1:  # every pipeline is a thread
            break
        cuts = now[0] if len(now[0]) + 1 == pipelines else ()
        if pipelines > 1 and cut and not (cuts and whole):
            best = best_cuts(operators, model.useful, pipelines)
            if not cuts or model.longest(cuts) > CLOSE * model.longest(best):
                cuts = best
        replicas = _enough(model, cuts, capacity, most_replicas)
        if replicas <= most_replicas:
            threads = pipelines * replicas
            fewest = min(fewest, threads)
            found.append((threads, replicas != now[1], abs(pipelines - len(now[0]) - 1), (cuts, replicas)))
    for *_, shape in sorted(found):
        yield shape


def _enough(model: RegionModel, cuts: Sequence[str], capacity: float, most: int) -> int:
    """Return the fewest replicas that carry a rate; more than `most` if they don't. From two on, more carry more."""
    fewest = model.fewest(cuts, capacity)
    if fewest <= most and model.capacity((tuple(cuts), fewest)) >= capacity:
        return fewest
    wider = range(fewest + 1, most + 1)
    return fewest + 1 + bisect_left(wider, capacity, key=lambda replicas: model.capacity((tuple(cuts), replicas)))


def widest(model: RegionModel, now: Shape, most_replicas: int, *, cut: bool = True) -> float:
    """Return the tuples/s that a region can take at most, in whatever shape."""
    cuts = model.region.operators[1:] if cut and not model.region.token_bound else now[0]
    return max(model.capacity((tuple(cuts), n)) for n in (1, most_replicas))


def demands(plan: ExecPlan, models: Mapping[str, RegionModel], offered: Mapping[str, float]) -> dict[str, float]:
    """Return the tuples/s that each region has to take for the sources to make what they are offered.

    Args:
        plan: with the streams between the regions.
        models: of the regions; one that is missing passes on what it takes.
        offered: {source region: tuples/s}.
    """
    need: dict[str, float] = {}
    gives: dict[str, float] = {}
    for planned in plan.regions:
        name = planned.region.name
        need[name] = offered.get(name, 0.0) if planned.region.kind is RegionKind.SOURCE else 0.0
        need[name] += sum(gives[feeding] for feeding in plan.upstream(name))
        gives[name] = need[name] * (models[name].selectivity if name in models else 1.0)
    return need


def affordable(
    plan: ExecPlan, models: Mapping[str, RegionModel], offered: Mapping[str, float], most: Mapping[str, float]
) -> dict[str, float]:
    """Return how much of the offered rates can be carried with no region above its most: {source region: tuples/s}.

    Args:
        plan: with the streams between the regions.
        models: of the regions.
        offered: {source region: tuples/s}.
        most: {region: tuples/s that it can be made to take}.
    """
    carried = dict(offered)
    need = demands(plan, models, carried)
    above: dict[str, set[str]] = {}
    for planned in plan.regions:
        name = planned.region.name
        above[name] = {name} if name in offered else set()
        for feeding in plan.upstream(name):
            above[name] |= above[feeding]
        if need[name] > most.get(name, float("inf")):
            share = most[name] / need[name]
            for source in above[name]:
                carried[source] *= share
            need = demands(plan, models, carried)
    return carried
