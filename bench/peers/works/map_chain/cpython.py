"""A chain of maps in plain Python: 100 function calls for each row."""

from collections.abc import Callable
from pathlib import Path

MAPS = 100


def step(row: tuple[int, float]) -> tuple[int, float]:
    return row[0] + 3, row[1] * 0.5 + 1.0


def prepare(path: str) -> Callable[[], list[tuple[int, float]]]:
    lines = [line.split(",") for line in Path(path).read_text().splitlines()[1:]]
    rows = [(int(a), float(b)) for a, b in lines]
    maps = [step] * MAPS

    def run() -> list[tuple[int, float]]:
        out = []
        for row in rows:
            item = row
            for one in maps:
                item = one(item)
            out.append(item)
        return out

    return run


def result(raw: list[tuple[int, float]]) -> dict[int, float]:
    return dict(raw)
