"""Counts the tuples of each key, and emits the count when none has come for 60 s of event time.

After CountWithTimeoutFunction of Apache Flink's guide, and its example event_time_timer.py.
`python examples/ported/count_with_timeout.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel

SILENCE = 60  # seconds


class Seen(NamedTuple):
    """Something of a key has been seen."""

    key: str
    at: int


class Counted(NamedTuple):
    """So many came until nothing did."""

    key: str
    times: int
    until: int


@rel.state
class State:
    """Of a key."""

    n: int = 0
    last: int = 0


class CountWithTimeout:
    """Waits anew behind each tuple."""

    def on_tuple(self, t: Seen, state: State, out: rel.Out) -> None:
        """Count."""
        state.n += 1
        state.last = t.at
        out.after(SILENCE)

    def on_time(self, time: int, state: State, out: rel.Out) -> None:
        """Tells the count if nothing has come since."""
        if time == state.last + SILENCE:
            out.give(Counted(out.key[0], state.n, time))


def build(rows: Sequence[Seen]) -> rel.Topology:
    """Return the topology, for rows in any order within 10 s."""
    topology = rel.Topology("count_with_timeout")
    timed = topology.source(rel.rows(list(rows), schema=Seen), name="seen").event_time("at", name="time", lateness=10)
    counted = timed.key_by("key").process(CountWithTimeout, name="counted", schema=Counted, state=State)
    counted.sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Seen("a", 1), Seen("b", 9), Seen("a", 5), Seen("a", 100), Seen("b", 50)]))["out"]:
        print(one)
