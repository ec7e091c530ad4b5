"""Sessions whose gap each tuple says itself: a session is over when none of its tuples reaches any further.

After session_with_dynamic_gap_window.py of Apache Flink's examples. `python examples/ported/dynamic_sessions.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel


class Event(NamedTuple):
    """Keeps its session open for `gap` seconds."""

    user: str
    at: int
    gap: int


def build(rows: Sequence[Event]) -> rel.Topology:
    """Return the topology, for rows in any order within 10 s."""
    topology = rel.Topology("dynamic_sessions")
    timed = topology.source(rel.rows(list(rows), schema=Event), name="events").event_time(
        "at", name="time", lateness=10
    )
    sessions = timed.key_by("user").session(gap=lambda t: t.gap)
    sessions.fold(lambda count, _: count + 1, 0, name="sessions").sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Event("a", 1, 5), Event("a", 3, 1), Event("a", 6, 2), Event("a", 9, 3)]))["out"]:
        print(one)
