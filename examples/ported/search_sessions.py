"""Click-through rate of each session of searches: clicks by searches, of what a user does without a pause of 30 s.

After search_session.py of Bytewax's examples. `python examples/ported/search_sessions.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import rayelastic as rel

PAUSE = 30  # seconds


class Action(NamedTuple):
    """A search, or a click on one of its results."""

    user: str
    at: int
    is_click: bool


class Rate(NamedTuple):
    """Of a session."""

    searches: int = 0
    clicks: int = 0
    rate: float = 0.0


class Clicks:
    """Counts, as an aggregate of our own."""

    init = Rate

    def add(self, t: Action, state: Any) -> None:
        """Count an action."""
        state.clicks += t.is_click
        state.searches += not t.is_click

    def merge(self, other: Any, state: Any) -> None:
        """Two sessions are one."""
        state.clicks += other.clicks
        state.searches += other.searches

    def result(self, state: Any) -> Rate:
        """Return the rate of a session."""
        return Rate(state.searches, state.clicks, state.clicks / state.searches if state.searches else 0.0)


def build(rows: Sequence[Action]) -> rel.Topology:
    """Return the topology, for rows in any order within 10 s."""
    topology = rel.Topology("search_sessions")
    timed = topology.source(rel.rows(list(rows), schema=Action), name="actions").event_time(
        "at", name="time", lateness=10
    )
    timed.key_by("user").session(gap=PAUSE).combine(Clicks, name="rates").sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Action("a", 1, False), Action("a", 9, True), Action("a", 20, False)]))["out"]:
        print(one)
