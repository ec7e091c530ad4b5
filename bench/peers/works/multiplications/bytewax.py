"""10,000 multiplications in a map step of Bytewax."""

from collections.abc import Callable
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

TIMES = 10_000


def multiplied(x: float) -> float:
    for _ in range(TIMES):
        x *= 1.0000001
    return x


def prepare(path: str) -> Callable[[], list[float]]:
    numbers = [float(line) for line in Path(path).read_text().splitlines()[1:]]
    out: list[float] = []
    flow = Dataflow("multiplications")
    stream = op.input("numbers", flow, TestingSource(numbers, batch_size=1_000))
    op.output("out", op.map("multiplied", stream, multiplied), TestingSink(out))

    def run() -> list[float]:
        run_main(flow)
        return out

    return run


def result(raw: list[float]) -> dict[int, float]:
    return dict(enumerate(raw))
