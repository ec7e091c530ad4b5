"""The queries of Nexmark as a user of the guide writes them: plain Python functions, default settings.

Each declares its stream on the three streams of events. What a query asks is in its docstring, in the words of the
public queries; where it differs from their SQL, the docstring says so.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import rayelastic as rel
from bench.nexmark.events import Events

SIDE = pa.table({"key": range(10_000), "value": [f"item {n}" for n in range(10_000)]})  # q13: the bounded side input


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of one topology; each source is declared when a query asks for it."""

    topology: rel.Topology
    events: Events

    @property
    def people(self) -> Any:
        """People who register."""
        return self._source("people")

    @property
    def auctions(self) -> Any:
        """New auctions."""
        return self._source("auctions")

    @property
    def bids(self) -> Any:
        """Bids."""
        return self._source("bids")

    def _source(self, kind: str) -> Any:
        return self.topology.source(rel.arrow(getattr(self.events, kind)), name=kind)


def timed(stream: Any) -> Any:
    """Assign event times."""
    return stream.event_time("date_time")


@dataclass(frozen=True, slots=True)
class Query:
    """One query.

    Args:
        name: q0 to q22.
        reads: The tables that it reads.
        declare: Declares it; returns the stream of its results.
    """

    name: str
    reads: tuple[str, ...]
    declare: Callable[[Streams], Any]

    @property
    def asks(self) -> str:
        """What it asks, in one sentence."""
        return (self.declare.__doc__ or "").partition("\n")[0].rstrip(".")


QUERIES: dict[str, Query] = {}


def _query(*reads: str) -> Callable[[Callable[[Streams], Any]], Callable[[Streams], Any]]:
    def add(function: Callable[[Streams], Any]) -> Callable[[Streams], Any]:
        QUERIES[function.__name__] = Query(function.__name__, reads, function)
        return function

    return add


def declare(name: str, events: Events) -> rel.Topology:
    """Declare a query on some events; its results are an Arrow table named 'out'."""
    topology = rel.Topology(f"nexmark_{name}")
    QUERIES[name].declare(Streams(topology, events)).sink(rel.arrow(), name="out")
    return topology


def run(name: str, events: Events) -> Any:
    """Run a query in this process; return its results as an Arrow table."""
    return rel.run(declare(name, events))["out"]


@_query("bids")
def q0(s: Streams) -> Any:
    """Pass all bids through."""
    return s.bids.select("auction", "bidder", "price", "date_time", "extra")


@_query("bids")
def q1(s: Streams) -> Any:
    """Convert the prices of bids from dollars to euros."""
    return s.bids.with_columns(price=lambda t: t.price * 0.908).select(
        "auction", "bidder", "price", "date_time", "extra"
    )


@_query("bids")
def q2(s: Streams) -> Any:
    """Select the bids on every 123rd auction."""
    return s.bids.filter(lambda t: t.auction % 123 == 0).select("auction", "price")


@_query("auctions", "people")
def q3(s: Streams) -> Any:
    """Find who sells in category 10 in three states."""
    sellers = s.people.filter(lambda t: t.state in ("OR", "ID", "CA")).key_by("id")
    joined = s.auctions.filter(lambda t: t.category == 10).key_by("seller").join(sellers, how="inner")
    return joined.select("name", "city", "state", "id")


def won(s: Streams) -> Any:
    """Join bids with their auctions, while these are open."""
    auctions = timed(s.auctions).key_by("id")
    return timed(s.bids).key_by("auction").join(auctions).filter(lambda t: t.date_time <= t.expires)


@_query("auctions", "bids")
def q4(s: Streams) -> Any:
    """Average the winning prices of auctions by category."""
    prices = won(s).key_by("auction", "category").aggregate(final=rel.max("price"))
    return prices.key_by("category").aggregate(mean=rel.mean("final"))


@_query("bids")
def q5(s: Streams) -> Any:
    """Find the auction with the most bids of the last 10 s, every 2 s."""
    counts = timed(s.bids).key_by("auction").window(seconds=10, slide=2).aggregate(bids=rel.count())
    return counts.window(seconds=2).top(1, "bids").select("start", "end", "auction", "bids")


@_query("auctions", "bids")
def q6(s: Streams) -> Any:
    """Average the winning prices of the last 10 auctions of each seller."""
    best = won(s).key_by("auction").top(1, "price").sort("date_time")
    return best.key_by("seller").map(
        mean_of_ten, state=list, schema={"seller": int, "date_time": dt.datetime, "mean": float}
    )


def mean_of_ten(t: Any, prices: list[int]) -> tuple[int, dt.datetime, float]:
    prices.append(t.price)
    del prices[:-10]
    return t.seller, t.date_time, sum(prices) / len(prices)


@_query("bids")
def q7(s: Streams) -> Any:
    """Find the highest bid of each 10 s."""
    return timed(s.bids).window(seconds=10).top(1, "price").select("start", "end", "auction", "bidder", "price")


@_query("auctions", "people")
def q8(s: Streams) -> Any:
    """Find the people who registered and opened auctions in the same 10 s."""
    sellers = timed(s.auctions).key_by("seller").window(seconds=10).aggregate(auctions=rel.count())
    return timed(s.people).key_by("id").join(sellers.key_by("seller"), window=10).select("id", "name", "start")


@_query("auctions", "bids")
def q9(s: Streams) -> Any:
    """Find the winning bid of each auction."""
    best = won(s).key_by("auction").top(1, "price")
    return best.select("auction", "item_name", "seller", "category", "bidder", "price", "date_time", "extra")


@_query("bids")
def q10(s: Streams) -> Any:
    """Log all bids with their day and minute."""
    logged = s.bids.with_columns(
        day=lambda t: t.date_time.strftime("%Y-%m-%d"), minute=lambda t: t.date_time.strftime("%H:%M")
    )
    return logged.select("auction", "bidder", "price", "date_time", "extra", "day", "minute")


@_query("bids")
def q11(s: Streams) -> Any:
    """Count the bids of each bidder's sessions; a bid is at most 10 s after the one before."""
    return timed(s.bids).key_by("bidder").session(gap=10).aggregate(bids=rel.count())


@_query("bids")
def q12(s: Streams) -> Any:
    """Count the bids of each bidder in windows of 10 s by the clock."""
    return s.bids.key_by("bidder").window(seconds=10, clock=True).fold(lambda n, t: n + 1, 0)  # noqa: ARG005


@_query("bids")
def q13(s: Streams) -> Any:
    """Enrich bids from a table."""
    table = s.topology.source(rel.arrow(SIDE), name="table").key_by("key")
    keyed = s.bids.with_columns(side=lambda t: t.auction % 10_000).key_by("side")
    return keyed.join(table, how="inner").select("auction", "bidder", "price", "date_time", "value")


def kind_of_hour(hour: int) -> str:
    if 8 <= hour <= 18:
        return "dayTime"
    return "nightTime" if hour <= 6 or hour >= 20 else "otherTime"


@_query("bids")
def q14(s: Streams) -> Any:
    """Select bids by their price in euros, and compute with their time and text."""
    euros = s.bids.with_columns(price=lambda t: t.price * 0.908).filter(lambda t: 1_000_000 < t.price < 50_000_000)
    hour = euros.with_columns(kind=lambda t: kind_of_hour(t.date_time.hour), c=lambda t: t.extra.count("c"))
    return hour.select("auction", "bidder", "price", "kind", "date_time", "extra", "c")


def rank_of(price: int) -> int:
    return 1 if price < 10_000 else 2 if price < 1_000_000 else 3


RANKS = {f"rank{rank}_bids": rel.count(f"rank{rank}") for rank in (1, 2, 3)}


def ranked(bids: Any) -> Any:
    """Add the day, and a field for each rank of prices that is None where the bid has another."""
    with_rank = bids.with_columns(day=lambda t: t.date_time.strftime("%Y-%m-%d"), rank=lambda t: rank_of(t.price))
    return with_rank.with_columns(
        rank1=lambda t: 1 if t.rank == 1 else None,
        rank2=lambda t: 1 if t.rank == 2 else None,
        rank3=lambda t: 1 if t.rank == 3 else None,
    )


def people_and_auctions(bids: Any) -> Any:
    """Add the bidder and the auction by rank."""
    return ranked(bids).with_columns(
        bidder1=lambda t: t.bidder if t.rank == 1 else None,
        bidder2=lambda t: t.bidder if t.rank == 2 else None,
        bidder3=lambda t: t.bidder if t.rank == 3 else None,
        auction1=lambda t: t.auction if t.rank == 1 else None,
        auction2=lambda t: t.auction if t.rank == 2 else None,
        auction3=lambda t: t.auction if t.rank == 3 else None,
    )


DISTINCT = {
    f"{field}s{rank}": rel.distinct(f"{field}{rank}") for field in ("bidder", "auction") for rank in ("", 1, 2, 3)
}


@_query("bids")
def q15(s: Streams) -> Any:
    """Count bids, bidders and auctions of each day, by the rank of their prices."""
    return people_and_auctions(s.bids).key_by("day").aggregate(bids=rel.count(), **RANKS, **DISTINCT)


@_query("bids")
def q16(s: Streams) -> Any:
    """Count bids, bidders and auctions of each channel and day, by the rank of their prices."""
    bids = people_and_auctions(s.bids).with_columns(minute=lambda t: t.date_time.strftime("%H:%M"))
    totals = {"minute": rel.max("minute"), "bids": rel.count(), **RANKS, **DISTINCT}
    return bids.key_by("channel", "day").aggregate(**totals)


@_query("bids")
def q17(s: Streams) -> Any:
    """Count the bids on each auction and day, with the least, greatest, mean and total price."""
    prices = {"least": rel.min("price"), "most": rel.max("price"), "mean": rel.mean("price"), "sum": rel.sum("price")}
    return ranked(s.bids).key_by("auction", "day").aggregate(bids=rel.count(), **RANKS, **prices)


@_query("bids")
def q18(s: Streams) -> Any:
    """Find the last bid of each bidder on each auction."""
    return s.bids.key_by("bidder", "auction").top(1, "date_time")


@_query("bids")
def q19(s: Streams) -> Any:
    """Find the ten highest bids on each auction."""
    return s.bids.key_by("auction").top(10, "price")


@_query("auctions", "bids")
def q20(s: Streams) -> Any:
    """Join bids with auctions of one category."""
    auctions = s.auctions.filter(lambda t: t.category == 10).key_by("id")
    joined = s.bids.key_by("auction").join(auctions, how="inner")
    return joined.select("auction", "bidder", "price", "date_time", "item_name", "initial_bid", "expires", "seller")


@_query("bids")
def q21(s: Streams) -> Any:
    """Find the number of each bid's channel, by its name or in its address."""
    with_id = s.bids.with_columns(channel_id=channel_id).filter(lambda t: t.channel_id is not None)
    return with_id.select("auction", "bidder", "price", "channel", "channel_id")


def channel_id(t: Any) -> str | None:
    name = t.channel.lower()
    if name == "apple":
        return "0"
    if name == "google":
        return "1"
    if name == "facebook":
        return "2"
    if name == "baidu":
        return "3"
    match = re.search(r"channel_id=([^&]*)", t.url)
    return match.group(1) if match else None


@_query("bids")
def q22(s: Streams) -> Any:
    """Split the addresses of bids into three folders."""
    return s.bids.map(
        lambda t: (t.auction, t.bidder, t.price, t.channel, *t.url.split("/")[3:6]),
        schema={"auction": int, "bidder": int, "price": int, "channel": str, "dir1": str, "dir2": str, "dir3": str},
    )
