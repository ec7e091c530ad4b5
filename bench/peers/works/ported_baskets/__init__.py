"""Pairs in baskets: how often two of 60 things are bought together."""

from __future__ import annotations

import random

from bench.peers.work import ported


def line(dice: random.Random, _: int) -> str:
    return ",".join(f"thing {number}" for number in dice.sample(range(60), 4))


WORK = ported("baskets", "how often two of 60 things are bought together", 100_000, "basket", line)
