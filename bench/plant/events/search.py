"""The best static configuration of a plant by events: families of placements, then small steps from the best.

What accuracy is measured against. First many placements at a few thread counts each; then the best few with one queue
more or fewer, one moved, one thread more or fewer, as long as that helps; those that remain are measured longer, beside
what is to be compared with them. Must not know a controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bench.plant.best_static import placements
from bench.plant.events.plant import Configuration, EventPlant
from rayelastic.plan.settings.threads import ThreadingModel

FINALISTS = 6
STARTS = 3  # from which small steps are taken
ROUNDS = 6  # of small steps
LONGER = 4.0  # that finalists are measured
MOVES = 12  # queues that are moved, at most, in each round


@dataclass(frozen=True, slots=True)
class Compared:
    """A configuration beside the best one.

    Args:
        share: its rate by that of the best, at most 1.
        best: the best configuration that was found.
        rate: tuples/s over all operators of the best.
        looked: configurations that were looked at.
    """

    share: float
    best: Configuration
    rate: float
    looked: int


def compared_with_best(plant: EventPlant, found: Configuration) -> Compared:
    """Return how near a configuration is to the best of a search, which may find it too."""
    seen: dict[Configuration, float] = {}

    def look(configuration: Configuration) -> float:
        if configuration not in seen:
            seen[configuration] = plant.played(configuration).rate
        return seen[configuration]

    for configuration in _family(plant):
        look(configuration)
    look(found)
    starts = sorted(seen, key=lambda one: -seen[one])[:STARTS]
    for start in starts:
        best = start
        for _ in range(ROUNDS):
            nearby = max(_near(plant, best), key=look)
            if look(nearby) <= 1.002 * look(best):
                break
            best = nearby
    finalists = [found, *sorted(seen, key=lambda one: -seen[one])[:FINALISTS]]
    longer = {one: plant.played(one, LONGER, seed=1).rate for one in finalists}
    best = max(finalists, key=longer.__getitem__)
    return Compared(longer[found] / longer[best], best, longer[best], len(seen))


def _family(plant: EventPlant) -> Iterator[Configuration]:
    cores = plant.settings.cores
    for models in placements(plant.graph):
        queued = frozenset(number for number, model in enumerate(models) if model is not ThreadingModel.MANUAL)
        for threads in _counts(cores):
            if threads <= max(1, len(queued)):
                yield Configuration(threads, queued)


def _counts(cores: int) -> Iterable[int]:
    """Return thread counts that are looked at first: all of few, then steps of two thirds."""
    counts = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    return sorted({min(count, cores) for count in counts})


def _near(plant: EventPlant, at: Configuration) -> Iterator[Configuration]:
    """Yield what differs by one step."""
    cores, queued = plant.settings.cores, at.queued
    for threads in {at.threads - 1, at.threads + 1, at.threads - at.threads // 6, at.threads + at.threads // 6}:
        if 1 <= threads <= cores:
            yield Configuration(threads, queued)
    work = plant.played(at).work
    free = sorted((n for n in plant.movable if n not in queued), key=lambda number: -work[number])[:MOVES]
    for number in free:
        yield Configuration(at.threads, queued | {number})
        if at.threads < cores:
            yield Configuration(at.threads + 1, queued | {number})
    for number in sorted(queued)[:MOVES]:
        yield Configuration(at.threads, queued - {number})
        for other in (number - 1, number + 1):
            if other in plant.movable and other not in queued:
                yield Configuration(at.threads, queued - {number} | {other})
