"""DuckDB's answers, and whether a result is one."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pyarrow as pa

from bench.nexmark.events import Events
from bench.nexmark.sql import SQL

ROUNDING = 1e-12  # relative; of means, whose last digit depends on the order of additions


def connected(events: Events, threads: int = 1) -> duckdb.DuckDBPyConnection:
    """Return a connection that sees the events."""
    connection = duckdb.connect(config={"threads": threads})
    for name in ("people", "auctions", "bids"):
        connection.register(name, getattr(events, name))
    return connection


def difference(name: str, result: Any, events: Events) -> str:
    """Return how a query's result differs from DuckDB's; empty: it has the same rows.

    The order of rows doesn't count. q5 may emit any of the auctions that have the most bids. q12 goes by the clock, so
    only its totals are compared.
    """
    right = connected(events).sql(SQL[name]).to_arrow_table()
    if name == "q12":
        result = result.group_by("bidder").aggregate([("value", "sum")]).rename_columns(right.schema.names)
    if result.schema.names != right.schema.names:
        return f"fields {result.schema.names}, not {right.schema.names}"
    mine, theirs = _rows(result), _rows(right)
    if name == "q5":
        windows = {row[0] for row in theirs}
        missing = set(mine) - set(theirs)
        if missing or {row[0] for row in mine} != windows or len(mine) != len(windows):
            return f"{len(mine)} rows, not one for each of {len(windows)} windows; wrong: {sorted(missing)[:3]}"
        return ""
    if len(mine) != len(theirs):
        return f"{len(mine):,} rows, not {len(theirs):,}"
    for row, other in zip(mine, theirs, strict=True):
        if row != other and not all(map(_equal, row, other)):
            return f"{row}, not {other}"
    return ""


def _rows(table: Any) -> list[tuple[Any, ...]]:
    columns = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in table.columns]
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True), key=repr)


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=ROUNDING)
    return bool(value == other)
