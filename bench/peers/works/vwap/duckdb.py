"""VWAP in DuckDB, in batch, to an Arrow table: window functions over each symbol. The yardstick."""

from collections.abc import Callable

import duckdb
import pyarrow as pa

QUERY = """
    select symbol, count(*) as n, sum(((value - price * total) * volume) // total)::bigint as index
    from (
        select *, sum(is_trade * price * volume) over w::bigint as value, sum(is_trade * volume) over w::bigint as total
        from trades window w as (partition by symbol order by place rows unbounded preceding)
    )
    where is_trade = 0 and value > price * total
    group by symbol
"""


def prepare(path: str) -> Callable[[], pa.Table]:
    connection = duckdb.connect()
    connection.execute(
        f"create table trades as select *, row_number() over () as place from read_csv('{path}', parallel = false)"
    )
    return lambda: connection.execute(QUERY).to_arrow_table()


def result(raw: pa.Table) -> dict[str, tuple[int, int]]:
    return {row["symbol"]: (row["n"], row["index"]) for row in raw.to_pylist()}
