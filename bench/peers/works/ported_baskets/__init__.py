"""Pairs in baskets: how often two of 60 things are bought together."""

from __future__ import annotations

import random
from pathlib import Path

from bench.peers.work import Work

ITEMS = 100_000


def write_input(path: Path, items: int) -> None:
    """Writes that many baskets, one a line."""
    dice = random.Random(1)
    with path.open("w") as file:
        for _ in range(items):
            file.write(",".join(f"thing {number}" for number in dice.sample(range(60), 4)) + "\n")


WORK = Work(
    name="ported_baskets",
    description="how often two of 60 things are bought together",
    items=ITEMS,
    item="basket",
    tuples=ITEMS,
    tuple_name="baskets",
    suffix=".txt",
    write_input=write_input,
)
