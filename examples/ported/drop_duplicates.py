"""Each event once: what comes again within ten seconds of event time of the first one is dropped.

After dropDuplicatesWithinWatermark of Spark's guide. `python examples/ported/drop_duplicates.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel

WITHIN = rel.Ttl(10, since="first")  # seconds


class Event(NamedTuple):
    """May come more than once."""

    id: str
    at: int


def build(rows: Sequence[Event]) -> rel.Topology:
    """Return the topology, for rows in order."""
    topology = rel.Topology("drop_duplicates")
    timed = topology.source(rel.rows(list(rows), schema=Event), name="events").event_time("at", name="time")
    timed.key_by("id").deduplicate(name="once", ttl=WITHIN).sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Event("a", 0), Event("b", 3), Event("a", 8), Event("a", 12), Event("b", 13)]))["out"]:
        print(one)
