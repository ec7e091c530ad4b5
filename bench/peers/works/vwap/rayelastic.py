"""VWAP in rayelastic: a user's function with keyed state, then counted; compiled lane."""

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

import rayelastic as rel

LANE: Any = os.environ["LANE"]  # compiled or python


class Row(NamedTuple):
    is_trade: bool
    symbol: str
    price: int
    volume: int


class Mean(NamedTuple):
    value: int = 0
    volume: int = 0


class Bargain(NamedTuple):
    symbol: str
    gain: int


def bargains(t: Row, s: Any) -> Iterator[Bargain]:
    if t.is_trade:
        s.value += t.price * t.volume
        s.volume += t.volume
    elif s.value > t.price * s.volume:
        yield Bargain(t.symbol, (s.value - t.price * s.volume) * t.volume // s.volume)


def prepare(path: str) -> Callable[[], pa.Table]:
    types = {"is_trade": pa.bool_(), "symbol": pa.string(), "price": pa.int64(), "volume": pa.int64()}
    table = pa.csv.read_csv(path, convert_options=pa.csv.ConvertOptions(column_types=types))
    topology = rel.Topology("vwap")
    rows = topology.source(rel.arrow(table, Row), name="rows")
    found = rows.key_by("symbol").flat_map(bargains, name="bargains", state=Mean, schema=Bargain, lane=LANE)
    found.key_by("symbol").aggregate(name="sums", n=rel.count(), index=rel.sum("gain")).sink(rel.arrow(), name="out")
    return lambda: rel.run(topology)["out"]


def result(raw: pa.Table) -> dict[str, tuple[int, int]]:
    columns = (raw[name].to_pylist() for name in ("symbol", "n", "index"))
    return {symbol: (count, index) for symbol, count, index in zip(*columns, strict=True)}
