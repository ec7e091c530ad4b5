"""One billion rows, fewer: least, mean and greatest temperature of each of 400 stations."""

from __future__ import annotations

import random

from bench.peers.work import ported


def line(dice: random.Random, _: int) -> str:
    return f"station {dice.randrange(400)};{dice.randrange(-300, 400) / 10}"


WORK = ported("brc", "least, mean and greatest temperature of each of 400 stations", 1_000_000, "line", line)
