"""Word count in Polars, in batch, by its streaming engine, over lines in memory. The yardstick."""

from collections.abc import Callable
from pathlib import Path

import polars as pl


def prepare(path: str) -> Callable[[], pl.DataFrame]:
    frame = pl.DataFrame({"line": Path(path).read_text().splitlines()})

    def run() -> pl.DataFrame:
        words = frame.lazy().select(word=pl.col("line").str.split(" ")).explode("word")
        return words.group_by("word").agg(n=pl.len()).collect(engine="streaming")

    return run


def result(raw: pl.DataFrame) -> dict[str, int]:
    return dict(raw.select("word", "n").iter_rows())
