"""Sessions whose gap each tuple says itself: a session is over when none of its tuples reaches any further.

After session_with_dynamic_gap_window.py of Apache Flink's examples. `python examples/ported/dynamic_sessions.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import rayelastic as rel


class Event(NamedTuple):
    """Keeps its session open for `gap` seconds."""

    user: str
    at: int
    gap: int


class Session(NamedTuple):
    """Tuples of a user that reach one another."""

    user: str
    start: int
    end: int
    count: int


class Sessions:
    """The session of a user that is open."""

    def on_tuple(self, t: Event, state: dict[str, Any], out: rel.Out) -> None:
        """Goes on with it, or begins one."""
        state["start"] = state.get("start", t.at)
        state["count"] = state.get("count", 0) + 1
        state["end"] = max(state.get("end", 0), t.at + t.gap)
        out.timer(state["end"])

    def on_time(self, time: int, state: dict[str, Any], out: rel.Out) -> None:
        """Ends it, if it isn't open for longer by now."""
        if time == state["end"]:
            out.give(Session(*out.key, state["start"], time, state["count"]))
            out.forget()


def build(rows: Sequence[Event]) -> rel.Topology:
    """The topology, for rows in any order within 10 s."""
    topology = rel.Topology("dynamic_sessions")
    timed = topology.source("events", rel.rows(list(rows), schema=Event)).event_time("time", "at", lateness=10)
    timed.key_by("user").process("sessions", Sessions, schema=Session).sink("out", rel.list())
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Event("a", 1, 5), Event("a", 3, 1), Event("a", 6, 2), Event("a", 9, 3)]))["out"]:
        print(one)
