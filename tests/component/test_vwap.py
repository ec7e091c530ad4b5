"""The VWAP topology over real trades and quotes, against pandas."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pyarrow.parquet as parquet
import pytest

import rayelastic as rel
from tests.component.operators.running import CONFIGS
from topologies import vwap

TRADES = 15


def reference(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path, usecols=[0, 2, 4, 6, 7, 14, 15], low_memory=False)
    table.columns = ["symbol", "clock", "kind", "price", "volume", "ask", "ask_size"]
    table["at"] = (pd.to_timedelta(table["clock"]) / pd.Timedelta(milliseconds=1)).round().astype("int64")
    trades = table[(table.kind == "Trade") & (table.price > 0) & (table.volume > 0)].copy()
    trades["paid"] = trades.price * trades.volume
    sums = trades.groupby("symbol")[["paid", "volume"]].rolling(TRADES).sum().droplevel(0).sort_index()
    trades["average"] = sums.paid / sums.volume
    averages = trades.dropna(subset="average")[["symbol", "at", "average"]]
    quotes = table[(table.kind == "Quote") & (table.ask > 0) & (table.ask_size > 0)]
    joined = pd.merge_asof(quotes, averages.sort_values("at", kind="stable"), on="at", by="symbol")
    joined = joined.dropna(subset="average")
    below = (joined.average - joined.ask).clip(lower=0)
    joined["value"] = (math.e**below * joined.ask_size).where(joined.ask < joined.average, 0.0)
    return joined[["symbol", "at", "ask", "average", "value"]].reset_index(drop=True)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_bargains_equal_the_reference(trades_and_quotes: Path, tmp_path: Path, config: rel.JobConfig) -> None:
    rel.run(vwap.build(str(trades_and_quotes), str(tmp_path / "out")), config)
    found = parquet.read_table(tmp_path / "out").to_pandas()
    expected = reference(trades_and_quotes)
    assert len(found) > 1000
    pd.testing.assert_frame_equal(
        found.drop(columns="value"), expected.drop(columns="value"), check_dtype=False, rtol=1e-9
    )
    apart = (
        expected.average - expected.ask
    ).abs() > 1e-9  # nearer, rounding of pandas' moving sums decides what is a bargain
    assert apart.mean() > 0.99
    pd.testing.assert_series_equal(found.value[apart], expected.value[apart], rtol=1e-6)
