"""The best offers of each product, from updates of an order book: where they change, the spread between them.

After orderbook.py of Bytewax's examples. `python examples/ported/orderbook.py`
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import rayelastic as rel

WIDE = 0.001  # spread, as a part of the price


class Message(NamedTuple):
    """An update, as text."""

    product: str
    json: str


class Summary(NamedTuple):
    """The best offers of a product."""

    product: str
    bid: float
    bid_size: float
    ask: float
    ask_size: float
    spread: float


def update(t: Message, book: dict[str, Any]) -> Iterator[Summary]:
    """Changes a book, and tells the best offers."""
    bids, asks = book.setdefault("buy", {}), book.setdefault("sell", {})
    for side, price, size in json.loads(t.json)["changes"]:
        if float(size) == 0:
            book[side].pop(float(price), None)
        else:
            book[side][float(price)] = float(size)
    if bids and asks:
        bid, ask = max(bids), min(asks)
        yield Summary(t.product, bid, bids[bid], ask, asks[ask], ask - bid)


def build(rows: Sequence[Message]) -> rel.Topology:
    """The topology."""
    topology = rel.Topology("orderbook")
    messages = topology.source("messages", rel.rows(list(rows), schema=Message)).key_by("product")
    best = messages.flat_map("book", update, state=dict, schema=Summary)
    best.filter("wide", lambda t: t.spread / t.ask > WIDE).sink("out", rel.list())
    return topology


if __name__ == "__main__":
    messages = [
        Message("BTC", json.dumps({"changes": [["buy", "99", "1"], ["sell", "101", "2"]]})),
        Message("BTC", json.dumps({"changes": [["buy", "100.95", "1"]]})),
    ]
    for one in rel.run(build(messages))["out"]:
        print(one)
