"""A chain of maps in Bytewax: 100 map steps over arrays of 1,000 rows: its fast form, arrays as items."""

from typing import Any

import bytewax.operators as op
import numpy as np
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource

MAPS = 100
ROWS = 1_000  # of an array

Columns = tuple[Any, Any]


def step(rows: Columns) -> Columns:
    return rows[0] + 3, rows[1] * 0.5 + 1.0


def declare(path: str, out: list[Any]) -> Dataflow:
    table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    a, b = table[:, 0].astype(np.int64), table[:, 1].copy()
    items = [(a[at : at + ROWS], b[at : at + ROWS]) for at in range(0, len(a), ROWS)]
    flow = Dataflow("map_chain")
    stream = op.input("rows", flow, TestingSource(items))
    for number in range(MAPS):
        stream = op.map(f"map{number}", stream, step)
    op.output("out", stream, TestingSink(out))
    return flow


def result(raw: list[Columns]) -> dict[int, float]:
    return {key: value for a, b in raw for key, value in zip(a.tolist(), b.tolist(), strict=True)}
