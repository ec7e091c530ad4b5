"""10,000 multiplications in plain Python."""

from collections.abc import Callable
from pathlib import Path

TIMES = 10_000


def multiplied(x: float) -> float:
    for _ in range(TIMES):
        x *= 1.0000001
    return x


def prepare(path: str) -> Callable[[], list[float]]:
    numbers = [float(line) for line in Path(path).read_text().splitlines()[1:]]
    return lambda: [multiplied(x) for x in numbers]


def result(raw: list[float]) -> dict[int, float]:
    return dict(enumerate(raw))
