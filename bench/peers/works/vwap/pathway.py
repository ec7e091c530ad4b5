"""VWAP in Pathway: the rows of each symbol in order, folded by a user's function: it has no keyed state."""

# mypy: disable-error-code="misc, untyped-decorator"
# ruff: noqa: ARG005 -- what Pathway calls has the parameters that Pathway gives

from collections.abc import Callable
from pathlib import Path

import pathway as pw


class Row(pw.Schema):
    at: int
    is_trade: int
    symbol: str
    price: int
    volume: int


def folded(rows: tuple[tuple[int, int, int, int], ...]) -> tuple[int, int]:
    value = total = count = index = 0
    for _, is_trade, price, volume in rows:
        if is_trade:
            value += price * volume
            total += volume
        elif value > price * total:
            count += 1
            index += (value - price * total) * volume // total
    return count, index


def prepare(path: str) -> Callable[[], dict[str, tuple[int, int]]]:
    lines = [line.split(",") for line in Path(path).read_text().splitlines()[1:]]
    rows = [(at, int(r[0]), r[1], int(r[2]), int(r[3])) for at, r in enumerate(lines)]
    out: dict[str, tuple[int, int]] = {}

    def run() -> dict[str, tuple[int, int]]:
        pw.internals.parse_graph.G.clear()
        table = pw.debug.table_from_rows(Row, rows)
        packed = table.select(table.symbol, row=pw.make_tuple(table.at, table.is_trade, table.price, table.volume))
        grouped = packed.groupby(packed.symbol).reduce(packed.symbol, rows=pw.reducers.sorted_tuple(packed.row))
        sums = grouped.select(grouped.symbol, sums=pw.apply(folded, grouped.rows))
        pw.io.subscribe(sums, lambda key, row, time, is_addition: out.__setitem__(row["symbol"], row["sums"]))
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        return out

    return run


def result(raw: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    return {symbol: (count, index) for symbol, (count, index) in raw.items() if count}
