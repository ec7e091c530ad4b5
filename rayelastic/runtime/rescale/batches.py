"""The batches of partitions in which the keys of a change move, in their order. Knows plan and journal alone."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayelastic.plan.hash_ring import key_ranges
from rayelastic.runtime.values.status import RegionCounters

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.rescale.change_journal import OpenChange

__all__ = ["Batch", "batches_of", "has_given_all", "moving", "plan_pe"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Partitions of a region that go from one replica to another at once."""

    region: str
    source: int
    target: int
    partitions: tuple[int, ...]

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Of hashes, both ends included."""
        return tuple(key_ranges(self.partitions))

    def back(self) -> Batch:
        """Returns the batch that undoes it."""
        return Batch(self.region, self.target, self.source, self.partitions)


def batches_of(here: OpenChange) -> Iterator[Batch]:
    """Give the batches of a change in the order in which they move.

    Regions that shrink come first, upstream ones before those behind them, and a replica that stops sends nothing to
    new owners. The others come from the end: a replica that starts knows the new owners from its first tuple on.
    """
    parts = here.change.regions
    shrinking = [part for part in parts if part.stopped]
    for part in [*shrinking, *(part for part in reversed(parts) if not part.stopped)]:
        for moves in part.moved:
            for first in range(0, len(moves.partitions), here.batch):
                partitions = moves.partitions[first : first + here.batch]
                yield Batch(part.region, moves.source, moves.target, partitions)


def moving(here: OpenChange, counters: MutableMapping[str, RegionCounters]) -> Generator[Batch, None, None]:
    """Give the batches of a change; meanwhile the counters say what is yet to move, and what waits for it."""
    batches, plan = list(batches_of(here)), here.change.new
    try:
        for number, batch in enumerate(batches):
            left = sum(len(one.partitions) for one in batches[number:] if one.region == batch.region)
            waits = plan.region(batch.region).region.shares_state
            counted = counters.get(batch.region, RegionCounters())
            counters[batch.region] = counted.moving(left, len(batch.partitions) if waits else 0)
            yield batch
    finally:
        for region in {batch.region for batch in batches} & counters.keys():
            counters[region] = counters[region].moving(0, 0)


def has_given_all(here: OpenChange, pe: str) -> bool:
    """Tell whether an element that a change takes out has no keys any more, and won't get them back."""
    if here.undoing is not None or pe not in here.change.stopped_pes:
        return False
    left = itertools.islice(batches_of(here), here.moved, None)
    return all(plan_pe(here.change.old, batch.region, batch.source) != pe for batch in left)


def plan_pe(plan: ExecPlan, region: str, replica: int) -> str:
    """Return the element of a replica."""
    return plan.region(region).pipelines[0].pes[replica]
