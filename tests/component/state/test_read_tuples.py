"""`rel.read_snapshot` of patterns, cross joins, delays and classes, against what was put in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import StateError
from tests.component.connectors.behind_gate import behind_gate
from tests.component.state.test_read_windows import ROWS, Row, saved
from tests.raising import raises
from tests.waiting import wait_until_received

SECRET = b"of this test alone"
SMALL, LARGE = 3, 7


def matched(rows: Any) -> None:
    timed = rows.event_time("at", name="time", lateness=2).key_by("key")
    small = rel.Pattern("small", lambda t: t.n % 10 == 3)
    found = timed.match(
        small.then("large", lambda t: t.n % 10 == 7, within=200).then("end", lambda t: t.n > 1000, within=30),
        name="found",
    )
    found.sink(rel.list(), name="out")


def test_sequences_of_a_pattern_are_shown_by_their_tuples(tmp_path: Path) -> None:
    kept = saved(matched, tmp_path)["found"]
    assert kept.column_names == ["sequence", "step", "until", "key", "at", "n"]
    rows = kept.to_pylist()
    reached = max(row["at"] for row in rows if row["sequence"] is not None)
    assert [row["n"] for row in rows if row["sequence"] is None] == [97], "of what a step wants, behind the watermark"
    sequences = {
        number: [row for row in rows if row["sequence"] == number]
        for number in {row["sequence"] for row in rows if row["sequence"] is not None}
    }
    begun = {row.n for row in ROWS if row.n % 10 == SMALL and row.n <= reached}
    found = set()
    for number, each in sequences.items():
        first, *more = each
        assert (first["step"], first["n"] % 10) == ("small", SMALL), number
        assert [row["step"] for row in more] == ["large"][: len(more)]
        assert {row["key"] for row in each} == {first["key"]}
        last = each[-1]
        assert last["until"] == last["at"] + (30 if more else 200)
        found.add(first["n"])
    ended = begun - found  # nothing came in time behind its second step
    assert all(any(row.key == ROWS[n].key and row.n % 10 == LARGE and row.n > n for row in ROWS) for n in ended)
    assert found
    assert found | ended == begun


def crossed(rows: Any) -> None:
    rules = rows.filter(lambda t: t.n % 20 == 0, name="rules").key_by("n")
    rows.cross_join(rules, name="all", by="arrival").sink(rel.list(), name="out")


def test_a_cross_join_is_shown_with_the_tuples_of_its_right_side(tmp_path: Path) -> None:
    kept = saved(crossed, tmp_path)["all"].to_pylist()
    assert [(row["side"], row["right_n"], row["n"]) for row in kept] == [("right", n, None) for n in range(0, 100, 20)]


def delayed(rows: Any) -> None:
    rows.delay(name="wait", seconds=1000.0).sink(rel.count(), name="out")


def test_a_delay_is_shown_with_the_time_that_is_left(tmp_path: Path) -> None:
    kept = saved(delayed, tmp_path)["wait"]
    assert [(row["key"], row["at"], row["n"]) for row in kept.to_pylist()] == ROWS
    assert all(900 < left.total_seconds() <= 1000 for left in kept["due_in"].to_pylist())


def merged(rows: Any) -> None:
    even = rows.filter(lambda t: t.n % 2 == 0, name="even").event_time("at", name="even_time", lateness=30)
    odd = rows.filter(lambda t: t.n % 2 == 1, name="odd").event_time("at", name="odd_time", lateness=20)
    even.merge_by_time(odd, name="merged").sink(rel.list(), name="out")


def test_a_merge_is_shown_with_the_inputs_of_its_tuples(tmp_path: Path) -> None:
    kept = saved(merged, tmp_path)["merged"].to_pylist()
    watermark = kept[0]["at"] - 1
    assert ROWS[-1].at - 35 <= watermark <= ROWS[-1].at - 30, "the least of both"
    waiting = [row for row in ROWS if row.at > watermark]
    assert [(row["key"], row["at"], row["n"]) for row in kept] == waiting
    assert [row["input"] for row in kept] == ["in" if row.n % 2 == 0 else "in2" for row in waiting]


def held_back(rows: Any) -> None:
    rows.switch(rows.filter(lambda t: t.n % 10 == 0, name="tens"), lambda t: t.n > 1000, name="off", start=False).sink(
        rel.list(), name="a"
    )
    rows.switch(rows.filter(lambda t: t.n % 100 == 0, name="hundreds"), lambda t: True, name="on").sink(
        rel.list(), name="b"
    )
    rows.gate(rows.filter(lambda t: t.n < 0, name="none"), name="full", most=3).sink(rel.list(), name="c")
    rows.gate(rows.filter(lambda t: True, name="all"), name="open", most=7).sink(rel.list(), name="d")


def test_switches_and_gates_are_shown_with_what_they_are_set_to(tmp_path: Path) -> None:
    states = saved(held_back, tmp_path, SECRET)
    rows = [dict(zip(Row._fields, row, strict=True)) for row in ROWS]
    assert states["off"].to_pylist() == [{"on": False, "waiting": rows}]
    assert states["on"].to_pylist() == [{"on": True, "waiting": []}]
    assert states["full"].to_pylist() == [{"may_pass": 0, "waiting": rows[3:]}]
    assert states["open"].to_pylist() == [{"may_pass": 7, "waiting": []}]
    assert states["off"].schema == states["on"].schema, "with tuples as without"
    unsigned = rel.read_snapshot(tmp_path / "saved")
    with raises(StateError, "unsigned-values", "off"):
        unsigned["off"]


class Given(NamedTuple):
    number: int


@rel.operator(outputs={"out": Given})
class Counting:
    def __init__(self) -> None:
        self.count = 0
        self.texts = ["none"]

    def invoke(self, t: Row) -> Any:
        self.count += 1
        self.texts = [t.key or "none"]
        yield Given(self.count)


@rel.operator(outputs={"out": Given}, state=dict)
class CountingByKey:
    def invoke(self, t: Row, state: dict[str, int]) -> Any:
        state["count"] = state.get("count", 0) + 1
        yield Given(state["count"])


def counted(rows: Any) -> None:
    rows.apply(Counting(), name="object").sink(rel.list(), name="a")
    rows.key_by("key").apply(CountingByKey(), name="by_key").sink(rel.list(), name="b")


@pytest.fixture
def classes() -> Iterator[rel.Job]:
    """A job with two classes that has taken all rows."""
    with behind_gate(ROWS, counted) as job:
        yield job


def test_a_class_is_shown_with_its_attributes(classes: rel.Job, tmp_path: Path) -> None:
    folder = rel.Snapshot(tmp_path / "saved", key=SECRET)
    states = rel.read_snapshot(classes.snapshot(folder))
    assert states["object"].to_pylist() == [{"value": {"count": 100, "texts": [ROWS[-1].key]}}]
    by_key = {row["key"]: row["value"] for row in states["by_key"].to_pylist()}
    assert by_key == {row.key: {"count": sum(one.key == row.key for one in ROWS)} for row in ROWS}
    unsigned = rel.read_snapshot(tmp_path / "saved")
    for operator in ("object", "by_key"):
        with raises(StateError, "unsigned-values", str(operator)):
            unsigned[operator]


def test_what_a_class_keeps_by_key_is_looked_up_while_it_runs(classes: rel.Job) -> None:
    wait_until_received(classes, "by_key", len(ROWS))
    assert classes.state("by_key").get(None) == {"count": 20}
