"""Joins by arrival, as of a time, in an interval and in a window, and the merge by time, against plain Python."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from tests.component.operators.running import CONFIGS, table_of


class Left(NamedTuple):
    key: str
    at: int
    n: int


class Right(NamedTuple):
    name: str
    at: int
    text: str


KEYS = st.sampled_from(["a", "b", "a key of more than twelve bytes"])
TEXTS = st.sampled_from(["", "short", "a text of more than twelve bytes"])
LEFTS = st.lists(st.builds(Left, KEYS, st.integers(0, 60), st.integers(0, 99)), max_size=40).map(
    lambda rows: sorted(rows, key=lambda row: row.at)
)
RIGHTS = st.lists(st.builds(Right, KEYS, st.integers(0, 60), TEXTS), max_size=40).map(
    lambda rows: sorted(rows, key=lambda row: row.at)
)


def joined(lefts: list[Left], rights: list[Right], config: rel.JobConfig | None = None, **how: Any) -> list[Any]:
    topology = rel.Topology("join")
    left = topology.source("left", rel.arrow(table_of(Left, lefts), Left)).event_time("lt", "at").key_by("key")
    right = topology.source("right", rel.arrow(table_of(Right, rights), Right)).event_time("rt", "at").key_by("name")
    left.join("joined", right, **how).sink("out", rel.list())
    return [tuple(t) for t in rel.run(topology, config)["out"]]


def matches(left: Left, rights: list[Right], how: dict[str, Any]) -> list[Right]:
    same = [right for right in rights if right.name == left.key]
    if "within" in how:
        before, after = how["within"]
        return [right for right in same if left.at - before <= right.at <= left.at + after]
    if "window" in how:
        return [right for right in same if right.at // how["window"] == left.at // how["window"]]
    return [right for right in same if right.at <= left.at][-1:]


def expected(lefts: list[Left], rights: list[Right], **how: Any) -> list[Any]:
    found: list[Any] = []
    for left in lefts:
        there = matches(left, rights, how)
        found += [(*left, right.at, right.text) for right in there]
        if not there and how.get("how") == "left":
            found.append((*left, None, None))
    return found


HOW = st.one_of(
    st.just({}),
    st.builds(lambda before, after: {"within": (before, after)}, st.integers(0, 15), st.integers(0, 15)),
    st.builds(lambda size: {"window": size}, st.integers(1, 20)),
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(LEFTS, RIGHTS, HOW, st.sampled_from(["inner", "left"]))
def test_joins_by_time(lefts: list[Left], rights: list[Right], matching: dict[str, Any], how: str) -> None:
    assert joined(lefts, rights, how=how, **matching) == expected(lefts, rights, how=how, **matching)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@pytest.mark.parametrize("matching", [{}, {"within": (5, 3)}, {"window": 7}], ids=str)
def test_joins_by_time_however_the_job_runs(config: rel.JobConfig, matching: dict[str, Any]) -> None:
    lefts = [Left(f"key {n % 7}", n // 3, n) for n in range(2000)]
    rights = [Right(f"key {n % 5}", n // 2, f"right number {n}") for n in range(1500)]
    assert joined(lefts, rights, config, **matching) == expected(lefts, rights, **matching)


def test_the_latest_by_arrival_and_a_function_of_what_is_joined() -> None:
    """One source feeds the right before the left, so all of the right is there when the left comes."""
    topology = rel.Topology("arrival")
    rows = topology.source("rows", rel.rows([Left("a", 1, 5), Left("b", 2, 7), Left("a", 3, 9)]))
    sums = rows.key_by("key").aggregate("sums", total=rel.sum("n"), emit="update")
    late = rows.filter("late", lambda t: t.at > 1)
    shares = late.key_by("key").join(
        "shares", sums, how="left", fn=lambda t: (t.key, t.total), schema={"k": str, "s": int | None}
    )
    shares.sink("out", rel.list())
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
        topology.source(f"s{n}", rel.arrow(table_of(Left, rows), Left)).event_time(f"t{n}", "at")
        for n, rows in enumerate(streams)
    ]
    timed[0].merge_by_time("merged", *timed[1:]).sink("out", rel.list())
    found = [Left(*t) for t in rel.run(topology)["out"]]
    assert found == sorted((row for rows in streams for row in rows), key=lambda row: (row.at, row.n, int(row.key)))
