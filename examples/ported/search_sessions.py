"""Click-through rate of each session of searches: clicks by searches, of what a user does without a pause of 30 s.

After search_session.py of Bytewax's examples. `python examples/ported/search_sessions.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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


def counted(rate: Rate, t: Action) -> Rate:
    """What it is with an action more."""
    searches, clicks = rate.searches + (not t.is_click), rate.clicks + t.is_click
    return Rate(searches, clicks, clicks / searches if searches else 0.0)


def build(rows: Sequence[Action]) -> rel.Topology:
    """The topology, for rows in any order within 10 s."""
    topology = rel.Topology("search_sessions")
    timed = topology.source("actions", rel.rows(list(rows), schema=Action)).event_time("time", "at", lateness=10)
    timed.key_by("user").session(gap=PAUSE).fold("rates", counted, Rate()).sink("out", rel.list())
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Action("a", 1, False), Action("a", 9, True), Action("a", 20, False)]))["out"]:
        print(one)
