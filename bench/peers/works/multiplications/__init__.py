"""10,000 multiplications in the user's function for each tuple: what the runtime costs where the work is the user's."""

from __future__ import annotations

from pathlib import Path

from bench.peers.work import Work

ROWS = 100_000
TIMES = 10_000


def write_input(path: Path, rows: int) -> None:
    """Write that many numbers as CSV."""
    path.write_text("x\n" + "".join(f"{1.0 + row / 1000}\n" for row in range(rows)))


WORK = Work(
    name="multiplications",
    description=f"{TIMES:,} multiplications of floats for each tuple",
    items=ROWS,
    item="tuple",
    tuples=ROWS,
    tuple_name="tuples",
    suffix=".csv",
    write_input=write_input,
)
