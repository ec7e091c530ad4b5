"""VWAP in plain Python: a loop and dicts."""

import csv
from collections.abc import Callable
from pathlib import Path


def prepare(path: str) -> Callable[[], dict[str, list[int]]]:
    with Path(path).open() as file:
        rows = [(r[0] == "1", r[1], int(r[2]), int(r[3])) for r in list(csv.reader(file))[1:]]

    def run() -> dict[str, list[int]]:
        means: dict[str, list[int]] = {}
        bargains: dict[str, list[int]] = {}
        for is_trade, symbol, price, volume in rows:
            mean = means.setdefault(symbol, [0, 0])
            if is_trade:
                mean[0] += price * volume
                mean[1] += volume
            elif mean[0] > price * mean[1]:
                found = bargains.setdefault(symbol, [0, 0])
                found[0] += 1
                found[1] += (mean[0] - price * mean[1]) * volume // mean[1]
        return bargains

    return run


def result(raw: dict[str, list[int]]) -> dict[str, tuple[int, int]]:
    return {symbol: (count, index) for symbol, (count, index) in raw.items()}
