"""One billion rows, fewer: least, mean and greatest temperature of each of 400 stations."""

from __future__ import annotations

import random
from pathlib import Path

from bench.peers.work import Work

ITEMS = 1_000_000


def write_input(path: Path, items: int) -> None:
    """Writes that many lines, one a line."""
    dice = random.Random(1)
    with path.open("w") as file:
        for _ in range(items):
            file.write(f"station {dice.randrange(400)};{dice.randrange(-300, 400) / 10}\n")


WORK = Work(
    name="ported_brc",
    description="least, mean and greatest temperature of each of 400 stations",
    items=ITEMS,
    item="line",
    tuples=ITEMS,
    tuple_name="lines",
    suffix=".txt",
    write_input=write_input,
)
