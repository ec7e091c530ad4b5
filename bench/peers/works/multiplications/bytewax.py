"""10,000 multiplications in a map step of Bytewax, over arrays of 1,000 numbers: its fast form, an array an item."""

from typing import Any

import bytewax.operators as op
import numpy as np
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource

TIMES = 10_000
ROWS = 1_000  # of an array


def multiplied(numbers: Any) -> Any:
    out = numbers.copy()
    for _ in range(TIMES):
        out *= 1.0000001
    return out


def declare(path: str, out: list[Any]) -> Dataflow:
    numbers = np.loadtxt(path, skiprows=1, ndmin=1)
    arrays = [numbers[at : at + ROWS] for at in range(0, len(numbers), ROWS)]
    flow = Dataflow("multiplications")
    stream = op.input("numbers", flow, TestingSource(arrays))
    op.output("out", op.map("multiplied", stream, multiplied), TestingSink(out))
    return flow


def result(raw: list[Any]) -> dict[int, float]:
    return dict(enumerate(np.concatenate(raw).tolist()))
