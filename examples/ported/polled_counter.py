"""A source that asks for the next item now and then, and goes on after a stop where it was.

After SimplePollingSource of Bytewax's examples. `python examples/ported/polled_counter.py`
"""

from __future__ import annotations

from collections.abc import Sequence

import rayelastic as rel


class Counter:
    """Counts up to a number, one at a poll."""

    def __init__(self, most: int) -> None:
        self.most = most

    def partitions(self) -> Sequence[str]:
        """One."""
        return ["all"]

    def open(self, partition: str, position: int | None) -> Counting:  # noqa: ARG002
        """From a position on."""
        return Counting(position or 0, self.most)


class Counting:
    """What is polled."""

    def __init__(self, position: int, most: int) -> None:
        self.position = position
        self.most = most

    def poll(self) -> Sequence[int] | None:
        """Return the next one; None: there are no more."""
        if self.position == self.most:
            return None
        self.position += 1
        return [self.position - 1]


def build(most: int) -> rel.Topology:
    """Return the topology."""
    topology = rel.Topology("polled_counter")
    topology.source(rel.polled(Counter(most), schema=int), name="numbers").sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    print([t.value for t in rel.run(build(10))["out"]])
