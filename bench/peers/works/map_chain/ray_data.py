"""A chain of maps in Ray Data, in batch: 100 steps over batches of NumPy, which it fuses."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import ray

from bench.peers.ray_session import start

MAPS = 100


def step(batch: dict[str, Any]) -> dict[str, Any]:
    return {"a": batch["a"] + 3, "b": batch["b"] * 0.5 + 1.0}


def prepare(path: str) -> Callable[[], Any]:
    start()
    rows = ray.data.from_pandas(pd.read_csv(path)).materialize()

    def run() -> Any:
        stream = rows
        for _ in range(MAPS):
            stream = stream.map_batches(step, batch_format="numpy")
        return stream.materialize()

    return run


def result(raw: Any) -> dict[int, float]:
    return {row["a"]: row["b"] for row in raw.take_all()}
