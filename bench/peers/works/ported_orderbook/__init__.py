"""Order book: the best offers of each of 20 products, where they are far apart."""

from __future__ import annotations

import json
import random
from pathlib import Path

from bench.peers.work import Work

ITEMS = 50_000


def write_input(path: Path, items: int) -> None:
    """Writes that many messages, one a line."""
    dice = random.Random(1)
    with path.open("w") as file:
        for _ in range(items):
            side = dice.choice(("buy", "sell"))
            price = dice.randrange(9900, 10000) if side == "buy" else dice.randrange(10000, 10100)
            change = [side, str(price / 100), str(dice.choice((0, 1, 2)))]
            file.write(json.dumps({"product": str(dice.randrange(20)), "changes": [change]}) + "\n")


WORK = Work(
    name="ported_orderbook",
    description="the best offers of each of 20 products, where they are far apart",
    items=ITEMS,
    item="message",
    tuples=ITEMS,
    tuple_name="messages",
    suffix=".jsonl",
    write_input=write_input,
)
