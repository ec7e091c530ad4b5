"""The batches of partitions in which a change migrates keys, in order. Knows only plan and journal."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayelastic.errors.invariants import invariant
from rayelastic.runtime.values.region_counters import RegionCounters

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.journal import OpenChange


@dataclass(frozen=True, slots=True)
class Batch:
    """Partitions of a region that migrate from one replica to another together."""

    region: str
    source: int
    target: int
    partitions: tuple[int, ...]

    def back(self) -> Batch:
        """Return the batch that undoes it."""
        return Batch(self.region, self.target, self.source, self.partitions)


def batches_of(here: OpenChange) -> Iterator[Batch]:
    """Yield the batches of a change in the order of their migration.

    Shrinking regions come first, upstream before downstream, and a replica that stops sends nothing to new owners. The
    others come from the end: a replica that starts knows the new owners from its first tuple on.
    """
    parts = here.change.regions
    shrinking = [part for part in parts if part.stopped]
    for part in [*shrinking, *(part for part in reversed(parts) if not part.stopped)]:
        for moves in part.moved:
            for first in range(0, len(moves.partitions), here.batch):
                partitions = moves.partitions[first : first + here.batch]
                invariant(0 < len(partitions) <= here.batch, "a batch has as many partitions as it may", partitions)
                yield Batch(part.region, moves.source, moves.target, partitions)


def held_along(batches: Sequence[Batch], most: int) -> list[tuple[int, ...]]:
    """Return for each batch its partitions and those of the next batches that are held along with it.

    All batches from one replica to several are held at once, up to as many partitions as a batch may have. So the
    tuples before them have to be processed only once.

    >>> batches = [Batch("r1", 0, 1, (4, 5)), Batch("r1", 0, 2, (6,)), Batch("r1", 0, 3, (7,)), Batch("r1", 1, 2, (8,))]
    >>> held_along(batches, 3)
    [(4, 5, 6), (6,), (7,), (8,)]
    """
    groups: list[list[Batch]] = []
    for batch in batches:
        group = groups[-1] if groups else []
        size = sum(len(held.partitions) for held in [*group, batch])
        if group and (group[0].region, group[0].source) == (batch.region, batch.source) and size <= most:
            group.append(batch)
        else:
            groups.append([batch])
    held_partitions = [
        tuple(partition for held in group[first:] for partition in held.partitions)
        for group in groups
        for first in range(len(group))
    ]
    invariant(len(held_partitions) == len(batches), "each batch holds partitions", len(batches))
    pairs = zip(held_partitions, batches, strict=True)
    invariant(all(set(batch.partitions) <= set(held) for held, batch in pairs), "a batch holds what it moves")
    return held_partitions


def moving(here: OpenChange, counters: MutableMapping[str, RegionCounters]) -> Generator[Batch, None, None]:
    """Yield the batches of a change, and update the counters of pending and held partitions meanwhile."""
    batches, plan = list(batches_of(here)), here.change.new
    held = held_along(batches, here.batch)
    try:
        for number, batch in enumerate(batches):
            left = sum(len(one.partitions) for one in batches[number:] if one.region == batch.region)
            waits = plan.region(batch.region).region.shares_state
            counted = counters.get(batch.region, RegionCounters())
            counters[batch.region] = counted.moving(left, len(held[number]) if waits else 0)
            yield batch
    finally:
        for region in {batch.region for batch in batches} & counters.keys():
            counters[region] = counters[region].moving(0, 0)


def has_moved_all_keys(here: OpenChange, pe: str) -> bool:
    """Return whether an element that a change removes has no keys any more, and won't get them back."""
    if here.undoing is not None or pe not in here.change.stopped_pes:
        return False
    left = itertools.islice(batches_of(here), here.moved, None)
    return all(plan_pe(here.change.old, batch.region, batch.source) != pe for batch in left)


def plan_pe(plan: ExecPlan, region: str, replica: int) -> str:
    """Return the element of a replica."""
    return plan.region(region).pipelines[0].pes[replica]
