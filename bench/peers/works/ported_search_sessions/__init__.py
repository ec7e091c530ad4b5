"""Searches: how many of the searches in each session of 200 users were clicked on."""

from __future__ import annotations

import random
from pathlib import Path

from bench.peers.work import Work

ITEMS = 50_000


def write_input(path: Path, items: int) -> None:
    """Writes that many actions, one a line."""
    dice = random.Random(1)
    with path.open("w") as file:
        for number in range(items):
            file.write(f"user{dice.randrange(200)} {number} {dice.randrange(2)}\n")


WORK = Work(
    name="ported_search_sessions",
    description="how many of the searches in each session of 200 users were clicked on",
    items=ITEMS,
    item="action",
    tuples=ITEMS,
    tuple_name="actions",
    suffix=".txt",
    write_input=write_input,
)
