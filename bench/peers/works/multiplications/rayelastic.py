"""10,000 multiplications in a user's function of rayelastic, compiled lane."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

import rayelastic as rel

LANE: Any = os.environ["LANE"]  # compiled or python

TIMES = 10_000


class Number(NamedTuple):
    x: float


def multiplied(t: Number) -> Number:
    x = t.x
    for _ in range(TIMES):
        x *= 1.0000001
    return Number(x)


def prepare(path: str) -> Callable[[], pa.Table]:
    table = pa.csv.read_csv(path)
    topology = rel.Topology("multiplications")
    numbers = topology.source(rel.arrow(table, Number), name="numbers")
    numbers.map(multiplied, name="multiplied", schema=Number, lane=LANE).sink(rel.arrow(), name="out")
    return lambda: rel.run(topology)["out"]


def result(raw: pa.Table) -> dict[int, float]:
    return dict(enumerate(raw["x"].to_pylist()))
