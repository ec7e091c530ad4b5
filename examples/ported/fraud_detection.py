"""Large payments within a minute of a small one, and small ones behind which nothing comes within a minute.

After the FraudDetector of Apache Flink's guide, and the timeout that its next version has. Compiled.
`python examples/ported/fraud_detection.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel

SMALL = 1.0
LARGE = 500.0
MINUTE = 60  # seconds


class Payment(NamedTuple):
    """Of an account."""

    account: int
    at: int
    amount: float


class Alert(NamedTuple):
    """What is suspicious."""

    account: int
    at: int
    why: str


@rel.state
class State:
    """When the last payment was small, else -1."""

    small: int = -1


class FraudDetector:
    """Watches an account."""

    def on_tuple(self, t: Payment, state: State, out: rel.Out) -> None:
        """Look at a payment, and at the one before."""
        if state.small >= 0:
            out.cancel(state.small + MINUTE)
            if t.amount > LARGE:
                out.give(Alert(t.account, t.at, "large behind small"))
        state.small = -1
        if t.amount < SMALL:
            state.small = t.at
            out.after(MINUTE)

    def on_time(self, time: int, state: State, out: rel.Out) -> None:
        """Nothing came for a minute."""
        state.small = -1
        out.give(Alert(out.key[0], time, "nothing behind small"))


def build(rows: Sequence[Payment]) -> rel.Topology:
    """Return the topology, for rows in any order within 10 s."""
    topology = rel.Topology("fraud_detection")
    timed = topology.source(rel.rows(list(rows), schema=Payment), name="payments").event_time(
        "at", name="time", lateness=10
    )
    keyed = timed.key_by("account")
    alerts = keyed.process(FraudDetector, name="detector", schema=Alert, state=State, lane="compiled")
    alerts.sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Payment(1, 0, 0.5), Payment(2, 10, 0.2), Payment(1, 50, 700), Payment(2, 300, 900)]))[
        "out"
    ]:
        print(one)
