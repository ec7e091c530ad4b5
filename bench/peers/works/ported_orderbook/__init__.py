"""Order book: the best offers of each of 20 products, where they are far apart."""

from __future__ import annotations

import json
import random

from bench.peers.work import ported


def line(dice: random.Random, _: int) -> str:
    side = dice.choice(("buy", "sell"))
    price = dice.randrange(9900, 10000) if side == "buy" else dice.randrange(10000, 10100)
    change = [side, str(price / 100), str(dice.choice((0, 1, 2)))]
    return json.dumps({"product": str(dice.randrange(20)), "changes": [change]})


WORK = ported("orderbook", "the best offers of each of 20 products, where they are far apart", 50_000, "message", line)
