"""Runs one query once on one system, in a process of its own, and prints what it took as one line of JSON.

python -m bench.nexmark.measure SYSTEM QUERY FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.nexmark.events import Events

WARM_UP = 20_000  # rows of each table for the first run, which fills caches of compiled code


def main(system: str, query: str, folder: str) -> None:
    everything = load(Path(folder))
    tables = (everything.people, everything.auctions, everything.bids)
    some = Events(*(table.slice(0, WARM_UP) for table in tables))
    runner = SYSTEMS[system]
    runner(query, some)()
    run = runner(query, everything)
    cpu, wall = time.process_time(), time.perf_counter()
    rows = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"seconds": wall, "cpu_seconds": cpu, "rows": rows}))


def load(folder: Path) -> Events:
    """Read the tables into memory."""
    return Events(*(pa.ipc.open_file(folder / f"{name}.arrow").read_all() for name in ("people", "auctions", "bids")))


def save(events: Events, folder: Path) -> None:
    """Write the tables as Arrow files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("people", "auctions", "bids"):
        table = getattr(events, name)
        with pa.ipc.new_file(folder / f"{name}.arrow", table.schema) as file:
            file.write_table(table)


def ours(query: str, events: Events) -> Callable[[], int]:
    """Return a run of a query with default settings; a topology runs once."""
    import rayelastic as rel
    from bench.nexmark.queries import declare

    topology = declare(query, events)
    return lambda: int(rel.run(topology)["out"].num_rows)


def duckdb(query: str, events: Events) -> Callable[[], int]:
    """Return a run of a query on one thread."""
    from bench.nexmark.answers import connected
    from bench.nexmark.sql import SQL

    connection = connected(events)
    return lambda: int(connection.sql(SQL[query]).to_arrow_table().num_rows)


def polars(query: str, events: Events) -> Callable[[], int]:
    """Return a run of a query in Polars' streaming engine, with the threads that Polars chooses."""
    import polars as pl

    from bench.nexmark.in_polars import IN_POLARS

    frames: list[Any] = [pl.from_arrow(table).lazy() for table in (events.people, events.auctions, events.bids)]  # type: ignore[union-attr]
    return lambda: int(IN_POLARS[query](*frames).collect(engine="streaming").height)


SYSTEMS = {"rayelastic": ours, "duckdb": duckdb, "polars": polars}

if __name__ == "__main__":
    main(*sys.argv[1:])
