"""A chain of maps in Polars, in batch, by its streaming engine: 100 selects. The yardstick."""

from collections.abc import Callable

import polars as pl

MAPS = 100


def prepare(path: str) -> Callable[[], pl.DataFrame]:
    frame = pl.read_csv(path)

    def run() -> pl.DataFrame:
        rows = frame.lazy()
        for _ in range(MAPS):
            rows = rows.with_columns(a=pl.col("a") + 3, b=pl.col("b") * 0.5 + 1.0)
        return rows.collect(engine="streaming")

    return run


def result(raw: pl.DataFrame) -> dict[int, float]:
    return dict(raw.iter_rows())
