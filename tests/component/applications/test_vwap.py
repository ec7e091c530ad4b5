"""The VWAP topology over real trades and quotes, and over a day that is made up, against pandas."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pandas as pd
import pyarrow.parquet as parquet
import pytest

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.topologies import vwap
from tests.component.operators.running import CONFIGS

TRADES = 15


def table_of(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path, usecols=[0, 2, 4, 6, 7, 14, 15], low_memory=False)
    table.columns = ["symbol", "clock", "kind", "price", "volume", "ask", "ask_size"]
    table["at"] = (pd.to_timedelta(table["clock"]) / pd.Timedelta(milliseconds=1)).round().astype("int64")
    return table


def reference(table: pd.DataFrame) -> pd.DataFrame:
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


def check(output: Path, expected: pd.DataFrame, *, in_order: bool = True) -> None:
    found = parquet.read_table(output).to_pandas()
    if not in_order:
        by = ["symbol", "at"]  # a symbol keeps its order in every channel
        found, expected = (one.sort_values(by, kind="stable").reset_index(drop=True) for one in (found, expected))
    assert len(found) > 1000
    pd.testing.assert_frame_equal(
        found.drop(columns="value"), expected.drop(columns="value"), check_dtype=False, rtol=1e-9
    )
    apart = (
        expected.average - expected.ask
    ).abs() > 1e-9  # nearer, rounding of pandas' moving sums decides what is a bargain
    assert apart.mean() > 0.99
    pd.testing.assert_series_equal(found.value[apart], expected.value[apart], rtol=1e-6)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_bargains_equal_the_reference(trades_and_quotes: Path, tmp_path: Path, config: rel.JobConfig) -> None:
    rel.run(vwap.build(str(trades_and_quotes), str(tmp_path / "out")), config)
    check(tmp_path / "out", reference(table_of(trades_and_quotes)))


def test_comment_lines_are_left_out(trades_and_quotes: Path, tmp_path: Path) -> None:
    lines = gzip.decompress(trades_and_quotes.read_bytes()).splitlines(keepends=True)
    noted = tmp_path / "noted.csv.gz"
    noted.write_bytes(
        gzip.compress(b"".join([*lines[:20_000], b"#### LATE EVENTS ####\n", *lines[20_000:], b"# end\n"]))
    )
    assert vwap.events(str(noted)).equals(vwap.events(str(trades_and_quotes)))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"AEC,27-DEC-2005,06:16:53.068", "Row #2: Expected 30 columns, got 3"),
        (b"AEC,27-DEC-2005,soon,-5,Trade" + b"," * 25, "Row #2: CSV conversion error to time32"),
    ],
    ids=["another number of columns", "no time"],
)
def test_other_files_are_refused_by_row(
    content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.csv"
    path.write_bytes(b"#RIC" + b",x" * 29 + b"\n" + content + b"\n")
    assert main(["run", "rayelastic.topologies.vwap", "--input", str(path), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert f"operator 'events': '{path}' can't be read as trades and quotes" in said
    assert says in said


def test_the_graph_of_52_operators(trades_and_quotes: Path, tmp_path: Path) -> None:
    topology = vwap.build(str(trades_and_quotes), str(tmp_path / "out"), channels=vwap.PAPERS_CHANNELS)
    assert len(topology.operators) == 52
    rel.run(topology, rel.JobConfig(threads=rel.Threads(count=2, model="dynamic")))
    check(tmp_path / "out", reference(table_of(trades_and_quotes)), in_order=False)


def test_days_that_nobody_has_seen(tmp_path: Path) -> None:
    rel.run(vwap.build(None, str(tmp_path / "out"), days=2))
    check(tmp_path / "out", reference(vwap.repeated(vwap.synthetic(30_000), 2).to_pandas()))


def test_one_line_starts_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "rayelastic.topologies.vwap", "--output", str(tmp_path / "out"), "--quiet"]) == 0
    assert "bargains among" in capsys.readouterr().out
