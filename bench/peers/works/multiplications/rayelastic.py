"""10,000 multiplications in a user's function of rayelastic, compiled lane."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.csv

import rayelastic as rel

TIMES = 10_000


class Number(NamedTuple):
    x: float


def multiplied(t: Number) -> Number:
    x = t.x
    for _ in range(TIMES):
        x *= 1.0000001
    return Number(x)


def job(path: str, lane: Literal["compiled", "python"]) -> Callable[[], pa.Table]:
    table = pa.csv.read_csv(path)
    topology = rel.Topology("multiplications")
    numbers = topology.source(rel.arrow(table, Number), name="numbers")
    numbers.map(multiplied, name="multiplied", schema=Number, lane=lane).sink(rel.arrow(), name="out")
    return lambda: rel.run(topology)["out"]


def prepare(path: str) -> Callable[[], pa.Table]:
    return job(path, "compiled")


def result(raw: pa.Table) -> dict[int, float]:
    return dict(enumerate(raw["x"].to_pylist()))
