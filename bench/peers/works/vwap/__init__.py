"""VWAP with bargain index: trades make the volume-weighted mean of their symbol, quotes below it are bargains.

One stream of trades and quotes of 500 symbols, whole numbers throughout (cents): all systems find the very same.
The result is, for each symbol, how many bargains there were and the sum of their indices.
"""

from __future__ import annotations

import random
from pathlib import Path

from bench.peers.work import Work

ROWS = 2_000_000
SYMBOLS = 500
SEED = 20_191


def write_input(path: Path, rows: int) -> None:
    """Write that many trades and quotes, in turns at random, as CSV."""
    generator = random.Random(SEED)
    symbols = [f"S{number:03d}" for number in range(SYMBOLS)]
    means = {symbol: generator.randint(1_000, 50_000) for symbol in symbols}
    with path.open("w") as file:
        file.write("is_trade,symbol,price,volume\n")
        for _ in range(rows):
            symbol = generator.choice(symbols)
            price = means[symbol] + generator.randint(-100, 100)
            file.write(f"{generator.randint(0, 1)},{symbol},{price},{generator.randint(1, 1_000)}\n")


WORK = Work(
    name="vwap",
    description="volume-weighted mean and bargains of each symbol, by user functions with keyed state",
    items=ROWS,
    item="row",
    tuples=ROWS,
    tuple_name="rows",
    suffix=".csv",
    write_input=write_input,
)
