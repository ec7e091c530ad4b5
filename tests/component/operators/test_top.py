"""The best tuples of windows: against the same in Python, under every threading model, saved, moved and shown."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from tests.component.connectors.behind_gate import behind_gate
from tests.component.operators.running import CONFIGS, table_of
from tests.waiting import wait_until_emitted

PATIENCE = 60.0
ROW_BY_ROW = rel.JobConfig(threads=rel.Threads(model="manual", run_records=1))  # so the watermark follows each row
LONG = "a text that doesn't fit into a record, and has a number: "


class Row(NamedTuple):
    key: str
    at: int
    number: int
    price: float | None
    text: str | None
    paid: decimal.Decimal
    id: uuid.UUID
    day: dt.date
    raw: bytes


def row(number: int, key: str, at: int, value: int) -> Row:
    price = None if value == 0 else float("nan") if value == 1 else value / 2
    text = None if value == 2 else f"{LONG}{value % 5}" if value % 3 else str(value)
    raw = bytes([value]) * (value * 3)
    day = dt.date(2020, 1, 1 + value)
    return Row(
        key, at, value if value % 2 else number, price, text, decimal.Decimal(value), uuid.UUID(int=value), day, raw
    )


def rows_of(drawn: list[tuple[str, int, int]]) -> list[Row]:
    return [row(number, *each) for number, each in enumerate(drawn)]


ONE = st.tuples(st.sampled_from(["a", "the key of the second"]), st.integers(0, 40), st.integers(0, 9))
STREAMS = st.lists(ONE, max_size=40)
FIELDS = ["number", "price", "text", "paid", "id", "day", "raw"]
FRAMES: dict[str, Callable[[Any], Any]] = {
    "tumbling": lambda s: s.window(seconds=10),
    "sliding": lambda s: s.window(seconds=7, slide=3),
    "apart": lambda s: s.window(seconds=3, slide=7),
    "session": lambda s: s.session(gap=4),
    "assigned": lambda s: s.window(assign=lambda t: [(t.at // 9 * 9, t.at // 9 * 9 + 12), (0, 50)]),
}


def never(t: Any) -> bool:
    return False


def run(source: Any, declare: Callable[[Any], Any], lateness: int, config: Any = None) -> tuple[list[Any], list[Any]]:
    topology = rel.Topology("best")
    timed = topology.source(source, name="rows").event_time("at", name="time", lateness=lateness)
    best = declare(timed.key_by("key"))
    best.sink(rel.list(), name="out")
    best.late().sink(rel.list(), name="late")
    result = rel.run(topology, config or ROW_BY_ROW)
    return [tuple(t) for t in result["out"]], [tuple(t) for t in result["late"]]


@pytest.mark.parametrize("frame", FRAMES)
@settings(max_examples=12, deadline=None)
@given(STREAMS, st.sampled_from(FIELDS), st.sampled_from([1, 2, 5]), st.booleans(), st.sampled_from([0, 5, 50]))
def test_it_is_what_python_finds(
    frame: str, drawn: list[tuple[str, int, int]], by: str, k: int, least: bool, lateness: int
) -> None:
    """Nulls, NaNs, ties, long texts and late tuples included: `until=` makes it run in Python."""
    source = rel.arrow(table_of(Row, rows_of(drawn)), Row)
    native = run(source, lambda s: FRAMES[frame](s).top(k, by, least=least, name="best"), lateness)
    python = run(source, lambda s: FRAMES[frame](s).top(k, by, least=least, name="best", until=never), lateness)
    assert repr(native) == repr(python)


@pytest.mark.parametrize("slide", [10, 4])
@settings(max_examples=10, deadline=None)
@given(STREAMS, st.sampled_from([1, 3]))
def test_corrections_are_what_python_finds(slide: int, drawn: list[tuple[str, int, int]], k: int) -> None:
    source = rel.arrow(table_of(Row, [each._replace(number=n * 7 % 41) for n, each in enumerate(rows_of(drawn))]), Row)

    def best(**options: Any) -> tuple[list[Any], list[Any]]:
        return run(source, lambda s: s.window(seconds=10, slide=slide, lateness=8).top(k, "number", **options), 2)

    native, python = best(), best(until=never)
    assert sorted(map(repr, native[0])) == sorted(
        map(repr, python[0])
    )  # corrections of one tuple in the order of their ends
    assert repr(native[1]) == repr(python[1])


def test_sessions_that_a_late_tuple_merges() -> None:
    rows = [row(0, "a", 0, 3), row(1, "a", 10, 5), row(2, "a", 30, 3), row(3, "a", 5, 9)]
    found, late = run(rel.rows(rows), lambda s: s.session(gap=6, lateness=30).top(1, "id", name="best"), 0)
    assert [(t[1], t[2], t[3], t[5]) for t in found] == [
        (0, 6, False, 0),
        (10, 16, False, 10),
        (0, 16, True, 5),
        (30, 36, False, 30),
    ]
    assert late == []


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("frame", ["sliding", "session"])
def test_under_every_threading_model(frame: str, config: str) -> None:
    rows = rows_of([("abcdef"[n * n % 6], n // 12 + n % 4, n * 31 % 10) for n in range(1000)])
    source = rel.arrow(table_of(Row, rows), Row)
    found = run(source, lambda s: FRAMES[frame](s).top(2, "text", name="best"), 50, CONFIGS[config])
    expected = run(source, lambda s: FRAMES[frame](s).top(2, "text", name="best", until=never), 50)
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("frame", ["sliding", "session", "assigned"])
def test_what_is_open_is_in_snapshots(frame: str, tmp_path: Path) -> None:
    rows = rows_of([("ab"[n % 2], n // 2 + n // 30 * 5, n * 31 % 10) for n in range(80)])

    def topology_of(source: Any) -> rel.Topology:
        topology = rel.Topology("saved")
        timed = topology.source(source, name="rows").event_time("at", name="time").key_by("key")
        FRAMES[frame](timed).top(3, "text", name="best").sink(rel.list(), name="out")
        return topology

    gate = testing.Gate()
    job = rel.start(topology_of(testing.script([*rows[:41], gate], Row)), CONFIGS["manual"])
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_emitted(job, "rows", 41)
        snapshot = rel.Snapshot(tmp_path / "cut")
        before = job.stop(snapshot)["out"]
    finally:
        job.close()
    after = rel.run(topology_of(testing.script(rows, Row)), CONFIGS["manual"], restore=snapshot)["out"]
    whole = rel.run(topology_of(testing.script(rows, Row)), CONFIGS["manual"])["out"]
    assert 0 < len(before) < len(whole)
    assert repr([*before, *after]) == repr(whole)


def test_open_windows_are_shown_as_they_would_be_emitted(tmp_path: Path) -> None:
    rows = rows_of([("ab"[n % 2], n, n * 31 % 10) for n in range(60)])

    def declare(events: Any) -> None:
        timed = events.event_time("at", name="time").key_by("key")
        timed.window(seconds=100).top(2, "raw", name="best").sink(rel.list(), name="out")

    with behind_gate(rows, declare) as job:
        shown = rel.read_snapshot(job.snapshot(rel.Snapshot(tmp_path / "saved")))["best"].to_pylist()
    for key in "ab":
        placed = sorted((r for r in rows if r.key == key), key=lambda r: r.raw, reverse=True)[:2]
        assert [(t["place"], t["at"], t["text"]) for t in shown if t["key"] == key] == [
            (place, r.at, r.text) for place, r in enumerate(placed, start=1)
        ]


def test_windows_of_the_whole_stream_and_by_count() -> None:
    rows = rows_of([("ab"[n % 2], n, n * 31 % 10) for n in range(30)])
    topology = rel.Topology("whole")
    stream = topology.source(rel.rows(rows), name="rows")
    whole = stream.event_time("at", name="time").window(seconds=10).top(1, "id", name="whole")
    whole.sink(rel.list(), name="a")
    stream.key_by("key").window(count=4, slide=2).top(2, "id", name="counted").sink(rel.list(), name="b")
    result = rel.run(topology)
    bests = [max(rows[start : start + 10], key=lambda r: r.id) for start in (0, 10, 20)]
    assert [tuple(t)[:5] for t in result["a"]] == [
        (start, start + 10, 1, best.key, best.at) for start, best in zip((0, 10, 20), bests, strict=True)
    ]
    found: list[tuple[str, int, int]] = []
    for key in "ab":
        own = [r for r in rows if r.key == key]
        for start in range(0, len(own) - 3, 2):
            placed = sorted(own[start : start + 4], key=lambda r: r.id, reverse=True)[:2]
            found += [(key, place, r.at) for place, r in enumerate(placed, start=1)]
    assert sorted((t.key, t.place, t.at) for t in result["b"]) == sorted(found)


def test_many_of_a_window_that_grow_all_the_time() -> None:
    rows = [row(n, "a", n // 100, 3)._replace(number=n * n % 1009, text=LONG * (n % 7)) for n in range(3000)]
    found, _ = run(
        rel.arrow(table_of(Row, rows), Row), lambda s: s.window(seconds=100).top(700, "number", name="best"), 0
    )
    placed = sorted(rows, key=lambda r: -r.number)[:700]
    assert [(t[3], t[5], t[7]) for t in found] == [(place, r.number, r.text) for place, r in enumerate(placed, start=1)]


def test_explain_says_how_it_runs() -> None:
    topology = rel.Topology("explained")
    timed = topology.source(rel.rows([row(0, "a", 1, 3)]), name="rows").event_time("at", name="time").key_by("key")
    timed.window(seconds=10).top(3, "price", name="native", least=True).sink(rel.list(), name="a")
    timed.window(seconds=10).top(3, "price", name="early", every=2).sink(rel.list(), name="b")
    timed.window(count=3, within=9).top(3, "price", name="batch").sink(rel.list(), name="c")
    shown = " ".join(topology.explain().split())
    assert "native window built-in least 3 by price of windows of 10 s" in shown
    assert "early window python top in Python, of windows of 10 s; Python computes early results" in shown
    assert "batch window python top in Python, of batches of 3 tuples, or 9 s" in shown


def test_no_column_of_its_tuples_is_left_undecoded() -> None:
    topology = rel.Topology("columns")
    source = rel.arrow(table_of(Row, [row(0, "a", 1, 3)]), Row)
    timed = topology.source(source, name="rows").event_time("at", name="time")
    timed.window(seconds=10).top(1, "number", name="best").sink(rel.list(), name="out")
    assert [tuple(t)[3:] for t in rel.run(topology)["out"]] == [tuple(row(0, "a", 1, 3))]


def test_a_tuple_behind_the_watermark_is_late_as_in_python() -> None:
    rows = [row(n, "a", at, 3) for n, at in enumerate([1, 6, 4, 8])]
    native = run(rel.rows(rows), lambda s: s.window(seconds=10).top(4, "id"), 0)
    assert repr(native) == repr(run(rel.rows(rows), lambda s: s.window(seconds=10).top(4, "id", until=never), 0))
    assert [t[1] for t in native[1]] == [4]
