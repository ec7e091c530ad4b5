"""A savepoint as earlier versions wrote it: its topology, and how it was made. Savepoints name this module.

    git archive COMMIT | tar -x -C FOLDER    # the version, with a native extension and this file
    python -m tests.component.older_snapshot WHERE    # there

`state/snapshots/format_2` was written by the Python code of commit d5ffea5, the last one before files of state were
packed, with a later native extension, whose exports are the same. `state/snapshots/format_4` was written by the commit
that added it. A new format keeps it as it is, and adds another one.
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


class Quiet:
    """Counts the rows of a key until none has come for a while."""

    def on_tuple(self, t: Row, state: Last, out: rel.Out) -> None:
        state.rows += 1  # type: ignore[misc]
        out.timer(t.at + 7)

    def on_time(self, time: int, state: Last, out: rel.Out) -> None:
        out.give((time, state.rows))


def declare(source: Any, number: int = 4) -> rel.Topology:
    """Each kind of state that there was in a format."""
    topology = rel.Topology("older")
    rows = topology.source(source, name="rows")
    by_key = rows.key_by("key")
    seen: dict[str, Any] = {"rows": int, "before": str | None}
    by_key.map(last, name="record", state=Last, schema=seen, lane="compiled").sink(rel.list(), name="records")
    by_key.map(remember, name="value", state=dict, schema={"n": int, "sum": int}, lane="python").sink(
        rel.list(), name="values"
    )
    by_key.aggregate(name="all", n=rel.count(), texts=rel.distinct("at"), most=rel.max("n")).sink(
        rel.list(), name="totals"
    )
    timed = rows.event_time("at", name="timed", lateness=10).key_by("key")
    timed.window(seconds=40).aggregate(name="windows", n=rel.sum("n")).sink(rel.list(), name="panes")
    timed.session(gap=4).aggregate(name="sessions", n=rel.count()).sink(rel.list(), name="visits")
    odd = rows.filter(lambda t: t.n % 2 == 1, name="odd").event_time("at", name="odd_time", lateness=10).key_by("key")
    timed.join(odd, name="join", within=(20, 5), how="full").sink(rel.list(), name="pairs")
    rows.apply(Total(), name="object").sink(rel.list(), name="running")
    rows.switch(rows.filter(lambda t: t.n == 250, name="turn"), lambda t: True, name="switch", start=False).sink(
        rel.list(), name="switched"
    )
    if number >= 4:
        by_key.window(count=7, slide=2).aggregate(name="counts", n=rel.sum("n")).sink(rel.list(), name="counted")
        folds = timed.window(seconds=40).fold(lambda ns, t: [*ns, t.n], [], name="folds", schema={"ns": list[int]})
        folds.sink(rel.list(), name="folded")
        quiet: dict[str, Any] = {"at": int, "rows": int}
        timed.process(Quiet, name="timers", schema=quiet, state=Last, lane="compiled").sink(rel.list(), name="quiet")
        even = rel.Pattern("even", lambda t: t.n % 2 == 0)
        timed.match(even.then("odd", lambda t: t.n % 2 == 1, within=20), name="match").sink(rel.list(), name="found")
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
