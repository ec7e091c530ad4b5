"""A chain of maps in Pathway: 100 selects, which its own engine evaluates."""

# mypy: disable-error-code="misc, untyped-decorator"
# ruff: noqa: ARG005 -- what Pathway calls has the parameters that Pathway gives

from collections.abc import Callable
from pathlib import Path

import pathway as pw

MAPS = 100


class Row(pw.Schema):
    a: int
    b: float


def prepare(path: str) -> Callable[[], dict[int, float]]:
    lines = [line.split(",") for line in Path(path).read_text().splitlines()[1:]]
    rows = [(int(a), float(b)) for a, b in lines]
    out: dict[int, float] = {}

    def run() -> dict[int, float]:
        pw.internals.parse_graph.G.clear()
        table = pw.debug.table_from_rows(Row, rows)
        for _ in range(MAPS):
            table = table.select(a=table.a + 3, b=table.b * 0.5 + 1.0)
        pw.io.subscribe(table, lambda key, row, time, is_addition: out.__setitem__(row["a"], row["b"]))
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        return out

    return run


def result(raw: dict[int, float]) -> dict[int, float]:
    return dict(raw)
