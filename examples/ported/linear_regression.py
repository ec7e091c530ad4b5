"""The line through points that come: sums, and of these the line.

After the linear regression of Pathway's guide. `python examples/ported/linear_regression.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import rayelastic as rel


class Point(NamedTuple):
    """Somewhere near a line."""

    x: float
    y: float


class Line(NamedTuple):
    """y = a + b * x."""

    a: float
    b: float


class Sums(NamedTuple):
    """Of points."""

    x: float
    y: float
    xx: float
    xy: float


def line(t: Any) -> Line:
    """Return the least squares."""
    b = (t.n * t.xy - t.x * t.y) / (t.n * t.xx - t.x * t.x)
    return Line((t.y - b * t.x) / t.n, b)


def build(rows: Sequence[Point]) -> rel.Topology:
    """Return the topology."""
    topology = rel.Topology("linear_regression")
    points = topology.source(rel.rows(list(rows), schema=Point), name="points")
    products = points.map(lambda t: Sums(t.x, t.y, t.x * t.x, t.x * t.y), name="products")
    sums = products.aggregate(
        name="sums", n=rel.count(), x=rel.sum("x"), y=rel.sum("y"), xx=rel.sum("xx"), xy=rel.sum("xy")
    )
    sums.map(line, name="line").sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    print(rel.run(build([Point(0, 1), Point(1, 3.1), Point(2, 4.9)]))["out"])
