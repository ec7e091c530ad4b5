"""Word count in DuckDB, in batch, over a table of lines in memory. The yardstick."""

from collections.abc import Callable

import duckdb

QUERY = "select word, count(*) from (select unnest(string_split(line, ' ')) as word from lines) group by word"


def prepare(path: str) -> Callable[[], list[tuple[str, int]]]:
    connection = duckdb.connect()
    source = f"read_csv('{path}', header = false, columns = {{'line': 'varchar'}}, delim = '\\t', quote = '')"
    connection.execute(f"create table lines as select * from {source}")
    return lambda: connection.execute(QUERY).fetchall()


def result(raw: list[tuple[str, int]]) -> dict[str, int]:
    return dict(raw)
