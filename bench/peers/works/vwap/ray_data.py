"""VWAP in Ray Data, in batch: the rows of each symbol as one group, in their order."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import ray

from bench.peers.ray_session import start


def bargains(rows: pd.DataFrame) -> pd.DataFrame:
    value = total = n = index = 0
    rows = rows.sort_values("at")
    columns = (rows[name].tolist() for name in ("is_trade", "price", "volume"))
    for is_trade, price, volume in zip(*columns, strict=True):
        if is_trade:
            value, total = value + price * volume, total + volume
        elif value > price * total:
            n, index = n + 1, index + (value - price * total) * volume // total
    return pd.DataFrame({"symbol": [rows["symbol"].iloc[0]], "n": [n], "index": [index]})


def prepare(path: str) -> Callable[[], Any]:
    start()
    frame = pd.read_csv(path)
    rows = ray.data.from_pandas(frame.assign(at=range(len(frame)))).materialize()
    return lambda: rows.groupby("symbol").map_groups(bargains, batch_format="pandas").materialize()


def result(raw: Any) -> dict[str, tuple[int, int]]:
    return {row["symbol"]: (row["n"], row["index"]) for row in raw.take_all() if row["n"]}
