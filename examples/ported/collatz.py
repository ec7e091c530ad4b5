"""How many steps the Collatz sequence of each number has: a loop, round which tuples go until they are done.

After the feedback loops of Apache Flink's guide. `python examples/ported/collatz.py`
"""

from __future__ import annotations

from typing import NamedTuple

import rayelastic as rel


class Step(NamedTuple):
    """Where the sequence of a number is."""

    start: int
    at: int
    steps: int


def step(t: Step) -> Step:
    """Return the next step."""
    return Step(t.start, t.at // 2 if t.at % 2 == 0 else 3 * t.at + 1, t.steps + 1)


def build(numbers: int) -> rel.Topology:
    """Return the topology, for the numbers from 2 on."""
    topology = rel.Topology("collatz")
    numbered = topology.source(rel.sequence(numbers), name="numbers").map(
        lambda t: Step(t.value + 2, t.value + 2, 0), name="start"
    )
    again = topology.feedback(Step, name="again")
    parts = numbered.union(again).split(name="done", more=lambda t: t.at != 1)
    again.close(parts.more.map(step, name="step"))
    parts.rest.sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build(10))["out"]:
        print(one)
