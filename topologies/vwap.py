"""Bargain index over the volume-weighted average price (Middleware'19 Fig. 14a; Finance of Joker 5.4, J34).

Each trade updates the average price of its symbol's last trades, weighted by volume. Each quote is joined with the
latest average of its symbol, as of its own time. A quote that asks less than that is a bargain: the further below
and the more is offered, the better. The papers' graph of 52 operators distributes the symbols to 8 channels by hand.

    rayelastic run rayelastic.topologies.vwap --input TradesAndQuotes.csv.gz
    rayelastic run rayelastic.topologies.vwap --channels 8 --days 100
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import rayelastic as rel

COLUMNS = {"symbol": 0, "clock": 2, "kind": 4, "price": 6, "volume": 7, "ask": 14, "ask_size": 15}  # of the file's 30
ALL_COLUMNS = 30
PAPERS_CHANNELS = 8  # with which there are 52 operators
DAY = 86_400_000  # ms
OPENING = 34_200_000  # ms of the day: 9:30
SESSION = 23_400_000  # ms: 6.5 hours
OUTPUT = "results/vwap"


class Event(NamedTuple):
    """A trade or a quote; what it has not is 0."""

    symbol: str
    at: int  # milliseconds of the day
    kind: str
    price: float
    volume: float
    ask: float
    ask_size: float


class Paid(NamedTuple):
    """A trade, as far as averages need it."""

    symbol: str
    at: int
    paid: float
    volume: float


class Average(NamedTuple):
    """The average price of a symbol's last trades."""

    symbol: str
    at: int
    average: float


class Bargain(NamedTuple):
    """A quote beside the average price of its symbol; a value of 0 is no bargain."""

    symbol: str
    at: int
    ask: float
    average: float
    value: float


def trade(t: Event) -> Iterator[Paid]:
    """Return what was paid in a trade."""
    if t.kind == "Trade" and t.price > 0 and t.volume > 0:
        yield Paid(t.symbol, t.at, t.price * t.volume, t.volume)


def average(t: Any) -> Average:
    """Return the average price of what was traded, by volume."""
    return Average(t.symbol, t.at, t.paid / t.volume)


def bargain_index(t: Any) -> Bargain:
    """How good an offer is, as in the papers: exp(average - ask) * ask_size if it is below the average."""
    value = math.exp(t.average - t.ask) * t.ask_size if t.ask < t.average else 0.0
    return Bargain(t.symbol, t.at, t.ask, t.average, value)


def events(path: str) -> Any:
    """Return the events of a file of trades and quotes as an Arrow table; lines that start with # are comments in it.

    Raises:
        SourceError: no such file, or not of this form.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    names = [f"unused_{number}" for number in range(ALL_COLUMNS)]
    for name, number in COLUMNS.items():
        names[number] = name
    numbers = {name: pa.float64() for name in ("price", "volume", "ask", "ask_size")}
    texts = {"symbol": pa.string(), "kind": pa.string(), "clock": pa.time32("ms")}
    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=names, skip_rows=1, use_threads=False),
            csv.ParseOptions(invalid_row_handler=lambda row: "skip" if row.text.startswith("#") else "error"),
            csv.ConvertOptions(include_columns=list(COLUMNS), column_types=numbers | texts),
        )
    except (pa.ArrowException, OSError) as error:
        raise rel.errors.SourceError(
            f"{path!r} can't be read as trades and quotes: {error}",
            operator="events",
            hint=f"Give CSV with a header line and {ALL_COLUMNS} columns, as the papers' TradesAndQuotes.csv.gz",
        ) from error
    columns = {name: pc.fill_null(table[name], 0.0) for name in numbers}
    columns |= {"symbol": table["symbol"], "kind": table["kind"]}
    columns["at"] = table["clock"].cast(pa.int32()).cast(pa.int64())
    return pa.table({name: columns[name] for name in Event._fields})


def synthetic(count: int, seed: int = 0, symbols: int = 200) -> Any:
    """Events of a day like a real one: prices walk, few symbols trade often, four quotes a trade, empty fields."""
    import numpy as np
    import pyarrow as pa

    chance = np.random.default_rng(seed)
    symbol = np.minimum(chance.zipf(1.3, count) - 1, symbols - 1)
    at = np.sort(chance.integers(0, SESSION, count)) + OPENING
    is_trade, is_empty = chance.random(count) < 0.2, chance.random(count) < 0.05
    price = 20 + symbol % 80 + np.cumsum(chance.normal(0, 0.01, count))
    price = np.maximum(0.01, np.round(price + chance.normal(0, 0.2, count), 2))
    amount = chance.integers(1, 40, count) * 100.0
    trades, quotes = is_trade & ~is_empty, ~is_trade & ~is_empty
    kind = np.where(is_trade, "Trade", "Quote")
    columns = {
        "symbol": np.char.add("S", symbol.astype(str)),
        "at": at,
        "kind": kind,
        "price": np.where(trades, price, 0.0),
        "volume": np.where(trades, amount, 0.0),
        "ask": np.where(quotes, price, 0.0),
        "ask_size": np.where(quotes, amount / 100, 0.0),
    }
    return pa.table({name: columns[name] for name in Event._fields})


def repeated(table: Any, days: int) -> Any:
    """Return the same day again and again, each time a day later."""
    import pyarrow as pa
    import pyarrow.compute as pc

    at = table.schema.get_field_index("at")
    return pa.concat_tables(table.set_column(at, "at", pc.add(table["at"], day * DAY)) for day in range(days))


def build(
    input: str | None = None,
    output: str = OUTPUT,
    trades: int = 15,
    channels: int = 1,
    count: int = 30_000,
    days: int = 1,
) -> rel.Topology:
    """Declare the topology.

    Args:
        input: the file of trades and quotes, CSV, compressed or not; made up if not given.
        output: the folder that the bargains are written to, as Parquet.
        trades: how many make an average.
        channels: to which symbols are dealt out by hand, as in the papers: 8 make 52 operators.
        count: events of a day that is made up.
        days: how often the day is gone through.
    """
    topology = rel.Topology("vwap")
    table = repeated(events(input) if input else synthetic(count), days)
    source = topology.source(rel.arrow(table, Event), name="events")
    if channels == 1:
        found = bargains(source, trades)
    else:
        parts = source.event_time("at", name="time", unit="ms").key_by("symbol").split(channels, name="channels")
        first, *others = (bargains_of(part, trades, f"_{number}") for number, part in enumerate(parts))
        found = first.union(*others)
    found.sink(rel.parquet(output), name="out")
    return topology


def bargains(events: Any, trades: int = 15, averaged: Callable[[Any], Average] = average) -> Any:
    """Declare what comes between source and sink.

    Args:
        events: a stream of Event, in the order of their times.
        trades: how many make an average.
        averaged: the average of their sums; another one may cost more.
    """
    return bargains_of(events.event_time("at", name="time", unit="ms"), trades, "", averaged)


def bargains_of(
    stream: rel.Stream, trades: int, suffix: str, averaged: Callable[[Any], Average] = average
) -> rel.Stream:
    """Return the bargains of a stream of events."""
    traded = stream.flat_map(trade, name=f"trades{suffix}")
    quoted = stream.filter(lambda t: t.kind == "Quote" and t.ask > 0 and t.ask_size > 0, name=f"quotes{suffix}")
    sums = {"at": rel.last("at"), "paid": rel.sum("paid"), "volume": rel.sum("volume")}
    last = traded.key_by("symbol").window(count=trades, slide=1).aggregate(name=f"pre_vwap{suffix}", **sums)
    vwap = last.map(averaged, name=f"vwap{suffix}").key_by("symbol")
    keyed = quoted.key_by("symbol")
    return keyed.join(vwap, name=f"bargains{suffix}", keep="latest", fn=bargain_index, schema=Bargain)


def report(result: rel.JobResult, output: str = OUTPUT, top: int = 5) -> str:
    """Return the best bargains.

    Args:
        result: what the job left.
        output: the folder of the bargains.
        top: how many bargains to show.
    """
    import pyarrow.compute as pc
    import pyarrow.dataset as dataset

    quotes = dataset.dataset(output, format="parquet").to_table()
    bargains = quotes.filter(pc.greater(quotes["value"], 0.0))
    best = bargains.sort_by([("value", "descending"), ("symbol", "ascending")]).slice(0, top).to_pylist()
    rows = [f"{row['symbol']:<8} asked {row['ask']:>9.2f}, average {row['average']:>9.2f}" for row in best]
    return "\n".join(
        [*rows, f"{bargains.num_rows:,} bargains among {quotes.num_rows:,} quotes in {result.seconds:.2f} s"]
    )
