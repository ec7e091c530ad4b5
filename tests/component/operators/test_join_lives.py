"""Joins with a time to live: by event time against plain Python; by the clock what ends, and what is emitted then."""

from __future__ import annotations

import datetime as dt
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError, StateError
from tests.component.operators.running import CONFIGS
from tests.raising import raises
from tests.waiting import wait_until, wait_until_received

pytestmark = pytest.mark.edges

PATIENCE = 60.0
SOON = 0.03  # seconds


class Left(NamedTuple):
    key: str
    at: int
    n: int


class Right(NamedTuple):
    key: str
    at: int
    text: str


KEYS = st.sampled_from(["a", "b", "a key of more than twelve bytes"])
TEXTS = st.sampled_from(["", "short", "a text of more than twelve bytes"])
LATENESS = 20  # of both streams: rows come in any order within it
LEFTS = st.lists(st.builds(Left, KEYS, st.integers(0, LATENESS), st.integers(0, 9)), max_size=25)
RIGHTS = st.lists(st.builds(Right, KEYS, st.integers(0, LATENESS), TEXTS), max_size=25)
LIVES = st.builds(rel.Ttl, st.integers(1, 8), st.sampled_from(["last", "first"]))


def as_of(left: Any, right: Any, config: rel.JobConfig | None = None, restore: Any = None, **how: Any) -> list[Any]:
    return [tuple(t) for t in rel.run(timed(left, right, **how), config, restore=restore)["out"]]


def timed(left: Any, right: Any, *, cross: bool = False, **how: Any) -> rel.Topology:
    topology = rel.Topology("lives")
    lefts = topology.source(left, name="left").event_time("at", name="lt", lateness=LATENESS).key_by("key")
    rights = topology.source(right, name="right").event_time("at", name="rt", lateness=LATENESS).key_by("key")
    join = lefts.cross_join if cross else lefts.join
    join(rights, name="joined", **how).sink(rel.list(), name="out")
    return topology


def seconds_of(ttl: rel.Ttl) -> float:
    assert not isinstance(ttl.seconds, dt.timedelta)
    return ttl.seconds


def expected(lefts: list[Left], rights: list[Right], keep: str, how: str, ttl: rel.Ttl) -> list[Any]:
    """All tuples in the order of their times, those of the right before those of the left; a key's life by hand."""
    kept: dict[str, list[Right]] = {}
    touched: dict[str, int] = {}
    found: list[Any] = []
    both: list[Left | Right] = [*rights, *lefts]
    for t in sorted(both, key=lambda t: t.at):
        if touched.get(t.key, t.at) < t.at - seconds_of(ttl):
            del touched[t.key], kept[t.key]
        if isinstance(t, Right):
            touched.setdefault(t.key, t.at)
            kept.setdefault(t.key, []).append(t)
        else:
            there = kept.get(t.key, [])
            there = {"latest": there[-1:], "first": there[:1], "all": there}[keep]
            found += [(*t, right.at, right.text) for right in there]
            found += [(*t, None, None)] if not there and how == "left" else []
        if t.key in touched and ttl.since == "last":
            touched[t.key] = t.at
    return found


KEEPS = st.sampled_from(["latest", "first", "all"])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(LEFTS, RIGHTS, KEEPS, st.sampled_from(["inner", "left"]), LIVES, st.sampled_from([*CONFIGS]))
def test_joins_as_of_a_time(
    lefts: list[Left], rights: list[Right], keep: Any, how: Any, ttl: rel.Ttl, config: str
) -> None:
    found = as_of(rel.rows(lefts, Left), rel.rows(rights, Right), CONFIGS[config], keep=keep, how=how, ttl=ttl)
    assert found == expected(lefts, rights, keep, how, ttl)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(LEFTS, RIGHTS, st.integers(1, 8), st.sampled_from([*CONFIGS]))
def test_rules_that_end(lefts: list[Left], rights: list[Right], ttl: int, config: str) -> None:
    found = as_of(rel.rows(lefts, Left), rel.rows(rights, Right), CONFIGS[config], cross=True, ttl=ttl)
    wanted = []
    for left in sorted(lefts, key=lambda t: t.at):
        rules = {right.key: right for right in sorted(rights, key=lambda t: t.at) if right.at <= left.at}
        wanted += [(*left, *rule) for rule in rules.values() if left.at - rule.at <= ttl]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("way", ["event time", "clock"])
def test_rules_that_ended_are_freed(way: str) -> None:
    """Each of many comes once, when the left is already at a later time."""
    kept = {}
    for ttl in (None, 100 if way == "event time" else 1e-6):
        start, gate = testing.Gate(), testing.Gate()
        many = (Right(f"rule {n} of many", n, "x" * 20) for n in range(20_000))
        topology = rel.Topology("rules")
        lefts = topology.source(rel.rows([Left("no rule", 10**9, 0)], Left), name="left")
        rights = topology.source(testing.script([start, *many, gate], Right), name="right")
        if way == "event time":
            lefts, rights = lefts.event_time("at", name="lt"), rights.event_time("at", name="rt")
        by: Any = None if way == "event time" else "arrival"
        lefts.cross_join(rights.key_by("key"), name="joined", by=by, ttl=ttl).sink(rel.count(), name="out")
        job = rel.start(topology, rel.JobConfig(threads=rel.Threads(model="manual", run_records=64)))
        try:
            wait_until_received(job, "joined", 1)
            start.open()
            assert gate.wait_reached(PATIENCE)
            wait_until_received(job, "joined", 20_001)
            kept[ttl] = job.metrics().operator("joined").state_bytes
        finally:
            gate.open()
            job.close()
    without, ended = kept.values()
    assert ended < without / 10


@settings(max_examples=40, deadline=None, derandomize=True)
@given(LEFTS, RIGHTS, KEEPS, LIVES, st.data())
def test_restored_anywhere(
    tmp_path_factory: Any, lefts: list[Left], rights: list[Right], keep: Any, ttl: rel.Ttl, data: Any
) -> None:
    """Stopped behind any number of tuples of each side, and restored."""
    folder = tmp_path_factory.mktemp("lives")
    lefts, rights = sorted(lefts, key=lambda t: t.at), sorted(rights, key=lambda t: t.at)
    gates = testing.Gate(), testing.Gate()
    cut: list[list[Any]] = [[*lefts], [*rights]]
    for side, gate in zip(cut, gates, strict=True):
        side.insert(data.draw(st.integers(0, len(side))), gate)
    how: dict[str, Any] = {"keep": keep, "how": "left", "ttl": ttl}
    topology = timed(testing.script(cut[0], Left), testing.script(cut[1], Right), **how)
    job = rel.start(topology, CONFIGS["manual"])
    try:
        assert all(gate.wait_reached(PATIENCE) for gate in gates)
        before = [tuple(t) for t in job.stop(folder / "snapshot")["out"]]
    finally:
        for gate in gates:
            gate.open()
        job.close()
    rest = testing.script(lefts, Left), testing.script(rights, Right)
    after = as_of(*rest, CONFIGS["manual"], folder / "snapshot", **how)
    assert before + after == expected(lefts, rights, keep, "left", ttl)


def test_a_join_with_a_ttl_is_not_restored_without(tmp_path: Path) -> None:
    gate = testing.Gate()
    rights = [Right("a", 0, "x")]
    job = rel.start(timed(testing.script([Left("a", 1, 1), gate], Left), rel.rows(rights, Right), ttl=5))
    assert gate.wait_reached(PATIENCE)
    job.stop(tmp_path / "snapshot")
    job.close()
    lefts = [Left("a", 1, 1), Left("a", 12, 2)]
    with raises(StateError, "changed-state"):
        as_of(testing.script(lefts, Left), rel.rows(rights, Right), restore=tmp_path / "snapshot")
    after = as_of(testing.script(lefts, Left), rel.rows(rights, Right), restore=tmp_path / "snapshot", ttl=11)
    assert after == [("a", 1, 1, 0, "x"), ("a", 12, 2, 0, "x")]


# --- by the clock -----------------------------------------------------------------------------------------------------


PAIR = {"k": str, "n": int}
WAYS: dict[str, dict[str, Any]] = {
    "latest": {"by": "arrival", "how": "left"},
    "first": {"by": "arrival", "how": "left", "keep": "first"},
    "all": {"by": "arrival", "how": "left", "keep": "all"},
    "symmetric": {"by": "arrival", "how": "full", "symmetric": True},
    "pairs": {"how": "full"},
}


def by_clock(way: str, left: Any, right: Any, **more: Any) -> tuple[rel.Topology, Any]:
    topology = rel.Topology("clock")
    lefts, rights = topology.source(left, name="left").key_by("k"), topology.source(right, name="right").key_by("k")
    joined = lefts.join(rights, name="joined", **WAYS[way], **more)
    return topology, joined


def until_keys(job: rel.Job, keys: int) -> None:
    wait_until(job, lambda: job.metrics().operator("joined").state_keys == keys)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("config", ["manual", "2 PEs"])
def test_keys_end_by_the_clock_while_nothing_comes(way: str, config: str) -> None:
    """Freed, joined with nothing that comes then, and what had no match is emitted when its key ends, once."""
    begins, ends, got = testing.Gate(), testing.Gate(), threading.Semaphore(0)
    found: list[tuple[Any, ...]] = []

    def take(t: Any) -> None:
        found.append(tuple(t))
        got.release()

    right = testing.script([("a", 1), ("b", 1), ends], PAIR)
    topology, joined = by_clock(way, testing.script([begins, ("a", 2), ends], PAIR), right, ttl=SOON)
    joined.sink(rel.call(take), name="out")
    job = rel.start(topology, CONFIGS[config])
    try:
        assert begins.wait_reached(PATIENCE)
        wait_until_received(job, "joined", 2)
        until_keys(job, 0)
        begins.open()
        for _ in range(3 if way in ("symmetric", "pairs") else 1):
            assert got.acquire(timeout=PATIENCE)
        until_keys(job, 0)
        ends.open()
        job.wait(PATIENCE)
    finally:
        begins.open()
        ends.open()
        job.close()
    alone = [("a", None, 1), ("b", None, 1)] if way in ("symmetric", "pairs") else []
    assert sorted(found, key=str) == sorted([*alone, ("a", 2, None)], key=str)


@pytest.mark.parametrize("way", WAYS)
def test_keys_that_come_again_live_on(way: str) -> None:
    rows = [(str(n % 7), n) for n in range(60)]
    found = []
    for ttl in (None, 3600):
        gate = testing.Gate()
        topology, joined = by_clock(way, testing.script([gate, *rows], PAIR), testing.script(rows, PAIR), ttl=ttl)
        joined.sink(rel.list(), name="out")
        job = rel.start(topology, CONFIGS["manual"])
        try:
            assert gate.wait_reached(PATIENCE)
            wait_until_received(job, "joined", len(rows))
            gate.open()
            found.append(sorted(map(str, job.wait(PATIENCE)["out"])))
        finally:
            gate.open()
            job.close()
    assert found[0] == found[1]


def test_a_restored_join_by_the_clock_knows_how_old_its_keys_are(tmp_path: Path) -> None:
    gate = testing.Gate()
    topology, joined = by_clock("latest", testing.script([gate, ("a", 2)], PAIR), rel.rows([("a", 1)], PAIR), ttl=600)
    joined.sink(rel.list(), name="out")
    job = rel.start(topology, CONFIGS["manual"])
    try:
        assert gate.wait_reached(PATIENCE)
        until_keys(job, 1)
        job.stop(tmp_path / "snapshot")
    finally:
        gate.open()
        job.close()
    for ttl, wanted in ((600, [("a", 2, 1)]), (1e-9, [("a", 2, None)])):
        topology, joined = by_clock("latest", testing.script([("a", 2)], PAIR), rel.rows([("a", 1)], PAIR), ttl=ttl)
        joined.sink(rel.list(), name="out")
        result = rel.run(topology, CONFIGS["manual"], restore=tmp_path / "snapshot")
        assert [tuple(t) for t in result["out"]] == wanted


@pytest.mark.parametrize("way", [*WAYS, "cross, clock", "event time", "cross, event time"])
def test_a_snapshot_is_read_as_a_table(way: str, tmp_path: Path) -> None:
    gate, ttl = testing.Gate(), 3600
    if way.endswith("event time"):
        rights = testing.script([Right("a", 0, "x"), Right("b", 1, "y"), gate], Right)
        topology = timed(rel.rows([], Left), rights, cross=way.startswith("cross"), ttl=ttl)
    else:
        rows, other = testing.script([("a", 0), ("b", 1), gate], PAIR), testing.script([gate], PAIR)
        topology = rel.Topology("read")
        left, right = topology.source(other, name="left").key_by("k"), topology.source(rows, name="right").key_by("k")
        join = left.cross_join if way.startswith("cross") else left.join
        join(right, name="joined", ttl=ttl, **WAYS.get(way, {"by": "arrival"})).sink(rel.list(), name="out")
    job = rel.start(topology, CONFIGS["manual"])
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_received(job, "joined", 2)
        job.stop(tmp_path / "snapshot")
    finally:
        gate.open()
        job.close()
    table = rel.read_snapshot(tmp_path / "snapshot")["joined"]
    assert table["side"].to_pylist() == ["right", "right"]
    name = "right_key" if "right_key" in table.column_names else "right_k"
    assert sorted(table[name].to_pylist()) == ["a", "b"]


def test_what_explain_says() -> None:
    def explained(way: str, **more: Any) -> str:
        endless = rel.callable(lambda: iter(()), PAIR)
        topology, joined = by_clock(way, endless, endless, **more)
        joined.sink(rel.count(), name="out")
        return " ".join(topology.explain().split())

    endless = "as long as the job runs: ttl= ends keys that don't come any more"
    assert f"joined keeps both sides {endless}" in explained("pairs")
    assert f"joined keeps both sides {endless}" in explained("symmetric")
    assert f"joined keeps its right side {endless}" in explained("latest")
    for way in WAYS:
        ends = "a key ends 1.5 s by the clock after the last of its tuples, which depends on timing"
        text = explained(way, ttl=1.5)
        assert ends in text
        assert endless not in text


def test_what_is_rejected() -> None:
    lefts, rights = rel.rows([], Left), rel.rows([], Right)
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"within": 5, "ttl": 5}, "conflicting-arguments", "within="),
        ({"window": 5, "ttl": 5}, "conflicting-arguments", "window="),
        ({"ttl": rel.Ttl(5, since="change")}, "unsupported-ttl", "since='last' or 'first'"),
        ({"ttl": 0}, "out-of-range", "ttl=0"),
        ({"cross": True, "ttl": rel.Ttl(5, since="first")}, "unsupported-ttl", "ttl="),
    ]
    for how, code, value in cases:
        with raises(GraphError, code, value):
            timed(lefts, rights, **how)
