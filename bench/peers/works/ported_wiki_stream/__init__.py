"""Edits: how many each of 50 servers has in windows of two seconds."""

from __future__ import annotations

import json
import random
from pathlib import Path

from bench.peers.work import Work

ITEMS = 50_000


def write_input(path: Path, items: int) -> None:
    """Writes that many edits, one a line."""
    dice = random.Random(1)
    with path.open("w") as file:
        for number in range(items):
            file.write(
                json.dumps({"server_name": f"{dice.randrange(50)}.org", "timestamp": number / 100 + 0.001}) + "\n"
            )


WORK = Work(
    name="ported_wiki_stream",
    description="how many each of 50 servers has in windows of two seconds",
    items=ITEMS,
    item="edit",
    tuples=ITEMS,
    tuple_name="edits",
    suffix=".txt",
    write_input=write_input,
)
