"""As Bytewax's orderbook.py writes it, over rows in memory in batches of 1,000."""

import json
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource

Book = dict[str, dict[float, float]]


def update(book: Book | None, text: str) -> tuple[Book, tuple[float, ...] | None]:
    book = book if book is not None else {"buy": {}, "sell": {}}
    for side, price, size in json.loads(text)["changes"]:
        if float(size) == 0:
            book[side].pop(float(price), None)
        else:
            book[side][float(price)] = float(size)
    bids, asks = book["buy"], book["sell"]
    if not bids or not asks:
        return book, None
    bid, ask = max(bids), min(asks)
    return book, (bid, bids[bid], ask, asks[ask], ask - bid)


def declare(path: str, out: list[Any]) -> Dataflow:
    lines = Path(path).read_text().splitlines()
    flow = Dataflow("orderbook")
    rows = [(json.loads(line)["product"], line) for line in lines]
    messages = op.input("messages", flow, TestingSource(rows, batch_size=1_000))
    best = op.stateful_map("book", messages, update)
    made = op.filter("wide", best, lambda one: one[1] is not None and one[1][4] / one[1][2] > 0.001)
    op.output("out", made, TestingSink(out))
    return flow


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((product, *summary) for product, summary in raw)))
