"""The best static configuration of a plant, by search over thread counts and placements of queues.

What accuracy is measured against. All 2**n placements only for small graphs; else two families that hold the good ones:
segments bounded in their work for many bounds, and the N dearest operators for many N; each as it is, and with and
without a queue at every operator that several feed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.plant.graph import PlantGraph
from bench.plant.plant import Plant
from bench.plant.segments import Models
from rayelastic.plan.settings.threads import ThreadingModel

EXHAUSTIVE = 8  # operators up to which all placements are tried
BOUNDS = 24  # of the work of a segment, between the dearest operator and all work
FINE = 16  # thread counts up to which each is tried; above, steps of an eighth


@dataclass(frozen=True, slots=True)
class StaticBest:
    """A configuration and the tuples/s of the sources that it gives."""

    threads: int
    models: Models
    rate: float

    @property
    def queues(self) -> int:
        """Operators with a queue."""
        return sum(1 for model in self.models if model is not ThreadingModel.MANUAL)


def best_static(plant: Plant) -> StaticBest:
    """Return the best configuration for the present load, without noise; of equals the one with the fewest threads.

    >>> from bench.plant.constants import ENGINE, LAPTOP
    >>> from bench.plant.graph import pipeline
    >>> best = best_static(Plant(pipeline([1000.0] * 4), LAPTOP, ENGINE))
    >>> best.threads, best.queues
    (2, 3)
    """
    best: StaticBest | None = None
    counts = _thread_counts(plant.settings.minimum_threads, plant.maximum_threads)
    for models in placements(plant.graph):
        queues = sum(model is not ThreadingModel.MANUAL for model in models)
        enough = next((at for at, threads in enumerate(counts) if threads >= queues), len(counts))
        for threads in counts[: enough + 1]:  # a thread without a queue of its own finds no work
            rate = plant.steady_rate(threads, models)
            if best is None or rate > best.rate * (1 + 1e-6):
                best = StaticBest(threads, models, rate)
    assert best is not None
    return best


def fewest_threads(plant: Plant, rate: float) -> int:
    """Return the fewest threads that some placement gives so many tuples/s with; the most there are, if none does.

    >>> from bench.plant.constants import ENGINE, XEON
    >>> from bench.plant.graph import pipeline
    >>> plant = Plant(pipeline([1000.0] * 4), XEON, ENGINE)
    >>> fewest_threads(plant, 0.95 * best_static(plant).rate)
    3
    """
    counts = _thread_counts(plant.settings.minimum_threads, plant.maximum_threads)
    for models in placements(plant.graph):
        counts = counts[: next((at + 1 for at, n in enumerate(counts) if plant.steady_rate(n, models) >= rate), None)]
    return counts[-1]


def placements(graph: PlantGraph) -> Iterator[Models]:
    """Yield placements worth a try, each once, from no queues on."""
    seen: set[frozenset[int]] = set()
    for queued in _queued_sets(graph):
        if queued not in seen:
            seen.add(queued)
            yield tuple(
                ThreadingModel.DYNAMIC if number in queued else ThreadingModel.MANUAL
                for number in range(len(graph.operators))
            )


def _queued_sets(graph: PlantGraph) -> Iterator[frozenset[int]]:
    ports = [number for number, operator in enumerate(graph.operators) if not operator.source]
    joins = frozenset(number for number, streams in enumerate(graph.incoming) if len(streams) > 1)
    yield frozenset()
    if len(ports) <= EXHAUSTIVE:
        for size in range(1, len(ports) + 1):
            yield from map(frozenset, itertools.combinations(ports, size))
        return
    for queued in _families(graph, ports):
        yield queued
        if joins:
            yield queued - joins
            yield queued | joins


def _families(graph: PlantGraph, ports: Sequence[int]) -> Iterator[frozenset[int]]:
    yield frozenset(ports)
    work = graph.rates * graph.costs
    total, dearest = float(work.sum()), float(work.max())
    if dearest > 0:
        for bound in np.geomspace(dearest, max(total, 1.001 * dearest), BOUNDS):
            yield _bounded(graph, float(bound))
    by_cost = sorted(ports, key=lambda number: -work[number])
    count = 1
    while count < len(ports):
        yield frozenset(by_cost[:count])
        count = max(count + 1, int(1.25 * count))


def _bounded(graph: PlantGraph, bound: float) -> frozenset[int]:
    """Return queues such that no segment has more work than the bound, where an operator allows it."""
    load: dict[int, float] = {}
    heads: list[frozenset[int]] = []
    queued = set()
    for number, operator in enumerate(graph.operators):
        work = float(graph.rates[number]) * operator.cost
        by = frozenset().union(*(heads[stream.tail] for stream in graph.incoming[number]))
        if operator.source or any(load[head] + work / len(by) > bound for head in by):
            by = frozenset((number,))
            load[number] = 0.0
            if not operator.source:
                queued.add(number)
        for head in by:
            load[head] += work / len(by)
        heads.append(by)
    return frozenset(queued)


def _thread_counts(fewest: int, most: int) -> list[int]:
    counts = list(range(fewest, min(FINE, most) + 1))
    while counts and counts[-1] < most:
        counts.append(min(most, counts[-1] + counts[-1] // 8))
    return counts or [most]
