"""Objects of Python's through three functions in one process: from a source over four streams into a sink.

    python -m bench.micro.objects [megabytes=1] [objects=200] [small=40000] [rounds=5]

A bytearray of some megabytes, and a small dict. The sink counts and reads no object. The limit is as many pickles and
unpickles of the object as there are streams and functions, without records, queues or seals.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import rayelastic as rel
from bench.harness import compared, settings

FUNCTIONS = ("a", "b", "c")
QUIET = rel.JobConfig(threads=rel.Threads(model="manual"), elasticity="off")


class Box(NamedTuple):
    """Holds one."""

    number: int
    held: Any


def hand(t: Box) -> Box:
    return Box(t.number, t.held)


def ours(held: object, count: int) -> float:
    """Microseconds an object."""

    def boxes() -> Iterator[Box]:
        for number in range(count):
            yield Box(number, held)

    topology = rel.Topology("objects")
    stream = topology.source(rel.callable(boxes, Box), name="boxes")
    for name in FUNCTIONS:
        stream = stream.map(hand, name=name, lane="python")
    stream.sink(rel.count(), name="out")
    began = time.perf_counter()
    assert rel.run(topology, QUIET)["out"] == count
    return (time.perf_counter() - began) / count * 1e6


def limit(held: object, count: int) -> float:
    """Return the same of the pickles alone."""
    began = time.perf_counter()
    for _ in range(count):
        given = pickle.dumps(held, pickle.HIGHEST_PROTOCOL)
        for _ in FUNCTIONS:
            given = pickle.dumps(pickle.loads(given), pickle.HIGHEST_PROTOCOL)
    return (time.perf_counter() - began) / count * 1e6


def main() -> None:
    given = settings(megabytes=1.0, objects=200, small=40_000, rounds=5)
    large = bytearray(int(given["megabytes"] * (1 << 20)))
    ours({}, 1)
    for key, what, held, count in (
        ("objects", f"a bytearray of {given['megabytes']:g} MB through three functions", large, given["objects"]),
        ("objects.small", "a small dict through three functions", {"a": 1, "b": [1, 2]}, given["small"]),
    ):
        sides = (partial(ours, held, count), partial(limit, held, count))
        compared(key, what, "us", given["rounds"], *sides, "pickles alone").print()


if __name__ == "__main__":
    main()
