"""VWAP in Polars, in batch, by its streaming engine: running sums over each symbol. The yardstick."""

from collections.abc import Callable

import polars as pl


def prepare(path: str) -> Callable[[], pl.DataFrame]:
    frame = pl.read_csv(path)
    trade, price, volume = pl.col("is_trade"), pl.col("price"), pl.col("volume")

    def run() -> pl.DataFrame:
        sums = frame.lazy().with_columns(
            value=(trade * price * volume).cum_sum().over("symbol"), total=(trade * volume).cum_sum().over("symbol")
        )
        value, total = pl.col("value"), pl.col("total")
        found = sums.filter((trade == 0) & (value > price * total))
        index = (value - price * total) * volume // total
        return found.group_by("symbol").agg(n=pl.len(), index=index.sum()).collect(engine="streaming")

    return run


def result(raw: pl.DataFrame) -> dict[str, tuple[int, int]]:
    return {symbol: (count, index) for symbol, count, index in raw.select("symbol", "n", "index").iter_rows()}
