"""Anomalies: measurements beside the last ten of their kind."""

from __future__ import annotations

import random
from pathlib import Path

from bench.peers.work import Work

ITEMS = 200_000


def write_input(path: Path, items: int) -> None:
    """Writes that many metrics, one a line."""
    dice = random.Random(1)
    with path.open("w") as file:
        for _ in range(items):
            file.write(f"{dice.randrange(100)} {dice.uniform(0, 10)}\n")


WORK = Work(
    name="ported_anomalies",
    description="measurements beside the last ten of their kind",
    items=ITEMS,
    item="metric",
    tuples=ITEMS,
    tuple_name="metrics",
    suffix=".txt",
    write_input=write_input,
)
