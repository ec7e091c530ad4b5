"""A chain of 100 maps, each adding to one field and scaling the other: what a hop and a call cost."""

from __future__ import annotations

from pathlib import Path

from bench.peers.work import Work

ROWS = 500_000
MAPS = 100


def write_input(path: Path, rows: int) -> None:
    """Write that many pairs of numbers as CSV."""
    path.write_text("a,b\n" + "".join(f"{row},{row % 1000}.5\n" for row in range(rows)))


WORK = Work(
    name="map_chain",
    description=f"a chain of {MAPS} maps by user functions",
    items=ROWS,
    item="row",
    tuples=ROWS * MAPS,
    tuple_name="map calls",
    suffix=".csv",
    write_input=write_input,
)
