"""What the papers' benchmark graphs are made of: operators that multiply, sources that number, and how they are joined.

An operator does so many dependent floating-point multiplications for each tuple (Middleware'19 4.1: FLOPs), and passes
number and payload on. Whoever counts the numbers at the sink sees what was lost or doubled. Knows no shape.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import rayelastic as rel

FACTOR = 1.0000001  # of each multiplication: values stay far from the ends of what a float holds
HEAVY, MEDIUM, LIGHT = 10_000, 100, 1  # FLOPs of skewed costs (Middleware'19 4.1)
HEAVY_SHARE, MEDIUM_SHARE = 0.1, 0.3


class Work(NamedTuple):
    """A tuple of the benchmarks."""

    number: int
    value: float
    payload: bytes


def multiply(flops: int) -> Callable[[Any], Work]:
    """Return the function that multiplies so often."""

    def multiplied(t: Any) -> Work:
        value = t.value
        for _ in range(flops):
            value = value * FACTOR
        return Work(t.number, value, t.payload)

    return multiplied


def numbered(topology: rel.Topology, tuples: int, payload: int) -> rel.Stream:
    """Return a source of tuples with numbers from 0, value 1, and a payload of so many bytes, 1 or more."""
    numbers = topology.source(rel.sequence(tuples, payload_bytes=max(1, payload)), name="source")
    return numbers.map(lambda t: Work(t.value, 1.0, t.payload), name="start")


def costs_of(count: int, flops: int, skewed: bool, seed: int = 0) -> list[int]:
    """FLOPs of each operator: all alike, or 10 % heavy, 30 % medium and the rest light, placed at random."""
    if not skewed:
        return [flops] * count
    heavy, medium = round(HEAVY_SHARE * count), round(MEDIUM_SHARE * count)
    costs = [HEAVY] * heavy + [MEDIUM] * medium + [LIGHT] * (count - heavy - medium)
    random.Random(seed).shuffle(costs)
    return costs


def joined(streams: Sequence[rel.Stream]) -> rel.Stream:
    """Return all of them as one."""
    return streams[0].union(*streams[1:]) if len(streams) > 1 else streams[0]


def declare(
    name: str, feeding: Sequence[Sequence[int]], costs: Sequence[int], tuples: int, payload: int
) -> rel.Topology:
    """Return the topology of a shape: tuples are dealt out in turn where several operators take an operator's output.

    Args:
        name: of the topology.
        feeding: for each operator behind the source (which has number 0) those that feed it; the last is the sink.
        costs: FLOPs of each operator but source and sink.
        tuples: that the source makes.
        payload: bytes of each besides its number.
    """
    topology = rel.Topology(name)
    takers = [sum(number in tails for tails in feeding) for number in range(len(feeding))]
    ways: list[list[rel.Stream]] = []

    def made(stream: rel.Stream) -> None:
        wanted = takers[len(ways)]
        ways.append([*stream.split(wanted, name=f"deal{len(ways)}")] if wanted > 1 else [stream])

    made(numbered(topology, tuples, payload))
    for number, tails in enumerate(feeding, start=1):
        stream = joined([ways[tail].pop(0) for tail in tails])
        if number == len(feeding):
            stream.sink(rel.count(), name="out")
        else:
            made(stream.map(multiply(costs[number - 1]), name=f"op{number}"))
    return topology


def report(result: rel.JobResult) -> str:
    """Tuples at the sink, and how many a second."""
    tuples = result["out"]
    return f"{tuples:,} tuples in {result.seconds:.2f} s: {tuples / result.seconds:,.0f} a second"
