"""As Bytewax's apriori.py writes it, over rows in memory in batches of 1,000."""

from itertools import combinations
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource


def declare(path: str, out: list[Any]) -> Dataflow:
    lines = Path(path).read_text().splitlines()
    flow = Dataflow("baskets")
    baskets = op.input("baskets", flow, TestingSource(lines, batch_size=1_000))
    pairs = op.flat_map("pairs", baskets, lambda line: combinations(sorted(line.split(",")), 2))
    made = op.count_final("counts", pairs, str)
    op.output("out", made, TestingSink(out))
    return flow


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(raw)))
