"""Sessions of words: how many of each came, and for how long, until it didn't come for ten seconds.

After structured_sessionization.py of Apache Spark's examples. `python examples/ported/structured_sessions.py`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import rayelastic as rel

GAP = 10  # seconds


class Line(NamedTuple):
    """Of text, and when it came."""

    line: str
    at: int


class Word(NamedTuple):
    """One of a line."""

    word: str
    at: int


def words(t: Line) -> Iterator[Word]:
    """Return the words of a line."""
    for word in t.line.split():
        yield Word(word, t.at)


def build(rows: Sequence[Line]) -> rel.Topology:
    """Return the topology, for rows in any order within 10 s."""
    topology = rel.Topology("structured_sessions")
    came = topology.source(rel.rows(list(rows), schema=Line), name="lines").flat_map(words, name="words")
    sessions = came.event_time("at", name="time", lateness=10).key_by("word").session(gap=GAP)
    sessions.aggregate(name="sessions", count=rel.count()).sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Line("to be or not to be", 1), Line("be", 8), Line("to", 30)]))["out"]:
        print(one)
