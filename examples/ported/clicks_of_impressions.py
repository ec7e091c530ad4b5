"""Impressions of advertisements with the clicks that came within an hour; those without any, too.

After the left outer join of streams in Apache Spark's guide. `python examples/ported/clicks_of_impressions.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel

HOUR = 3600  # seconds


class Impression(NamedTuple):
    """An advertisement was shown."""

    ad: int
    at: int


class Click(NamedTuple):
    """And looked at."""

    ad: int
    clicked: int


def build(impressions: Sequence[Impression], clicks: Sequence[Click]) -> rel.Topology:
    """Return the topology, for rows in any order within 10 minutes."""
    topology = rel.Topology("clicks_of_impressions")
    shown = topology.source(rel.rows(list(impressions), schema=Impression), name="impressions")
    clicked = topology.source(rel.rows(list(clicks), schema=Click), name="clicks").event_time(
        "clicked", name="of_clicks", lateness=600
    )
    timed = shown.event_time("at", name="of_impressions", lateness=600).key_by("ad")
    timed.join(clicked.key_by("ad"), name="joined", within=(0, HOUR), how="left").sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Impression(1, 0), Impression(2, 60)], [Click(1, 1800), Click(2, 7200)]))["out"]:
        print(one)
