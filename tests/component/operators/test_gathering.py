"""Folds, reduced and best tuples of windows, sessions and batches, complete or early, against brute force."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError
from tests.component.operators.running import CONFIGS, table_of
from tests.waiting import wait_until_emitted

KEY = b"0123456789abcdef"
PATIENCE = 60.0


class Row(NamedTuple):
    key: str
    at: int
    n: int


streams = st.lists(st.builds(Row, st.sampled_from("ab"), st.integers(0, 40), st.integers(0, 9)), max_size=30)


def join(text: str, t: Row) -> str:
    return text + str(t.n)


def numbers(rows: list[Row]) -> str:
    return "".join(str(row.n) for row in rows)


def of_keys(rows: list[Row]) -> dict[str, list[Row]]:
    return {key: sorted((r for r in rows if r.key == key), key=lambda r: r.at) for key in sorted({r.key for r in rows})}


Framed = list[tuple[int, int, list[Row]]]


def windows(rows: list[Row], size: int, slide: int) -> Framed:
    found = [(start, [r for r in rows if start <= r.at < start + size]) for start in range(-210, 210, slide)]
    return [(start, start + size, mine) for start, mine in found if mine]


def sessions(rows: list[Row], gap: Callable[[Row], int]) -> Framed:
    found: Framed = []
    for row in rows:
        if found and row.at <= found[-1][1]:
            start, end, mine = found.pop()
            found.append((start, max(end, row.at + gap(row)), [*mine, row]))
        else:
            found.append((row.at, row.at + gap(row), [row]))
    return found


def batches(rows: list[Row], size: int, within: int) -> Framed:
    found: list[list[Row]] = []
    for row in rows:
        if not found or len(found[-1]) == size or row.at > found[-1][0].at + within:
            found.append([])
        found[-1].append(row)
    return [(mine[0].at, mine[-1].at + 1, mine) for mine in found]


def run(rows: list[Row], declare: Callable[[rel.KeyedStream], Any], config: Any = None) -> list[Any]:
    topology = rel.Topology("gathering")
    source = topology.source(rel.arrow(table_of(Row, rows), Row), name="rows")
    timed = source.event_time("at", name="time", lateness=50).key_by("key")
    declare(timed).sink(rel.list(), name="out")
    result = rel.run(topology, config or CONFIGS["manual"])
    return [tuple(t) for t in result["out"]]


FRAMES: dict[str, tuple[Callable[[rel.KeyedStream], Any], Callable[[list[Row]], Framed]]] = {
    "tumbling": (lambda s: s.window(seconds=10), lambda rows: windows(rows, 10, 10)),
    "sliding": (lambda s: s.window(seconds=7, slide=3), lambda rows: windows(rows, 7, 3)),
    "apart": (lambda s: s.window(seconds=3, slide=7), lambda rows: windows(rows, 3, 7)),
    "session": (lambda s: s.session(gap=4), lambda rows: sessions(rows, lambda _: 4)),
    "dynamic": (lambda s: s.session(gap=lambda t: t.n + 1), lambda rows: sessions(rows, lambda r: r.n + 1)),
    "batch": (lambda s: s.window(count=3, within=8), lambda rows: batches(rows, 3, 8)),
}


@pytest.mark.parametrize("frame", FRAMES)
@settings(max_examples=40, deadline=None)
@given(streams)
def test_folds(frame: str, rows: list[Row]) -> None:
    framed, brute = FRAMES[frame]
    expected = [
        (key, start, end, numbers(mine)) for key, own in of_keys(rows).items() for start, end, mine in brute(own)
    ]
    assert sorted(run(rows, lambda s: framed(s).fold(join, "", name="joined"))) == sorted(expected)


@pytest.mark.parametrize("frame", FRAMES)
@settings(max_examples=20, deadline=None)
@given(streams)
def test_reduced_and_best(frame: str, rows: list[Row]) -> None:
    framed, brute = FRAMES[frame]
    least, best = [], []
    for key, own in of_keys(rows).items():
        for start, end, mine in brute(own):
            first = min(mine, key=lambda r: r.n)
            least.append((key, start, end, first.at, first.n))
            placed = sorted(mine, key=lambda r: -r.n)[:2]
            best += [(key, start, end, place, r.at, r.n) for place, r in enumerate(placed, start=1)]
    found = run(rows, lambda s: framed(s).reduce(lambda one, t: t if t.n < one.n else one, name="least"))
    assert sorted(found) == sorted(least)
    assert sorted(run(rows, lambda s: framed(s).top(2, "n", name="best"))) == sorted(best)


@pytest.mark.parametrize("frame", FRAMES)
@settings(max_examples=20, deadline=None)
@given(streams)
def test_functions_of_whole_windows(frame: str, rows: list[Row]) -> None:
    framed, brute = FRAMES[frame]

    def whole(key: tuple[str], window: Any, tuples: list[Row]) -> Any:
        yield *key, window.start, window.end, numbers(tuples)

    expected = [
        (key, start, end, numbers(mine)) for key, own in of_keys(rows).items() for start, end, mine in brute(own)
    ]
    schema = {"key": str, "start": int, "end": int, "numbers": str}
    assert sorted(run(rows, lambda s: framed(s).process(whole, name="whole", schema=schema))) == sorted(expected)


@pytest.mark.parametrize("frame", ["sliding", "session"])
def test_the_windows_and_their_order_are_those_of_aggregates(frame: str) -> None:
    rows = [Row("abcdefgh"[n * n % 8], n // 3 + n % 5, n % 7) for n in range(300)]
    framed, _ = FRAMES[frame]
    folded = run(rows, lambda s: framed(s).fold(lambda total, t: total + t.n, 0, name="sums"))
    assert folded == run(rows, lambda s: framed(s).aggregate(name="sums", n=rel.sum("n")))


def early(framed: Framed, every: int) -> list[tuple[int, int, bool, str]]:
    found = []
    for start, end, mine in framed:
        times = [time for time in range(start + every, end, every) if any(time - every <= r.at < time for r in mine)]
        found += [(start, end, False, numbers([r for r in mine if r.at < time])) for time in times]
        found.append((start, end, True, numbers(mine)))
    return found


@pytest.mark.parametrize("frame", ["tumbling", "sliding"])
@settings(max_examples=40, deadline=None)
@given(streams, st.sampled_from([1, 2, 3, 20]))
def test_early_results(frame: str, rows: list[Row], every: int) -> None:
    framed, brute = FRAMES[frame]
    expected = [(key, *one) for key, own in of_keys(rows).items() for one in early(brute(own), every)]
    assert sorted(run(rows, lambda s: framed(s).fold(join, "", name="joined", every=every))) == sorted(expected)


@settings(max_examples=40, deadline=None)
@given(streams, st.sampled_from([1, 2, 3]))
def test_early_results_of_sessions(rows: list[Row], every: int) -> None:
    framed, brute = FRAMES["session"]
    expected = [(key, *one) for key, own in of_keys(rows).items() for one in early(brute(own), every)]
    found = run(
        rows, lambda s: framed(s).fold(join, "", name="joined", every=every)
    )  # an early one has the end known then
    assert sorted((k, start, *rest) for k, start, _, *rest in found) == sorted(
        (k, start, *rest) for k, start, _, *rest in expected
    )


@pytest.mark.parametrize("frame", ["tumbling", "sliding", "session", "dynamic"])
@settings(max_examples=20, deadline=None)
@given(streams)
def test_results_after_each_tuple_and_once_at_the_end(frame: str, rows: list[Row]) -> None:
    framed, brute = FRAMES[frame]
    expected = []
    for key, own in of_keys(rows).items():
        for start, _, mine in brute(own):
            expected += [(key, start, False, numbers(mine[:n])) for n in range(1, len(mine) + 1)]
            expected.append((key, start, True, numbers(mine)))
    found = run(rows, lambda s: framed(s).fold(join, "", name="joined", emit="update"))
    assert sorted((key, start, final, text) for key, start, _, final, text in found) == sorted(expected)


def test_functions_of_windows_know_whether_they_are_complete() -> None:
    def told(key: tuple[str], window: Any, tuples: list[Row]) -> Any:
        yield *key, window.final, len(tuples)

    rows = [Row("a", 1, 0), Row("a", 2, 0), Row("a", 14, 0)]
    schema = {"key": str, "final": bool, "count": int}
    found = run(rows, lambda s: s.window(seconds=10).process(told, name="told", schema=schema, every=4))
    assert found == [("a", False, 2), ("a", True, 2), ("a", False, 1), ("a", True, 1)]


def test_windows_of_windows() -> None:
    rows = [Row("a", at, 1) for at in range(40)]

    def twice(s: rel.KeyedStream) -> Any:
        inner = s.window(seconds=5).fold(lambda total, t: total + t.n, 0, name="inner")
        return inner.key_by("key").window(seconds=20).aggregate(name="outer", n=rel.sum("value"), windows=rel.count())

    assert run(rows, twice) == [("a", 0, 20, 20, 4), ("a", 20, 40, 20, 4)]


def test_batches_by_the_clock() -> None:
    seen: list[Any] = []
    gate = testing.Gate()
    topology = rel.Topology("clocked")
    rows = topology.source(testing.script([*(Row("a", n, n) for n in range(5)), gate], Row), name="rows").key_by("key")
    folded = rows.window(count=3, within=0.02).fold(join, "", name="joined")

    def see(t: Any) -> None:
        seen.append(t)
        if sum(len(one.value) for one in seen) == 5:
            gate.open()  # until then nothing comes, and the source doesn't end

    folded.sink(rel.call(see), name="see")
    job = rel.start(topology)
    try:
        job.wait(PATIENCE)
    finally:
        job.close()
    assert "".join(t.value for t in seen) == "01234"
    assert all(len(t.value) <= 3 and t.start < t.end for t in seen)


def test_a_batch_by_the_clock_that_is_open_at_the_end_is_given_then() -> None:
    rows = [Row("ab"[n % 2], n, n) for n in range(8)]
    topology = rel.Topology("ends")
    batched = topology.source(testing.script(rows, Row), name="rows").key_by("key").window(count=3, within=3600)
    batched.fold(join, "", name="joined").sink(rel.list(), name="out")
    found = rel.run(topology, CONFIGS["manual"])["out"]
    assert [t.value for t in found if t.key == "a"] == ["024", "6"]
    assert [t.value for t in found if t.key == "b"] == ["135", "7"]


@pytest.mark.parametrize("frame", ["sliding", "dynamic", "batch"])
def test_what_is_open_is_in_snapshots(frame: str, tmp_path: Path) -> None:
    framed, brute = FRAMES[frame]
    rows = [Row("ab"[n % 2], n // 2, n % 7) for n in range(60)]

    def topology_of(source: Any) -> rel.Topology:
        topology = rel.Topology("saved")
        timed = topology.source(source, name="rows").event_time("at", name="time").key_by("key")
        framed(timed).fold(join, "", name="joined").sink(rel.list(), name="out")
        return topology

    gate = testing.Gate()
    snapshot = rel.Snapshot(tmp_path / "cut", key=KEY)
    job = rel.start(topology_of(testing.script([*rows[:31], gate], Row)), CONFIGS["manual"])
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_emitted(job, "rows", 31)
        before = job.stop(snapshot)["out"]
    finally:
        job.close()
    after = rel.run(topology_of(testing.script(rows, Row)), CONFIGS["manual"], restore=snapshot)["out"]
    expected = [(key, *one[:2], numbers(one[2])) for key, own in of_keys(rows).items() for one in brute(own)]
    assert sorted(map(tuple, [*before, *after])) == sorted(expected)


def test_values_that_are_no_numbers_are_left_out_of_the_best() -> None:
    class Priced(NamedTuple):
        key: str
        at: int
        price: float | None

    rows = [Priced("a", 1, None), Priced("a", 2, float("nan")), Priced("a", 3, 1.5), Priced("a", 4, 2.5)]
    topology = rel.Topology("priced")
    timed = topology.source(rel.rows(rows), name="rows").event_time("at", name="time").key_by("key")
    timed.window(seconds=10).top(3, "price", name="cheap", least=True).sink(rel.list(), name="out")
    assert [tuple(t) for t in rel.run(topology)["out"]] == [("a", 0, 10, 1, 3, 1.5), ("a", 0, 10, 2, 4, 2.5)]


def test_what_is_wrong_is_told_when_it_is_declared() -> None:
    topology = rel.Topology("wrong")
    timed = topology.source(rel.rows([Row("a", 1, 1)]), name="rows").event_time("at", name="time")
    keyed = timed.key_by("key")
    framed = keyed.window(seconds=3)
    wrong: dict[str, Callable[[], Any]] = {
        "windows by count are only aggregated": lambda: keyed.window(count=3).fold(join, "", name="x"),
        "Write .key_by(...) before": lambda: timed.window(seconds=3).collect(name="x"),
        "process calls fn(key, window, tuples)": lambda: framed.process(len, name="x", schema=Row),  # type: ignore[arg-type]
        "fn(accumulated, t)": lambda: framed.fold(lambda: 0, "", name="x"),  # type: ignore[arg-type, misc]
        "fn(reduced, t)": lambda: framed.reduce(lambda: 0, name="x"),  # type: ignore[arg-type, misc]
        "emit='often'": lambda: framed.fold(join, "", name="x", emit="often"),  # type: ignore[arg-type]
        "Leave one of them out": lambda: framed.fold(join, "", name="x", emit="update", every=1),
        "a batch is emitted once": lambda: keyed.window(count=3, within=1).fold(join, "", name="x", every=1),
        "top of 0 tuples": lambda: framed.top(0, "n", name="x"),
        "has no such field": lambda: framed.top(1, "price", name="x"),
        "already has a field 'final'": lambda: framed.fold(join, 0, name="x", every=1, schema={"final": int}),  # type: ignore[arg-type]
        "Use .fold, .reduce, .top or .process": lambda: keyed.session(gap=lambda t: t.n).aggregate(
            name="x", n=rel.count()
        ),
        "can't be called as gap(t)": lambda: keyed.session(gap=lambda: 1),  # type: ignore[arg-type, misc]
        "within is for batches": lambda: keyed.window(seconds=3, within=1),
    }
    for said, declare in wrong.items():
        with pytest.raises(GraphError) as caught:
            declare()
        assert said in str(caught.value)


@pytest.mark.parametrize("config", CONFIGS)
def test_under_every_threading_model(config: str) -> None:
    rows = [Row("abc"[n % 3], n // 12 + n % 4, n % 9) for n in range(1000)]
    framed, brute = FRAMES["sliding"]
    expected = [(key, *one[:2], numbers(one[2])) for key, own in of_keys(rows).items() for one in brute(own)]
    assert sorted(run(rows, lambda s: framed(s).fold(join, "", name="joined"), CONFIGS[config])) == sorted(expected)
