"""A chain of maps in Bytewax: 100 map steps, batches of 1,000."""

from collections.abc import Callable
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

MAPS = 100


def step(row: tuple[int, float]) -> tuple[int, float]:
    return row[0] + 3, row[1] * 0.5 + 1.0


def prepare(path: str) -> Callable[[], list[tuple[int, float]]]:
    lines = [line.split(",") for line in Path(path).read_text().splitlines()[1:]]
    rows = [(int(a), float(b)) for a, b in lines]
    out: list[tuple[int, float]] = []
    flow = Dataflow("map_chain")
    stream = op.input("rows", flow, TestingSource(rows, batch_size=1_000))
    for number in range(MAPS):
        stream = op.map(f"map{number}", stream, step)
    op.output("out", stream, TestingSink(out))

    def run() -> list[tuple[int, float]]:
        run_main(flow)
        return out

    return run


def result(raw: list[tuple[int, float]]) -> dict[int, float]:
    return dict(raw)
