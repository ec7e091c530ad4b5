"""The page of Nexmark, and the table that the command prints: medians by query and system."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
OTHERS = ("duckdb", "polars", "flink")

INTRODUCTION = """\
The [queries of Nexmark](https://github.com/nexmark/nexmark) in plain Python functions with default settings
(`bench/nexmark/queries.py`), in one run beside others: DuckDB on one thread, Polars' streaming engine with its own
number of threads, Flink 2.3 SQL in one JVM. All read the same events as columns in memory. Our result of each query is
compared with DuckDB's, row by row; a test does the same. Flink's results aren't compared.
<!-- test: tests/component/operators/test_nexmark.py -->

Rates are M rows that the query reads, per second of CPU time of the whole process: per core. In brackets: cores used.
Systems take turns; of several rounds the median is shown.

- All but Flink read the events once, and have warmed up on a few. None takes checkpoints.
- Flink runs with one slot, object reuse, mini-batches and state on the heap, for 10 s after 8 s of warm-up. Its sources
  repeat the events without end, with ids and times that go on, and watermarks within 10 s of each other. Its windows
  take `ROW_NUMBER`, which is faster than the public form.
- A query that copies nothing, such as q0 in Polars, has no row.
- q3, q13 and q20 join as in SQL, where the bounded right side is read first. Flink keeps both sides of q3.
- q4, q6 and q9 join each bid with its auction as of the bid's time. q6 keeps ten prices of a seller in Python.
- q5 emits one of the auctions that have the most bids. q12 goes by the clock and runs in Python; only its totals are
  compared.
- q10 has the columns of the partitions, and writes no files. q15 to q19 emit once, at the end of the input.
"""


def nexmark_page(rows: Rows) -> Iterator[str]:
    """Yield the page's lines after its head."""
    if not rows:
        yield "Not run: `./dev bench nexmark`."
        return
    yield from INTRODUCTION.splitlines()
    yield ""
    commits, dates = (sorted({str(row[what]) for row in rows}) for what in ("commit", "date"))
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]]))
    last = {str(row["query"]): int(row["round"]) + 1 for row in sorted(rows, key=lambda row: int(row["round"]))}
    rounds = "; ".join(f"{count} of {queries_of(last, count)}" for count in sorted({*last.values()}))
    yield f"{int(rows[0]['events']):,} events; {rows[0]['machine']}; made {when}, commit {', '.join(commits)}."
    yield f"Rounds: {rounds}."
    yield "Where one core at most was used and far less than it, other work shared the CPUs."
    yield ""
    yield from nexmark_table(rows)
    yield ""
    for row in rows:
        if row["failed"]:
            yield f"- {row['query']} in {row['system']} failed: {row['failed']}"


def queries_of(rounds: dict[str, int], count: int) -> str:
    """Return the queries with that many rounds: by name, or as the others where they are more than half."""
    queries = [query for query in rounds if rounds[query] == count]
    if len(queries) == len(rounds):
        return "each query"
    return ", ".join(queries) if 2 * len(queries) <= len(rounds) else "the others"


def nexmark_table(rows: Rows) -> Iterator[str]:
    """Yield a table: M rows/s a core of each system, and how many times faster rayelastic is."""
    shown = [name for name in OTHERS if any(row["system"] == name for row in rows)]
    yield f"| query | asks | rayelastic | {' | '.join(f'{name} | faster by' for name in shown)} |"
    yield "|---" * (3 + 2 * len(shown)) + "|"
    for query in sorted({row["query"] for row in rows}, key=lambda name: int(name[1:])):
        of_query = [row for row in rows if row["query"] == query and not row["failed"]]
        ours = rate(of_query, "rayelastic")
        cells = [query, next((str(row["asks"]) for row in of_query), ""), cell(of_query, "rayelastic")]
        for name in shown:
            theirs = rate(of_query, name)
            cells += [cell(of_query, name), f"{ours / theirs:.2g}x" if ours and theirs else ""]
        yield f"| {' | '.join(cells)} |"


def rate(rows: Rows, system: str) -> float:
    """Return the median of M rows by second of CPU time; 0: no run.

    >>> rate([{"system": "a", "read": 3_000_000, "cpu_seconds": 1.5}], "a"), rate([], "a")
    (2.0, 0.0)
    """
    found = [float(row["read"]) / float(row["cpu_seconds"]) / 1e6 for row in rows if row["system"] == system]
    return statistics.median(found) if found else 0.0


def cell(rows: Rows, system: str) -> str:
    """Return the rate and the cores used."""
    cores = [float(row["cpu_seconds"]) / float(row["seconds"]) for row in rows if row["system"] == system]
    return f"{rate(rows, system):.3g} [{statistics.median(cores):.1f}]" if cores else ""
