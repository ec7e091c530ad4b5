"""Bargain index over the volume-weighted average price (the Finance/VWAP application of the papers, J34).

For each symbol the average price of its last trades, weighted by volume, whenever a trade comes; each quote meets the
latest average of its symbol, as of its own time. A quote that asks less than that is a bargain: the further below
and the more is offered, the better.

    rayelastic run topologies/vwap.py --input TradesAndQuotes.csv.gz
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import rayelastic as rel

COLUMNS = {"symbol": 0, "clock": 2, "kind": 4, "price": 6, "volume": 7, "ask": 14, "ask_size": 15}  # of the file's 30
ALL_COLUMNS = 30


class Event(NamedTuple):
    """A trade or a quote; what it has not is 0."""

    symbol: str
    at: int  # milliseconds of the day
    kind: str
    price: float
    volume: float
    ask: float
    ask_size: float


class Bargain(NamedTuple):
    """A quote beside the average price of its symbol; a value of 0 is no bargain."""

    symbol: str
    at: int
    ask: float
    average: float
    value: float


def bargain_index(t: Any) -> Bargain:
    """How good an offer is, as in the papers: exp(average - ask) * ask_size if it is below the average."""
    value = math.exp(t.average - t.ask) * t.ask_size if t.ask < t.average else 0.0
    return Bargain(t.symbol, t.at, t.ask, t.average, value)


def events(path: str) -> Any:
    """The events of a file of trades and quotes as an Arrow table."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    names = [f"unused_{number}" for number in range(ALL_COLUMNS)]
    for name, number in COLUMNS.items():
        names[number] = name
    numbers = {name: pa.float64() for name in ("price", "volume", "ask", "ask_size")}
    texts = {"symbol": pa.string(), "kind": pa.string(), "clock": pa.time32("ms")}
    table = csv.read_csv(
        path,
        csv.ReadOptions(column_names=names, skip_rows=1),
        convert_options=csv.ConvertOptions(include_columns=list(COLUMNS), column_types=numbers | texts),
    )
    columns = {name: pc.fill_null(table[name], 0.0) for name in numbers}
    columns |= {"symbol": table["symbol"], "kind": table["kind"]}
    columns["at"] = table["clock"].cast(pa.int32()).cast(pa.int64())
    return pa.table({name: columns[name] for name in Event._fields})


def bargains(events: Any, trades: int = 15) -> Any:
    """Declares what comes between source and sink.

    Args:
        events: a stream of Event, in the order of their times.
        trades: how many make an average.
    """
    stream = events.event_time("time", "at", unit="ms")
    traded = stream.filter("trades", lambda t: t.kind == "Trade" and t.price > 0 and t.volume > 0)
    quoted = stream.filter("quotes", lambda t: t.kind == "Quote" and t.ask > 0 and t.ask_size > 0)
    average = rel.weighted_mean("price", "volume")
    vwap = traded.key_by("symbol").window(count=trades, slide=1).aggregate("vwap", at=rel.last("at"), average=average)
    return quoted.key_by("symbol").join("bargains", vwap, keep="latest", fn=bargain_index, schema=Bargain)


def build(input: str, output: str = "results/vwap", trades: int = 15) -> rel.Topology:
    """Declares the topology.

    Args:
        input: the file of trades and quotes, CSV, compressed or not.
        output: the folder that the bargains are written to, as Parquet.
        trades: how many make an average.
    """
    topology = rel.Topology("vwap")
    source = topology.source("events", rel.arrow(events(input), Event))
    bargains(source, trades).sink("out", rel.parquet(output))
    return topology
