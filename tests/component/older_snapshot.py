"""A savepoint as earlier versions wrote it: the topology that it is of, and how it was made.

    git archive COMMIT | tar -x -C FOLDER    # the version, with a native extension and this file
    python -m tests.component.older_snapshot WHERE    # there

`snapshots/format_2` was written by the Python code of commit d5ffea5, the last one before files of state were packed,
with a later native extension, whose exports are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import rayelastic as rel
from rayelastic import testing

KEY = b"of an older snapshot alone"
PATIENCE = 60.0
CUT = 170  # rows in front of it


class Row(NamedTuple):
    key: str | None
    at: int
    n: int


class Last(NamedTuple):
    rows: int = 0
    key: str | None = None


ROWS = [Row(None if n % 5 == 0 else f"a key of {n % 3}" if n % 2 else "key", n, n) for n in range(300)]


def last(t: Any, s: Any) -> tuple[int, str | None]:
    s.rows += 1
    before, s.key = s.key, t.key
    return s.rows, before


def remember(t: Row, kept: dict[str, Any]) -> tuple[int, int]:
    kept.setdefault("all", []).append(t.n)
    return t.n, sum(kept["all"])


@rel.operator(outputs={"out": {"total": int}})
class Total:
    def __init__(self) -> None:
        self.total = 0

    def invoke(self, t: Row) -> Iterator[tuple[int]]:
        self.total += t.n
        yield (self.total,)


def declare(source: Any) -> rel.Topology:
    """Each kind of state that there was."""
    topology = rel.Topology("older")
    rows = topology.source("rows", source)
    by_key = rows.key_by("key")
    seen: dict[str, Any] = {"rows": int, "before": str | None}
    by_key.map("record", last, state=Last, schema=seen, lane="compiled").sink("records", rel.list())
    by_key.map("value", remember, state=dict, schema={"n": int, "sum": int}, lane="python").sink("values", rel.list())
    by_key.aggregate("all", n=rel.count(), texts=rel.distinct("at"), most=rel.max("n")).sink("totals", rel.list())
    timed = rows.event_time("timed", "at", lateness=10).key_by("key")
    timed.window(seconds=40).aggregate("windows", n=rel.sum("n")).sink("panes", rel.list())
    timed.session(gap=4).aggregate("sessions", n=rel.count()).sink("visits", rel.list())
    odd = rows.filter("odd", lambda t: t.n % 2 == 1).event_time("odd_time", "at", lateness=10).key_by("key")
    timed.join("join", odd, within=(20, 5), how="full").sink("pairs", rel.list())
    rows.apply("object", Total()).sink("running", rel.list())
    rows.switch("switch", rows.filter("turn", lambda t: t.n == 250), lambda t: True, start=False).sink(
        "switched", rel.list()
    )
    return topology


def write(folder: Path) -> None:
    """Writes such a savepoint."""
    gate = testing.Gate()
    job = rel.start(declare(testing.script([*ROWS[:CUT], gate], Row)))
    try:
        assert gate.wait_reached(PATIENCE)
        job.snapshot(rel.Snapshot(folder, key=KEY))
    finally:
        gate.open()
        job.close()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
