"""A small payment, then a large one within a minute; and small ones behind which none came.

After the fraud detection of Apache Flink's guide. `python examples/ported/fraud.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel

MINUTE = 60  # seconds
SMALL = rel.Pattern("small", lambda t: t.amount < 1)
FRAUD = SMALL.then("large", lambda t: t.amount > 500, within=MINUTE)


class Payment(NamedTuple):
    """Of an account."""

    account: int
    at: int
    amount: float


class Alert(NamedTuple):
    """What was found of an account, and since when."""

    account: int
    since: int
    is_fraud: bool


def build(rows: Sequence[Payment]) -> rel.Topology:
    """Return the topology, for rows in any order within 10 s."""
    topology = rel.Topology("fraud")
    timed = topology.source(rel.rows(list(rows), schema=Payment), name="payments").event_time(
        "at", name="time", lateness=10
    )
    found = timed.key_by("account").match(FRAUD, name="fraud", how="left")
    found.map(lambda t: Alert(t.account, t.small_at, t.missing is None), name="alerts").sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Payment(1, 0, 0.5), Payment(2, 10, 0.2), Payment(1, 50, 700), Payment(2, 90, 900)]))[
        "out"
    ]:
        print(one)
