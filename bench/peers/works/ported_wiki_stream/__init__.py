"""Edits: how many each of 50 servers has in windows of two seconds."""

from __future__ import annotations

import json
import random

from bench.peers.work import ported


def line(dice: random.Random, number: int) -> str:
    return json.dumps({"server_name": f"{dice.randrange(50)}.org", "timestamp": number / 100 + 0.001})


WORK = ported("wiki_stream", "how many each of 50 servers has in windows of two seconds", 50_000, "edit", line)
