"""As Bytewax's 1brc.py writes it, over rows in memory in batches of 1,000."""

from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource


def parse(line: str) -> tuple[str, float]:
    station, degrees = line.split(";")
    return station, float(degrees)


def add(state: tuple[float, float, int, float], degrees: float) -> tuple[float, float, int, float]:
    low, total, n, high = state
    return min(low, degrees), total + degrees, n + 1, max(high, degrees)


def declare(path: str, out: list[Any]) -> Dataflow:
    lines = Path(path).read_text().splitlines()
    flow = Dataflow("brc")
    source = op.input("lines", flow, TestingSource(lines, batch_size=1_000))
    parsed = op.map("parse", source, parse)
    made = op.fold_final("stations", parsed, lambda: (999.0, 0.0, 0, -999.0), add)
    op.output("out", made, TestingSink(out))
    return flow


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((station, low, round(total / n, 9), high) for station, (low, total, n, high) in raw)))
