"""As Bytewax's anomaly_detector.py writes it, over rows in memory in batches of 1,000."""

from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource


def judge(last: list[float] | None, value: float) -> tuple[list[float], tuple[float, float, float, bool]]:
    last = last if last is not None else []
    last.insert(0, value)
    del last[10:]
    mean = sum(last) / len(last)
    spread = (sum((one - mean) ** 2 for one in last) / len(last)) ** 0.5
    return last, (value, mean, spread, abs(value - mean) > 2.0 * spread)


def declare(path: str, out: list[Any]) -> Dataflow:
    lines = Path(path).read_text().splitlines()
    flow = Dataflow("anomalies")
    rows = [(key, float(value)) for key, value in map(str.split, lines)]
    metrics = op.input("metrics", flow, TestingSource(rows, batch_size=1_000))
    made = op.stateful_map("judge", metrics, judge)
    op.output("out", made, TestingSink(out))
    return flow


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((key, value, is_far) for key, (value, mean, spread, is_far) in raw)))
