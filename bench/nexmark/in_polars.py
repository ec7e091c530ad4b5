"""The queries that Polars' lazy frames say naturally, over the same tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

COL = pl.col


def won(auctions: Any, bids: Any) -> Any:
    """Join bids with their auctions, while these are open."""
    joined = bids.join(auctions, left_on="auction", right_on="id", suffix="_of_auction")
    return joined.filter(COL("date_time").is_between(COL("date_time_of_auction"), COL("expires")))


def q1(_: Any, __: Any, bids: Any) -> Any:
    return bids.select("auction", "bidder", COL("price") * 0.908, "date_time", "extra")


def q2(_: Any, __: Any, bids: Any) -> Any:
    return bids.filter(COL("auction") % 123 == 0).select("auction", "price")


def q3(people: Any, auctions: Any, _: Any) -> Any:
    sellers = people.filter(COL("state").is_in(["OR", "ID", "CA"]))
    joined = auctions.filter(COL("category") == 10).join(sellers, left_on="seller", right_on="id")
    return joined.select("name", "city", "state", "id")


def q4(_: Any, auctions: Any, bids: Any) -> Any:
    prices = won(auctions, bids).group_by("auction", "category").agg(final=COL("price").max())
    return prices.group_by("category").agg(mean=COL("final").mean())


def q5(_: Any, __: Any, bids: Any) -> Any:
    bucket = bids.select("auction", bucket=COL("date_time").dt.truncate("2s"))
    per_bucket = bucket.group_by("auction", "bucket").agg(bids=pl.len())
    spread = per_bucket.with_columns(
        start=pl.concat_list([COL("bucket") - pl.duration(seconds=lag) for lag in range(0, 10, 2)])
    )
    counts = spread.explode("start").group_by("auction", "start").agg(COL("bids").sum())
    best = counts.group_by("start").agg(most=COL("bids").max())
    return counts.join(best, on="start").filter(COL("bids") == COL("most")).select("start", "auction", "bids")


def q7(_: Any, __: Any, bids: Any) -> Any:
    best = bids.group_by(start=COL("date_time").dt.truncate("10s")).agg(
        COL("auction", "bidder", "price").top_k_by("price", 1).first()
    )
    return best.select("start", "auction", "bidder", "price")


def q8(people: Any, auctions: Any, _: Any) -> Any:
    start = COL("date_time").dt.truncate("10s")
    sellers = auctions.select(id="seller", start=start).unique()
    return people.select("id", "name", start=start).unique().join(sellers, on=["id", "start"])


def q11(_: Any, __: Any, bids: Any) -> Any:
    first = (COL("date_time").diff() > pl.duration(seconds=10)).cum_sum().fill_null(0).over("bidder")
    sessions = bids.select("bidder", "date_time", session=first).group_by("bidder", "session")
    return sessions.agg(start=COL("date_time").min(), end=COL("date_time").max(), bids=pl.len())


def q17(_: Any, __: Any, bids: Any) -> Any:
    price = COL("price")
    ranks = [price < 10_000, (price >= 10_000) & (price < 1_000_000), price >= 1_000_000]
    return bids.group_by("auction", day=COL("date_time").dt.date()).agg(
        pl.len(), *(holds.sum().alias(f"rank{n}") for n, holds in enumerate(ranks, 1)),
        least=price.min(), most=price.max(), mean=price.mean(), sum=price.sum(),
    )  # fmt: skip


def q18(_: Any, __: Any, bids: Any) -> Any:
    return bids.unique(["bidder", "auction"], keep="last")


def q20(_: Any, auctions: Any, bids: Any) -> Any:
    joined = bids.join(auctions.filter(COL("category") == 10), left_on="auction", right_on="id", suffix="_of_auction")
    return joined.select("auction", "bidder", "price", "date_time", "item_name", "initial_bid", "expires", "seller")


IN_POLARS: dict[str, Callable[[Any, Any, Any], Any]] = {
    query.__name__: query for query in (q1, q2, q3, q4, q5, q7, q8, q11, q17, q18, q20)
}
