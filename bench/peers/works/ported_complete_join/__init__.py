"""Complete join: names, addresses and numbers of users, when all three are there."""

from __future__ import annotations

import random
from pathlib import Path

from bench.peers.work import Work

ITEMS = 50_000


def write_input(path: Path, items: int) -> None:
    """Writes that many users, one a line."""
    dice = random.Random(1)
    with path.open("w") as file:
        for user in range(items):
            file.write(f"{user} name of {user};{user}@x.org;{dice.randrange(1000):03}\n")


WORK = Work(
    name="ported_complete_join",
    description="names, addresses and numbers of users, when all three are there",
    items=ITEMS,
    item="user",
    tuples=ITEMS,
    tuple_name="users",
    suffix=".txt",
    write_input=write_input,
)
