"""Anomalies: measurements beside the last ten of their kind."""

from __future__ import annotations

import random

from bench.peers.work import ported


def line(dice: random.Random, _: int) -> str:
    return f"{dice.randrange(100)} {dice.uniform(0, 10)}"


WORK = ported("anomalies", "measurements beside the last ten of their kind", 200_000, "metric", line)
