"""A job with all defaults on hosts with disks of their own, for those who switch them off.

    python -m tests.cluster.node_loss submit FOLDER ROWS PAD PER_SECOND [apart] [SERVER]
    python -m tests.cluster.node_loss watch

`submit` ends once the job runs; `watch` follows it, from any host, and prints a line of JSON for each state of it.
With a PostgreSQL server's conninfo the rows go there, else to Parquet files.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import rayelastic as rel
from rayelastic.errors import RayelasticError
from tests.waiting import wait_until_taken

NAME, TABLE = "loss", "losses"
KEYS = 101


def topology(folder: Path, rows: int, pad: int, per_second: int, server: str = "") -> rel.Topology:
    """Count each row by key, beside bytes that don't compress, so many for each key."""

    def counted(t: Any, s: dict[str, Any]) -> tuple[int, int, int]:
        if not s:
            s["all"], s["pad"] = 0, random.randbytes(pad)
        s["all"] += 1
        return t.key, t.n, s["all"]

    made = rel.Topology(NAME)
    numbers = made.source(rel.sequence(rows), name="numbers").throttle(per_second, name="throttle")
    keyed = numbers.map(lambda t: (t.value % KEYS, t.value), name="keyed", schema={"key": int, "n": int}).key_by("key")
    counts = keyed.map(counted, name="counts", state=dict, schema={"key": int, "n": int, "all": int})
    counts.sink(rel.postgres(server, TABLE) if server else rel.parquet(folder / "out"), name="out")
    return made


def problem_of(folder: Path, rows: int, server: str = "") -> str:
    """Return what is wrong with the rows in the files or the table; empty: each is there once, with its count."""
    if server:
        import psycopg

        with psycopg.connect(server) as connection:
            seen = Counter(connection.execute(f'SELECT n, "all" FROM {TABLE}').fetchall())
    else:
        from pyarrow import parquet

        table = parquet.read_table(folder / "out")
        seen = Counter(zip(table["n"].to_pylist(), table["all"].to_pylist(), strict=True))
    right = Counter((n, n // KEYS + 1) for n in range(rows))
    return "" if seen == right else f"missing {list(right - seen)[:5]}, extra {list(seen - right)[:5]}"


def submit(topology: rel.Topology, *, apart: bool) -> None:
    """Submit the job, of three processes on several hosts if they shall be apart; return once it has a checkpoint."""
    config = rel.JobConfig(pes={"counts": 1, "out": 2}) if apart else rel.JobConfig()
    job = rel.submit(topology, config)
    wait_until_taken(job, 1)


def watch() -> None:
    """Print the states of the job until it is over."""
    job = rel.attach(NAME)
    last = ""
    while True:
        try:
            status = job.status
            counters = status.checkpoints
            line = {
                "state": status.state.value,
                "problem": status.failure.reason if status.failure else "",
                "code": str(status.failure.code) if status.failure else "",
                "nodes": sorted({pe.node for pe in status.pes}),
                "taken": counters.taken,
                "restarts": counters.restarts,
                "copied": counters.copied_bytes,
                "one_copy": counters.one_copy,
                "seconds": counters.seconds,
                "rows": job.metrics().operator("out").tuples_in // 1000,
            }
        except (RayelasticError, TimeoutError, KeyError) as error:
            line = {"state": "unknown", "problem": f"{error}"}
        text = json.dumps(line)
        if text != last:
            sys.stdout.write(json.dumps(line | {"at": time.time()}) + "\n")
            sys.stdout.flush()
        last = text
        if line["state"] in ("finished", "failed", "cancelled"):
            return
        job.pause(0.1)


if __name__ == "__main__":
    if sys.argv[1] == "submit":
        of_server = next((argument for argument in sys.argv[6:] if "host=" in argument), "")
        rows, pad, per_second = map(int, sys.argv[3:6])
        declared = topology(Path(sys.argv[2]), rows, pad, per_second, of_server)
        submit(declared, apart="apart" in sys.argv)
    else:
        watch()
