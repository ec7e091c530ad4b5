"""Edits of each server in windows of two seconds, and the most there were in a window so far.

After wikistream.py of Bytewax's examples. `python examples/ported/wiki_stream.py`
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import rayelastic as rel


class Event(NamedTuple):
    """An edit, as text."""

    json: str


class Edit(NamedTuple):
    """What counts of it."""

    server: str
    at: float


@rel.state
class Most:
    """The largest count of a server so far."""

    n: int = 0


def parse(t: Event) -> Edit:
    """Take an event apart."""
    event = json.loads(t.json)
    return Edit(event["server_name"], event["timestamp"])


def most(t: Any, s: Most) -> tuple[str, float, int, int]:
    """Remembers the largest count."""
    s.n = max(s.n, t.n)
    return t.server, t.start, t.n, s.n


def build(rows: Sequence[Event]) -> rel.Topology:
    """Return the topology, for edits in any order within 10 s."""
    topology = rel.Topology("wiki_stream")
    edits = topology.source(rel.rows(list(rows), schema=Event), name="events").map(parse, name="parse")
    timed = edits.event_time("at", name="time", lateness=10).key_by("server")
    counts = timed.window(seconds=2).aggregate(name="counts", n=rel.count()).key_by("server")
    schema = {"server": str, "start": float, "n": int, "most": int}
    counts.map(most, name="most", state=Most, schema=schema).sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    times = [("a.org", 0.5), ("a.org", 1.5), ("b.org", 1.7), ("a.org", 2.5)]
    events = [Event(json.dumps({"server_name": server, "timestamp": at})) for server, at in times]
    for one in rel.run(build(events))["out"]:
        print(one)
