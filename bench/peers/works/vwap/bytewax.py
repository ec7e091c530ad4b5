"""VWAP in Bytewax: stateful_map by symbol, then the bargains are counted and added up; batches of 1,000."""

import csv
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource

Row = tuple[bool, str, int, int]


def mean(state: tuple[int, int] | None, row: Row) -> tuple[tuple[int, int], int | None]:
    is_trade, _, price, volume = row
    value, total = state or (0, 0)
    if is_trade:
        return (value + price * volume, total + volume), None
    if value > price * total:
        return (value, total), (value - price * total) * volume // total
    return (value, total), None


def added(state: tuple[int, int], index: int) -> tuple[int, int]:
    return state[0] + 1, state[1] + index


def declare(path: str, out: list[Any]) -> Dataflow:
    with Path(path).open() as file:
        rows = [(r[0] == "1", r[1], int(r[2]), int(r[3])) for r in list(csv.reader(file))[1:]]
    flow = Dataflow("vwap")
    source = op.input("rows", flow, TestingSource(rows, batch_size=1_000))
    keyed = op.key_on("symbol", source, lambda row: row[1])
    indices = op.stateful_map("mean", keyed, mean)
    found = op.filter("bargains", indices, lambda pair: pair[1] is not None)
    sums = op.fold_final("sums", found, lambda: (0, 0), added)
    op.output("out", sums, TestingSink(out))
    return flow


def result(raw: list[tuple[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    return dict(raw)
