"""10,000 multiplications in a map step of Ray Data, in batch."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import ray

from bench.peers.ray_session import start

TIMES = 10_000


def multiplied(row: dict[str, Any]) -> dict[str, Any]:
    x = row["x"]
    for _ in range(TIMES):
        x *= 1.0000001
    return {"x": row["x"], "y": x}


def prepare(path: str) -> Callable[[], Any]:
    start()
    numbers = ray.data.from_pandas(pd.read_csv(path)).materialize()
    return lambda: numbers.map(multiplied).materialize()


def result(raw: Any) -> dict[int, float]:
    rows = sorted((row["x"], row["y"]) for row in raw.take_all())
    return dict(enumerate(y for _, y in rows))
