"""Complete join: names, addresses and numbers of users, when all three are there."""

from __future__ import annotations

import random

from bench.peers.work import ported


def line(dice: random.Random, user: int) -> str:
    return f"{user} name of {user};{user}@x.org;{dice.randrange(1000):03}"


WORK = ported("complete_join", "names, addresses and numbers of users, when all three are there", 50_000, "user", line)
