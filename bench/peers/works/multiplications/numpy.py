"""10,000 multiplications by NumPy alone, of all numbers at once, in one thread. The yardstick."""

from collections.abc import Callable
from typing import Any

import numpy as np

TIMES = 10_000


def prepare(path: str) -> Callable[[], Any]:
    numbers = np.loadtxt(path, skiprows=1)

    def run() -> Any:
        out = numbers.copy()
        for _ in range(TIMES):
            out *= 1.0000001
        return out

    return run


def result(raw: Any) -> dict[int, float]:
    return dict(enumerate(raw.tolist()))
