"""The best offers of each product, from updates of an order book: where they change, the spread between them.

After orderbook.py of Bytewax's examples. `python examples/ported/orderbook.py`
"""

from __future__ import annotations

import tempfile
from typing import NamedTuple

import rayelastic as rel

WIDE = 0.001  # spread, as a part of the price


class Message(NamedTuple):
    """An update: of each change the side, the price and the size."""

    product: str
    changes: list[list[str]]


class Summary(NamedTuple):
    """The best offers of a product."""

    product: str
    bid: float
    bid_size: float
    ask: float
    ask_size: float
    spread: float


Book = dict[str, dict[float, float]]  # sizes by price, of either side


def empty() -> Book:
    """Return a book without offers."""
    return {"buy": {}, "sell": {}}


def update(t: Message, book: Book) -> list[tuple[str, float, float, float, float, float]]:
    """Change a book, and return the best offers."""
    for side, at, offered in t.changes:
        price, size = float(at), float(offered)
        if size:
            book[side][price] = size
        else:
            book[side].pop(price, None)
    bids, asks = book["buy"], book["sell"]
    if not bids or not asks:
        return []
    bid, ask = max(bids), min(asks)
    return [(t.product, bid, bids[bid], ask, asks[ask], ask - bid)]


def build(path: str) -> rel.Topology:
    """Return the topology, for a file with a message a line, as JSON."""
    topology = rel.Topology("orderbook")
    messages = topology.source(rel.json(path, schema=Message), name="messages").key_by("product")
    best = messages.flat_map(update, name="book", state=empty, schema=Summary)
    best.filter(lambda t: t.spread / t.ask > WIDE, name="wide").sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write('{"product": "BTC", "changes": [["buy", "99", "1"], ["sell", "101", "2"]]}\n')
        file.write('{"product": "BTC", "changes": [["buy", "100.95", "1"]]}\n')
        file.flush()
        for one in rel.run(build(file.name))["out"]:
            print(one)
