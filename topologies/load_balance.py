"""ElasticLoadBalance's performance tests: a source, 32 workers behind it, a counting sink (C001-1, C001-2).

A field of each tuple sets its cost. Simple: all cost the same. Bursty: cheap and expensive ones alternate. Bursty cost:
cheap, then expensive, then cheap again. Bursty rate: pauses without tuples.

    rayelastic run rayelastic.topologies.load_balance --load bursty_cost
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import rayelastic as rel
from rayelastic.topologies.multiplications import FACTOR, joined, report

__all__ = ["build", "report"]

PORTS = 32
EXPENSIVE, CHEAP = 10_000, 1  # multiplications for a tuple
LOADS = ("simple", "bursty", "bursty_cost", "bursty_rate")


class Task(NamedTuple):
    """A tuple that says what it costs."""

    number: int
    flops: int
    value: float


def work(t: Task) -> Task:
    """Multiply as often as the tuple says."""
    value = t.value
    for _ in range(t.flops):
        value = value * FACTOR
    return Task(t.number, t.flops, value)


def build(
    load: str = "simple",
    flops: int = EXPENSIVE,
    tuples: int = 1_000_000,
    ports: int = PORTS,
    burst: int = 1000,
    pause: float = 1.0,
) -> rel.Topology:
    """Declare the topology.

    Args:
        load: 'simple', 'bursty', 'bursty_cost' or 'bursty_rate'.
        flops: multiplications of an expensive tuple.
        tuples: that the source makes.
        ports: workers.
        burst: tuples of a burst, where they come in bursts.
        pause: seconds between bursts, where nothing comes.
    """
    if load not in LOADS:
        raise rel.errors.ConfigError(f"no load {load!r}", hint=f"Choose one of {', '.join(LOADS)}")
    topology = rel.Topology("load_balance")
    if load == "bursty_rate":
        make = functools.partial(_in_bursts, tuples, flops, burst, pause)
        tasks = topology.source(rel.callable(make, Task), name="source")
    else:
        dear = _dear(load, tuples, burst)
        numbers = topology.source(rel.sequence(tuples), name="source")
        tasks = numbers.map(lambda t: Task(t.value, flops if dear(t.value) else CHEAP, 1.0), name="start")
    parts = tasks.split(ports, name="balance")
    joined([part.map(work, name=f"work{number}") for number, part in enumerate(parts)]).sink(rel.count(), name="out")
    return topology


def _dear(load: str, tuples: int, burst: int) -> Any:
    """Return the function from a number to whether its tuple is expensive."""
    if load == "simple":
        return lambda number: number >= 0
    if load == "bursty":
        return lambda number: number // burst % 2 == 1
    return lambda number: tuples <= 3 * number < 2 * tuples  # the middle third


def _in_bursts(tuples: int, flops: int, burst: int, pause: float) -> Iterator[Task]:
    for number in range(tuples):
        if number and number % burst == 0:
            time.sleep(pause)
        yield Task(number, flops, 1.0)
