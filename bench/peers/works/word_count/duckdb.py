"""Word count in DuckDB, in batch, over a table of lines in memory, to an Arrow table. The yardstick."""

from collections.abc import Callable

import duckdb
import pyarrow as pa

QUERY = "select word, count(*) as n from (select unnest(string_split(line, ' ')) as word from lines) group by word"


def prepare(path: str) -> Callable[[], pa.Table]:
    connection = duckdb.connect()
    source = f"read_csv('{path}', header = false, columns = {{'line': 'varchar'}}, delim = '\\t', quote = '')"
    connection.execute(f"create table lines as select * from {source}")
    return lambda: connection.execute(QUERY).to_arrow_table()


def result(raw: pa.Table) -> dict[str, int]:
    return dict(zip(raw["word"].to_pylist(), raw["n"].to_pylist(), strict=True))
