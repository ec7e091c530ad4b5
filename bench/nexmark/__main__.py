"""Measures the queries of Nexmark on several systems in turn, and prints one table.

Each run is a process of its own that has warmed up on few events; Flink's is a JVM that has run for 8 s. Rates are rows
that a query reads, by second of CPU time. Every measurement goes to bench/results, where `./dev bench page` finds it.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.harness import arguments_of
from bench.nexmark import in_flink
from bench.nexmark.answers import difference
from bench.nexmark.events import events
from bench.nexmark.in_polars import IN_POLARS
from bench.nexmark.measure import load, save
from bench.nexmark.page import nexmark_table
from bench.nexmark.queries import QUERIES, run
from bench.provenance import ROOT, stamp

RESULTS = ROOT / "bench" / "results"
SYSTEMS = ("rayelastic", "duckdb", "polars", "flink")
TIMEOUT = 300  # seconds for one run
CHECKED, CHECKED_RATE = 100_000, 1_000  # events whose results are compared, and how many there are in a second

Row = dict[str, Any]


def main() -> int:
    parser = arguments_of("nexmark", __doc__)
    parser.add_argument("--events", type=int, default=2_000_000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the events (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds over all systems (default: %(default)s)")
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=[*QUERIES], metavar="QUERY")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=[*SYSTEMS], metavar="SYSTEM")
    parser.add_argument("--list", action="store_true", help="what each query asks, and how it runs")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name}: {query.asks}" for name, query in QUERIES.items()))
        return 0
    folder = RESULTS / "input" / f"nexmark-{options.events}-{options.seed}"
    if not (folder / "bids.arrow").exists():
        save(events(options.events, options.seed), folder)
    systems = [name for name in options.systems if name != "flink" or _has_flink(folder)]
    rows, wrong = measured(options, systems, folder), 0
    if "rayelastic" in systems:
        wrong = check(options.queries, options.seed)
    keep(rows)
    print("\n".join(nexmark_table(rows)))
    return 1 if wrong or any(row["failed"] for row in rows) else 0


def measured(options: argparse.Namespace, systems: list[str], folder: Path) -> list[Row]:
    """Run every query on every system, in turn."""
    rows, everything = [], load(folder)
    for query in options.queries:
        read = sum(getattr(everything, name).num_rows for name in QUERIES[query].reads)
        for number in range(options.rounds):
            for system in systems:
                if not _says(system, query) or (system == "flink" and number > 0):
                    continue  # a JVM's rate is that of 10 s, not of one run
                found = run_once(system, query, folder) | {"round": number, "asks": QUERIES[query].asks}
                rows.append(
                    {**stamp(), "events": options.events, "query": query, "system": system, "read": read} | found
                )
                print(f"{query} {system}: {found}", file=sys.stderr, flush=True)
    return rows


def run_once(system: str, query: str, folder: Path) -> Row:
    """Run a query once in a process of its own."""
    empty: Row = {"seconds": 0.0, "cpu_seconds": 0.0, "rows": "", "failed": ""}
    try:
        if system == "flink":
            return empty | in_flink.run(query, _columns(folder))
        command = [sys.executable, "-m", "bench.nexmark.measure", system, query, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=TIMEOUT, check=False)
    except (subprocess.TimeoutExpired, RuntimeError) as error:
        return empty | {"failed": str(error)[-300:]}
    if done.returncode:
        return empty | {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1][:300]}
    found: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return empty | found


def check(queries: list[str], seed: int) -> int:
    """Compare the results of queries with DuckDB's; return how many differ."""
    some, wrong = events(CHECKED, seed, CHECKED_RATE), 0
    for query in queries:
        if differs := difference(query, run(query, some), some):
            print(f"{query} DIFFERS: {differs}")
            wrong += 1
    print(f"{len(queries) - wrong} of {len(queries)} queries have DuckDB's rows over {CHECKED:,} events")
    return wrong


def keep(rows: list[Row]) -> None:
    """Write the measurements; those of queries and systems that weren't run again stay."""
    path = RESULTS / "nexmark.csv"
    again = {(str(row["query"]), row["system"]) for row in rows}
    old: list[Row] = []
    if path.exists():
        with path.open(newline="") as file:
            old = [row for row in csv.DictReader(file) if (row["query"], row["system"]) not in again]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows([*old, *rows])


def _says(system: str, query: str) -> bool:
    if system == "polars":
        return query in IN_POLARS
    if system == "flink":
        return query in in_flink.QUERIES
    return not (system == "duckdb" and query == "q12")  # no window by the clock


def _has_flink(folder: Path) -> bool:
    if lacks := in_flink.fetch():
        print(f"Flink is left out: {lacks} isn't here")
        return False
    if not (_columns(folder) / "laps").exists():
        in_flink.write_columns(load(folder), _columns(folder))
    return True


def _columns(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-columns")


if __name__ == "__main__":
    sys.exit(main())
