"""Readings that are far from the mean of all before them: a class that remembers, called as a function.

After find_outliers of IBM's streamsx. `python examples/ported/find_outliers.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel

SPREADS = 3  # standard deviations


class Reading(NamedTuple):
    """Of a sensor."""

    sensor: str
    value: float


@rel.state
class Moments:
    """Of the readings of a sensor so far, by Welford."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0


def is_outlier(t: Reading, s: Moments) -> bool:
    """Whether a reading is far off; it counts for the next ones."""
    far = s.n > 1 and (t.value - s.mean) ** 2 > SPREADS**2 * s.squares / s.n
    s.n += 1
    before = t.value - s.mean
    s.mean += before / s.n
    s.squares += before * (t.value - s.mean)
    return far


def build(rows: Sequence[Reading]) -> rel.Topology:
    """Return the topology."""
    topology = rel.Topology("find_outliers")
    readings = topology.source(rel.rows(list(rows), schema=Reading), name="readings").key_by("sensor")
    readings.filter(is_outlier, name="outliers", state=Moments).sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Reading("a", value) for value in (1.0, 1.1, 0.9, 1.0, 5.0, 1.0)]))["out"]:
        print(one)
