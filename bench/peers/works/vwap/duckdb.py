"""VWAP in DuckDB, in batch: window functions over each symbol. The yardstick."""

from collections.abc import Callable

import duckdb

QUERY = """
    select symbol, count(*), sum(((value - price * total) * volume) // total)::bigint
    from (
        select *, sum(is_trade * price * volume) over w::bigint as value, sum(is_trade * volume) over w::bigint as total
        from trades window w as (partition by symbol order by place rows unbounded preceding)
    )
    where is_trade = 0 and value > price * total
    group by symbol
"""


def prepare(path: str) -> Callable[[], list[tuple[str, int, int]]]:
    connection = duckdb.connect()
    connection.execute(
        f"create table trades as select *, row_number() over () as place from read_csv('{path}', parallel = false)"
    )
    return lambda: connection.execute(QUERY).fetchall()


def result(raw: list[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    return {symbol: (count, index) for symbol, count, index in raw}
