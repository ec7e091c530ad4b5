"""Searches: how many of the searches in each session of 200 users were clicked on."""

from __future__ import annotations

import random

from bench.peers.work import ported


def line(dice: random.Random, at: int) -> str:
    return f"user{dice.randrange(200)} {at} {dice.randrange(2)}"


WORK = ported(
    "search_sessions", "how many of the searches in each session of 200 users were clicked on", 50_000, "action", line
)
