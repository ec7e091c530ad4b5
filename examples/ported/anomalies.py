"""Measurements with how far they are from the last ten of the same kind, in standard deviations.

After anomaly_detector.py of Bytewax's examples. `python examples/ported/anomalies.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel

LAST = 10  # measurements
FAR = 2.0  # standard deviations


class Metric(NamedTuple):
    """Measured."""

    key: str
    value: float


class Judged(NamedTuple):
    """A measurement beside those before it, itself included."""

    key: str
    value: float
    mean: float
    spread: float
    is_anomalous: bool


@rel.state
class Last:
    """The last ten, in a circle, and how many came."""

    n: int = 0
    v0: float = 0.0
    v1: float = 0.0
    v2: float = 0.0
    v3: float = 0.0
    v4: float = 0.0
    v5: float = 0.0
    v6: float = 0.0
    v7: float = 0.0
    v8: float = 0.0
    v9: float = 0.0


def judge(t: Metric, s: Last) -> Judged:
    """Compare with the last ones."""
    s.v9, s.v8, s.v7, s.v6, s.v5 = s.v8, s.v7, s.v6, s.v5, s.v4
    s.v4, s.v3, s.v2, s.v1, s.v0 = s.v3, s.v2, s.v1, s.v0, t.value
    s.n = min(s.n + 1, LAST)
    mean = (s.v0 + s.v1 + s.v2 + s.v3 + s.v4 + s.v5 + s.v6 + s.v7 + s.v8 + s.v9) / s.n
    squares = s.v0**2 + s.v1**2 + s.v2**2 + s.v3**2 + s.v4**2 + s.v5**2 + s.v6**2 + s.v7**2 + s.v8**2 + s.v9**2
    spread = max(squares / s.n - mean**2, 0.0) ** 0.5
    return Judged(t.key, t.value, mean, spread, abs(t.value - mean) > FAR * spread)


def build(rows: Sequence[Metric]) -> rel.Topology:
    """Return the topology."""
    topology = rel.Topology("anomalies")
    metrics = topology.source(rel.rows(list(rows), schema=Metric), name="metrics").key_by("key")
    metrics.map(judge, name="judge", state=Last).sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Metric("a", value) for value in (1.0, 1.1, 0.9, 1.0, 1.0, 1.1, 0.9, 9.0)]))["out"]:
        print(one)
