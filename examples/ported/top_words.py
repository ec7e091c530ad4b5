"""The three most frequent words of each window of 10 s, given once, when the window is complete.

After the top-N programs of Apache Flink's and Spark's guides. `python examples/ported/top_words.py`
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel

LENGTH = 10  # seconds
BEST = 3


class Word(NamedTuple):
    """A word, and when it was said."""

    word: str
    at: int


class Placed(NamedTuple):
    """A word in its window."""

    start: int
    word: str
    at: int


class Top(NamedTuple):
    """One of the most frequent words of a window."""

    start: int
    place: int
    word: str
    times: int


class TopWords:
    """Counts the words of a window."""

    def on_tuple(self, t: Placed, state: Counter[str], out: rel.Out) -> None:
        """Count one."""
        state[t.word] += 1
        out.timer(t.start + LENGTH - 1)

    def on_time(self, _: int, state: Counter[str], out: rel.Out) -> None:
        """Return the window is complete."""
        best = heapq.nsmallest(BEST, state.items(), key=lambda one: (-one[1], one[0]))
        for place, (word, times) in enumerate(best, start=1):
            out.give(Top(out.key[0], place, word, times))
        out.forget()


def place(t: Word) -> Placed:
    """Put a word into its window."""
    return Placed(t.at - t.at % LENGTH, t.word, t.at)


def build(rows: Sequence[Word]) -> rel.Topology:
    """Return the topology, for rows in any order within 10 s."""
    topology = rel.Topology("top_words")
    timed = topology.source(rel.rows(list(rows), schema=Word), name="words").event_time("at", name="time", lateness=10)
    placed = timed.map(place, name="placed").key_by("start")
    placed.process(TopWords, name="top", schema=Top, state=Counter).sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    said = "to be or not to be that is the question to be sure"
    for one in rel.run(build([Word(word, second) for second, word in enumerate(said.split())]))["out"]:
        print(one)
