"""A chain of maps in rayelastic: 100 operators, compiled lane."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

import rayelastic as rel

LANE: Any = os.environ["LANE"]  # compiled or python

MAPS = 100


class Row(NamedTuple):
    a: int
    b: float


def step(t: Row) -> tuple[int, float]:
    return t.a + 3, t.b * 0.5 + 1.0


def prepare(path: str) -> Callable[[], pa.Table]:
    table = pa.csv.read_csv(path)
    topology = rel.Topology("map_chain")
    stream = topology.source(rel.arrow(table, Row), name="rows")
    for number in range(MAPS):
        stream = stream.map(step, name=f"map{number}", schema=Row, lane=LANE)
    stream.sink(rel.arrow(), name="out")
    return lambda: rel.run(topology)["out"]


def result(raw: pa.Table) -> dict[int, float]:
    return dict(zip(raw["a"].to_pylist(), raw["b"].to_pylist(), strict=True))
