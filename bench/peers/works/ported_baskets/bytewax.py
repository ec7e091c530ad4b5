"""As Bytewax's apriori.py writes it, over rows in memory in batches of 1,000."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main


def prepare(path: str) -> Callable[[], list[Any]]:
    lines = Path(path).read_text().splitlines()
    out: list[Any] = []
    flow = Dataflow("baskets")
    baskets = op.input("baskets", flow, TestingSource(lines, batch_size=1_000))
    pairs = op.flat_map("pairs", baskets, lambda line: combinations(sorted(line.split(",")), 2))
    made = op.count_final("counts", pairs, str)
    op.output("out", made, TestingSink(out))

    def run() -> list[Any]:
        run_main(flow)
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(raw)))
