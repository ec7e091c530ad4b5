"""10,000 multiplications in a step of Ray Data over batches of NumPy, in batch."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import ray

from bench.peers.ray_session import start

TIMES = 10_000


def multiplied(batch: dict[str, Any]) -> dict[str, Any]:
    out = batch["x"].copy()
    for _ in range(TIMES):
        out *= 1.0000001
    return {"x": batch["x"], "y": out}


def prepare(path: str) -> Callable[[], Any]:
    start()
    numbers = ray.data.from_pandas(pd.read_csv(path)).materialize()
    return lambda: numbers.map_batches(multiplied, batch_format="numpy").materialize()


def result(raw: Any) -> dict[int, float]:
    rows = sorted((row["x"], row["y"]) for row in raw.take_all())
    return dict(enumerate(y for _, y in rows))
