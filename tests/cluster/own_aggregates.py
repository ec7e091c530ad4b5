"""A job with a user's own aggregates, an aggregate in two steps and JSON as its sinks; and its second start.

Used by test_own_aggregates_on_ray.py, whose second process calls `go_on`.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import rayelastic as rel

KEY = b"0123456789abcdef"
ROWS, KEYS, SIZE = 20_000, 23, 500
PES = {"events": 0, "totals.partial": 0, "summary": 1, "windows": 1, "listed": 1, "totals": 1, "lines": 2, "sums": 2}


class Event(NamedTuple):
    key: str
    at: int
    n: int
    word: str


class Seen(NamedTuple):
    rows: int = 0
    total: int = 0
    longest: str = ""


class Found(NamedTuple):
    rows: int
    total: int
    longest: str


class Summary:
    """Counts, sums, and keeps a text."""

    init = Seen

    def add(self, t: Any, state: Any) -> None:
        state.rows += 1
        state.total += t.n
        if (len(t.word), t.word) > (len(state.longest), state.longest):
            state.longest = t.word

    def merge(self, other: Any, state: Any) -> None:
        state.rows += other.rows
        state.total += other.total
        if (len(other.longest), other.longest) > (len(state.longest), state.longest):
            state.longest = other.longest

    def result(self, state: Any) -> Found:
        return Found(state.rows, state.total, state.longest)


class Listed:
    """Its state is a list, so it runs in Python."""

    def init(self) -> list[int]:
        return [0, 0]

    def add(self, t: Any, state: list[int]) -> None:
        state[0] += 1
        state[1] += t.n

    def result(self, state: list[int]) -> tuple[int, int]:
        return state[0], state[1]


def event(n: int) -> Event:
    """Words that fit a record and that don't."""
    return Event(f"k{n % KEYS}", n, n * 7919 % 1000 - 500, "w" * (n * 31 % 40))


def declared(name: str, folder: Path) -> rel.Topology:
    """The topology. The last rows come once there is a file `go`: so no job is over too early."""
    go = folder / "go"

    def events() -> Iterator[Event]:
        nobody = threading.Event()
        for n in range(ROWS):
            if n % 100 == 0:
                nobody.wait(0.005)
            while n == ROWS - 1000 and not go.exists():
                nobody.wait(0.02)
            yield event(n)

    topology = rel.Topology(name)
    keyed = (
        topology.source(rel.callable(events, schema=Event), name="events").event_time("at", name="time").key_by("key")
    )
    keyed.combine(Summary, name="summary", lane="compiled").sink(rel.list(), name="summaries")
    keyed.combine(Listed, name="listed", schema={"rows": int, "total": int}).sink(rel.list(), name="in_python")
    windows = keyed.window(seconds=SIZE).combine(Summary, name="windows", lane="compiled")
    windows.sink(rel.json(str(folder / "lines")), name="lines")
    totals = keyed.aggregate(name="totals", two_steps=True, rows=rel.count(), total=rel.sum("n"), word=rel.max("word"))
    totals.sink(rel.json(str(folder / "sums.jsonl")), name="sums")
    return topology


def left(folder: Path, result: Any) -> dict[str, list[list[Any]]]:
    """What a job has left in its sinks, in an order of its own."""
    texts = {
        "lines": "".join(part.read_text() for part in sorted((folder / "lines").glob("part-*"))),
        "sums": (folder / "sums.jsonl").read_text(),
    }
    found = {name: [list(json.loads(line).values()) for line in text.splitlines()] for name, text in texts.items()}
    found |= {name: [list(t) for t in result[name]] for name in ("summaries", "in_python")}
    return {name: sorted(rows) for name, rows in found.items()}


def expected() -> dict[str, list[list[Any]]]:
    """The same by plain Python."""
    keys: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
    windows: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for one in map(event, range(ROWS)):
        keys[(one.key,)].append(one)
        start = one.at // SIZE * SIZE
        windows[one.key, start, start + SIZE].append(one)

    def made(groups: dict[tuple[Any, ...], list[Event]]) -> list[list[Any]]:
        return sorted(
            [*key, len(some), sum(one.n for one in some), max((one.word for one in some), key=len)]
            for key, some in groups.items()
        )

    of_keys = made(keys)
    return {
        "lines": made(windows),
        "sums": of_keys,
        "summaries": of_keys,
        "in_python": [row[:3] for row in of_keys],
    }


def go_on(folder: str, address: str) -> None:
    """Goes on from the snapshot in a folder, and writes `told.json`: what is left, and whether it compiled."""
    snapshot = rel.Snapshot(Path(folder) / "stopped", key=KEY)
    job = rel.submit(declared("again", Path(folder)), rel.JobConfig(pes=PES), restore=snapshot, address=address)
    try:
        result = job.wait(120)
    finally:
        job.close()
    told = {"left": left(Path(folder), result), "compiled": "numba" in sys.modules}
    (Path(folder) / "told.json").write_text(json.dumps(told))
