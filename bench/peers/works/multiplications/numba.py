"""10,000 multiplications by Numba alone, over an array, in as many threads as there are cores. The yardstick."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

TIMES = 10_000


@numba.njit(parallel=True)
def multiplied(numbers: Any) -> Any:
    out = np.empty_like(numbers)
    for at in numba.prange(len(numbers)):
        x = numbers[at]
        for _ in range(TIMES):
            x *= 1.0000001
        out[at] = x
    return out


def prepare(path: str) -> Callable[[], Any]:
    numbers = np.loadtxt(path, skiprows=1)
    return lambda: multiplied(numbers)


def result(raw: Any) -> dict[int, float]:
    return dict(enumerate(raw.tolist()))
