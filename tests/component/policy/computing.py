"""A topology that computes without end, with a given number of compiled operators in a row."""

from __future__ import annotations

from typing import NamedTuple

import rayelastic as rel


class Number(NamedTuple):
    value: int


def expensive(t: Number) -> int:
    x = t.value * 1.0
    for _ in range(2000):
        x = x * 1.0000001
    return int(x) % 1000003


def computing(operators: int) -> rel.Topology:
    topology = rel.Topology("numbers")
    stream = topology.source(rel.sequence(10**12), name="numbers")
    for index in range(operators):
        stream = stream.map(expensive, name=f"map{index}", schema=Number)
    stream.sink(rel.count(), name="count")
    return topology
