"""Joins by arrival, as of a time, in an interval and in a window, and the merge by time, against plain Python.

A key that is None matches nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import GraphError
from tests.component.operators.running import CONFIGS, table_of
from tests.raising import raises


class Left(NamedTuple):
    key: str | None
    at: int
    n: int


class Right(NamedTuple):
    name: str | None
    at: int
    text: str


KEYS = st.sampled_from(["a", "b", "a key of more than twelve bytes", None])
TEXTS = st.sampled_from(["", "short", "a text of more than twelve bytes"])
LEFTS = st.lists(st.builds(Left, KEYS, st.integers(0, 60), st.integers(0, 99)), max_size=40).map(
    lambda rows: sorted(rows, key=lambda row: row.at)
)
RIGHTS = st.lists(st.builds(Right, KEYS, st.integers(0, 60), TEXTS), max_size=40).map(
    lambda rows: sorted(rows, key=lambda row: row.at)
)


def joined(lefts: list[Left], rights: list[Right], config: rel.JobConfig | None = None, **how: Any) -> list[Any]:
    topology = rel.Topology("join")
    left = (
        topology.source(rel.arrow(table_of(Left, lefts), Left), name="left").event_time("at", name="lt").key_by("key")
    )
    right = (
        topology.source(rel.arrow(table_of(Right, rights), Right), name="right")
        .event_time("at", name="rt")
        .key_by("name")
    )
    left.join(right, name="joined", **how).sink(rel.list(), name="out")
    return [tuple(t) for t in rel.run(topology, config)["out"]]


def matches(left: Left, rights: list[Right], how: dict[str, Any]) -> list[Right]:
    same = [right for right in rights if right.name == left.key and left.key is not None]
    if "within" in how:
        before, after = how["within"]
        return [right for right in same if left.at - before <= right.at <= left.at + after]
    if "window" in how:
        return [right for right in same if right.at // how["window"] == left.at // how["window"]]
    before = [right for right in same if right.at <= left.at]
    return {"latest": before[-1:], "first": before[:1], "all": before}[how.get("keep", "latest")]


def expected(lefts: list[Left], rights: list[Right], **how: Any) -> list[Any]:
    found: list[Any] = []
    for left in lefts:
        there = matches(left, rights, how)
        found += [(*left, right.at, right.text) for right in there]
        if not there and how.get("how") in ("left", "full"):
            found.append((*left, None, None))
    return found


def without_left(lefts: list[Left], rights: list[Right], **how: Any) -> list[Any]:
    """Right ones without a match, as they come out."""
    alone = [right for right in rights if not any(right in matches(left, [right], how) for left in lefts)]
    return [(right.name, None, None, right.at, right.text) for right in alone]


HOW = st.one_of(
    st.builds(lambda keep: {"keep": keep}, st.sampled_from(["latest", "first", "all"])),
    st.builds(lambda before, after: {"within": (before, after)}, st.integers(0, 15), st.integers(0, 15)),
    st.builds(lambda size: {"window": size}, st.integers(1, 20)),
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(LEFTS, RIGHTS, HOW, st.sampled_from(["inner", "left"]))
def test_joins_by_time(lefts: list[Left], rights: list[Right], matching: dict[str, Any], how: str) -> None:
    assert joined(lefts, rights, how=how, **matching) == expected(lefts, rights, how=how, **matching)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(LEFTS, RIGHTS, HOW.filter(lambda how: "keep" not in how), st.sampled_from(["right", "full"]))
def test_outer_joins_of_the_right(lefts: list[Left], rights: list[Right], matching: dict[str, Any], how: str) -> None:
    found = joined(lefts, rights, how=how, **matching)
    assert [row for row in found if row[1] is not None] == expected(lefts, rights, how=how, **matching)
    alone = [row for row in found if row[1] is None]
    assert sorted(alone, key=str) == sorted(without_left(lefts, rights, **matching), key=str)


def test_what_is_joined_from_the_right_can_be_given_an_event_time() -> None:
    """A window behind it, by a time that each tuple has."""
    topology = rel.Topology("join")
    left = topology.source(rel.rows([Left("a", 1, 5)]), name="left").event_time("at", name="lt").key_by("key")
    right = topology.source(rel.rows([Right("a", 2, "x"), Right("b", 13, "y")]), name="right").event_time(
        "at", name="rt"
    )
    joined = left.join(right.key_by("name"), name="joined", within=(0, 3), how="full")
    whole = joined.map(
        lambda t: (t.key, t.at if t.at is not None else t.at_right), name="whole", schema={"k": str, "at": int}
    )
    whole.event_time("at", name="time", lateness=20).window(seconds=10).aggregate(name="n", n=rel.count()).sink(
        rel.list(), name="out"
    )
    assert [tuple(t) for t in rel.run(topology)["out"]] == [(0, 10, 1), (10, 20, 1)]


class Side(NamedTuple):
    key: str | None
    n: int
    left: bool


ONE_THREAD = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")


def symmetric(rows: list[Side], keep: str, how: str, *, right_first: bool) -> list[Any]:
    """All rows are one run, which goes to its first consumer before it goes to the second."""
    topology = rel.Topology("symmetric")
    source = topology.source(rel.arrow(table_of(Side, rows), Side), name="rows")
    right = source.filter(lambda t: not t.left, name="early") if right_first else source
    left = source.filter(lambda t: t.left, name="left").map(
        lambda t: (t.key, t.n), name="l", schema={"key": str | None, "l": int}
    )
    right = right.filter(lambda t: not t.left, name="right").map(
        lambda t: (t.key, t.n), name="r", schema={"k": str | None, "r": int}
    )
    joined = left.key_by("key").join(right.key_by("k"), name="joined", keep=keep, how=how, by="arrival", symmetric=True)  # type: ignore[call-overload]
    joined.sink(rel.list(), name="out")
    return [tuple(t) for t in rel.run(topology, ONE_THREAD)["out"]]


def played(rows: list[Side], keep: str, how: str) -> list[Any]:
    kept: dict[tuple[str | None, bool], list[int]] = {}
    found: list[Any] = []
    for row in rows:
        others = kept.get((row.key, not row.left), [])
        found += [(row.key, row.n, other) if row.left else (row.key, other, row.n) for other in others]
        if not others and how in ("full", "left" if row.left else "right"):
            found.append((row.key, row.n, None) if row.left else (row.key, None, row.n))
        if row.key is None:
            continue
        mine = kept.setdefault((row.key, row.left), [])
        if keep == "latest":
            mine.clear()
        if keep != "first" or not mine:
            mine.append(row.n)
    return found


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.builds(Side, st.sampled_from(["a", "b", None]), st.integers(0, 9), st.booleans()), max_size=20),
    st.sampled_from(["latest", "first"]),
    st.sampled_from(["inner", "left", "right", "full"]),
    st.booleans(),
)
def test_symmetric_joins_by_arrival(rows: list[Side], keep: str, how: str, right_first: bool) -> None:
    in_order = sorted(rows, key=lambda row: row.left == right_first)
    assert symmetric(rows, keep, how, right_first=right_first) == played(in_order, keep, how)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"keep": "last"}, "unknown-choice last"),
        ({"keep": "first", "within": 3}, "conflicting-arguments first"),
        ({"how": "outer"}, "unknown-choice outer"),
        ({"how": "full"}, "unbounded-state"),
        ({"symmetric": True}, "conflicting-arguments symmetric=True"),
        ({"by": "arrival"}, "conflicting-arguments arrival"),
        ({"by": "time"}, "unknown-choice time"),
        ({"symmetric": 1}, "unknown-choice symmetric=1"),
        ({"within": 3, "window": 3}, "conflicting-arguments within"),
    ],
)
def test_joins_that_cant_be(how: dict[str, Any], expected: str) -> None:
    with raises(GraphError, *expected.split()):
        joined([], [], **how)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@pytest.mark.parametrize("matching", [{}, {"within": (5, 3)}, {"window": 7}], ids=str)
def test_joins_by_time_however_the_job_runs(config: rel.JobConfig, matching: dict[str, Any]) -> None:
    lefts = [Left(f"key {n % 7}", n // 3, n) for n in range(2000)]
    rights = [Right(f"key {n % 5}", n // 2, f"right number {n}") for n in range(1500)]
    assert joined(lefts, rights, config, **matching) == expected(lefts, rights, **matching)


def test_the_latest_by_arrival_and_a_function_of_what_is_joined() -> None:
    """One source feeds the right before the left, so all of the right is there when the left comes."""
    topology = rel.Topology("arrival")
    rows = topology.source(rel.rows([Left("a", 1, 5), Left("b", 2, 7), Left("a", 3, 9)]), name="rows")
    sums = rows.key_by("key").aggregate(name="sums", total=rel.sum("n"), emit="update")
    late = rows.filter(lambda t: t.at > 1, name="late")
    shares = late.key_by("key").join(
        sums, name="shares", how="left", by="arrival", fn=lambda t: (t.key, t.total), schema={"k": str, "s": int | None}
    )
    shares.sink(rel.list(), name="out")
    found = [tuple(t) for t in rel.run(topology)["out"]]
    assert [key for key, _ in found] == ["b", "a"]
    assert found[0][1] in (None, 7)
    assert found[1][1] in (None, 5, 14)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 50)).map(lambda t: Left("k", t[0], 0)), max_size=30), min_size=2, max_size=4
    )
)
def test_merge_by_time(streams: list[list[Left]]) -> None:
    streams = [
        [row._replace(n=number, key=str(index)) for index, row in enumerate(sorted(rows, key=lambda row: row.at))]
        for number, rows in enumerate(streams)
    ]
    topology = rel.Topology("merge")
    timed = [
        topology.source(rel.arrow(table_of(Left, rows), Left), name=f"s{n}").event_time("at", name=f"t{n}")
        for n, rows in enumerate(streams)
    ]
    timed[0].merge_by_time(*timed[1:], name="merged").sink(rel.list(), name="out")
    found = [Left(*t) for t in rel.run(topology)["out"]]
    assert found == sorted(
        (row for rows in streams for row in rows), key=lambda row: (row.at, row.n, int(row.key or 0))
    )
