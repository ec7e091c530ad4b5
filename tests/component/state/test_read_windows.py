"""`rel.read_snapshot` of windows, sessions and joins, against what was put in."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import rayelastic as rel
from rayelastic.errors import StateError
from tests.component.connectors.behind_gate import behind_gate
from tests.raising import raises


class Row(NamedTuple):
    key: str | None
    at: int
    n: int


ROWS = [Row(None if n % 5 == 0 else f"key number {n % 3}", n, n) for n in range(100)]


def saved(declare: Any, folder: Path, key: bytes | None = None) -> Any:
    """What a job has when it has taken all rows, and its stream hasn't ended; signed with a key, if there is one."""
    with behind_gate(ROWS, declare) as job:
        return rel.read_snapshot(job.snapshot(rel.Snapshot(folder / "saved", key=key)))


def by_time(rows: Any) -> None:
    timed = rows.event_time("at", name="time").key_by("key")
    timed.window(seconds=40).aggregate(name="panes", n=rel.sum("n"), least=rel.min("at")).sink(rel.list(), name="a")
    timed.session(gap=10).aggregate(name="sessions", n=rel.count()).sink(rel.list(), name="b")
    halves = timed.window(assign=lambda t: [(0, 50), (0, 200)] if t.at < 50 else [(0, 200)])
    halves.aggregate(name="halves", n=rel.sum("n")).sink(rel.list(), name="d")
    rows.key_by("key").window(count=1000).aggregate(name="counted", n=rel.sum("n")).sink(rel.list(), name="c")


def test_open_windows_are_shown_as_they_would_be_given(tmp_path: Path) -> None:
    states = saved(by_time, tmp_path)
    keys = {row.key for row in ROWS}
    expected = {(key, 80): [r.n for r in ROWS if r.key == key and r.at >= 80] for key in keys}
    panes = {(row["key"], row["start"]): (row["n"], row["least"]) for row in states["panes"].to_pylist()}
    assert panes == {at: (sum(each), min(each)) for at, each in expected.items()}
    sessions = {row["key"]: row["n"] for row in states["sessions"].to_pylist()}
    assert sessions == {key: sum(row.key == key for row in ROWS) for key in keys}
    halves = {(row["key"], row["start"], row["end"]): row["n"] for row in states["halves"].to_pylist()}
    assert halves == {(key, 0, 200): sum(row.n for row in ROWS if row.key == key) for key in keys}
    counted = {row["key"]: row["n"] for row in states["counted"].to_pylist()}
    assert counted == {key: sum(row.n for row in ROWS if row.key == key) for key in keys}


def folded(rows: Any) -> None:
    timed = rows.event_time("at", name="time").key_by("key")
    timed.window(seconds=40).fold(lambda n, t: n + t.n, 0, name="sums").sink(rel.list(), name="a")
    timed.session(gap=10).fold(lambda n, t: n + 1, 0, name="counts").sink(rel.list(), name="b")
    timed.window(count=1000, within=1000).fold(lambda n, t: n + 1, 0, name="batches").sink(rel.list(), name="c")


def test_open_windows_of_functions_are_shown_with_what_they_have_accumulated(tmp_path: Path) -> None:
    """Of the tuples that the watermark has reached."""
    with behind_gate(ROWS, folded) as job:
        sums = {key: dict(windows) for key, windows in job.state("sums").items(limit=10)}
        states = rel.read_snapshot(job.snapshot(rel.Snapshot(tmp_path / "saved", key=b"k" * 32)))
    seen = [row for row in ROWS if row.at < 99]
    keys = {row.key for row in ROWS}
    expected = {(key, 80, 120): sum(r.n for r in seen if r.key == key and r.at >= 80) for key in keys}
    assert sums == {key: {(start, end): n} for (key, start, end), n in expected.items()}
    shown = states["sums"].to_pylist()
    assert {(row["key"], row["start"], row["end"]): row["value"] for row in shown} == expected
    counts = {row["key"]: row["value"] for row in states["counts"].to_pylist()}
    assert counts == {key: sum(row.key == key for row in seen) for key in keys}
    batches = {row["key"]: row["value"] for row in states["batches"].to_pylist()}
    assert batches == counts


def joined(rows: Any) -> None:
    timed = rows.event_time("at", name="time").key_by("key")
    other = rows.filter(lambda t: t.n % 2 == 1, name="odd").event_time("at", name="odd_time").key_by("key")
    timed.join(other, name="interval", within=(20, 5), how="full").sink(rel.list(), name="a")
    even = rows.filter(lambda t: t.n % 2 == 0, name="even").key_by("key")
    rows.key_by("key").join(even, name="latest", by="arrival", keep="latest").sink(rel.list(), name="b")
    rows.key_by("key").join(even, name="pairs", how="full").sink(rel.list(), name="c")


def test_tuples_that_a_join_keeps_are_shown_by_side(tmp_path: Path) -> None:
    states = saved(joined, tmp_path)
    kept = states["interval"]
    assert kept.column_names[:4] == ["side", "key", "at", "n"]
    lefts = [row for row in kept.to_pylist() if row["side"] == "left"]
    rights = [row for row in kept.to_pylist() if row["side"] == "right"]
    watermark = 98
    waiting = [(row.key, row.at, None) for row in ROWS if row.at + 5 > watermark]
    assert [(row["key"], row["at"], row["right_n"]) for row in lefts] == waiting
    assert {row["right_at"] for row in rights} == {at for at in range(100) if at % 2 and at + 20 + 5 > watermark}
    assert all(row["n"] is None for row in rights)
    latest = {row["right_key"]: row["right_n"] for row in states["latest"].to_pylist() if row["side"] == "right"}
    assert latest == {row.key: row.n for row in ROWS if row.n % 2 == 0 and row.key is not None}
    pairs = states["pairs"].to_pylist()
    assert {row["n"] for row in pairs if row["side"] == "left"} == {row.n for row in ROWS if row.key is not None}
    assert sum(row["side"] == "right" for row in pairs) == sum(row.n % 2 == 0 for row in ROWS if row.key is not None)


def test_windows_of_a_running_job_are_not_looked_up_by_key() -> None:
    with behind_gate(ROWS, by_time) as job, raises(StateError, "state-not-readable"):
        job.state("panes").get("key number 1")
