"""Windows that take late tuples, end when a function says so, are assigned by one, or go by the clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError, JobFailedError
from tests.component.operators.running import CONFIGS, table_of
from tests.raising import raises
from tests.waiting import wait_until_emitted

KEY = b"0123456789abcdef"
PATIENCE = 60.0
DISORDER, OPEN = 3, 6  # of the stream, and how long windows take late tuples


class Row(NamedTuple):
    key: str
    at: int
    n: int


streams = st.lists(st.builds(Row, st.sampled_from("ab"), st.integers(0, 40), st.integers(1, 9)), max_size=40)
Result = tuple[str, int, int, bool, int]  # key, start, end, corrected, sum


def run(rows: list[Row], declare: Callable[[rel.KeyedStream], Any], config: Any = None) -> tuple[list[Any], list[Any]]:
    """What comes out, and what was too late."""
    topology = rel.Topology("corrections")
    source = topology.source(rel.arrow(table_of(Row, rows), Row), name="rows")
    declared = declare(source.event_time("at", name="time", lateness=DISORDER).key_by("key"))
    declared.sink(rel.list(), name="out")
    declared.late().sink(rel.list(), name="late")
    result = rel.run(topology, config or CONFIGS["manual"])
    return [tuple(t) for t in result["out"]], [tuple(t) for t in result["late"]]


def corrected_windows(rows: list[Row], size: int, slide: int) -> tuple[list[Result], list[Row]]:
    """By brute force: what is given of windows, in the time of the tuples that came, and what is too late."""
    sums: dict[tuple[str, int], int] = {}
    given_up_to = -(10**6)
    results: list[Result] = []
    late: list[Row] = []

    def complete(until: int) -> None:
        for (key, start), total in sums.items():
            if given_up_to < start + size <= until:
                results.append((key, start, start + size, False, total))

    for row in rows:
        starts = [s for s in range(-84, 240) if s % slide == 0 and s <= row.at < s + size]
        taken = [s for s in starts if s + size + OPEN > given_up_to]
        late += [row] if starts and not taken else []
        for start in taken:
            was_given = (row.key, start) in sums
            sums[row.key, start] = sums.get((row.key, start), 0) + row.n
            if start + size <= given_up_to:
                results.append((row.key, start, start + size, was_given, sums[row.key, start]))
        complete(max(given_up_to, row.at - DISORDER))
        given_up_to = max(given_up_to, row.at - DISORDER)
    complete(10**6)
    return results, late


FRAMES = [(10, 10), (7, 3), (4, 6)]


@pytest.mark.parametrize(("size", "slide"), FRAMES)
@settings(max_examples=15, deadline=None)
@given(streams)
def test_late_tuples_correct_what_was_given(size: int, slide: int, rows: list[Row]) -> None:
    expected, late = corrected_windows(rows, size, slide)

    def framed(s: rel.KeyedStream) -> Any:
        return s.window(seconds=size, slide=slide, lateness=OPEN)

    found, too_late = run(rows, lambda s: framed(s).aggregate(name="sums", n=rel.sum("n")))
    assert sorted(found) == sorted(expected)
    assert too_late == late
    folded, too_late = run(rows, lambda s: framed(s).fold(lambda total, t: total + t.n, 0, name="sums"))
    assert sorted(folded) == sorted(expected)
    assert sorted(row for row in too_late if row[1] % slide < size) == sorted(late)


def corrected_sessions(rows: list[Row], gap: int) -> tuple[list[Result], list[Row]]:
    """By brute force, of one key."""
    sessions: list[list[Any]] = []  # start, last, sum, whether it was given
    reached = -(10**6)
    results: list[Result] = []
    late: list[Row] = []

    def give(one: list[Any], corrected: bool) -> None:
        results.append(("a", one[0], one[1] + gap, corrected, one[2]))
        one[3] = True

    def advance(to: int) -> None:
        for one in sorted(sessions):
            if reached < one[1] + gap <= to:
                give(one, one[3])
        sessions[:] = [one for one in sessions if one[1] + gap + OPEN > to]

    for row in rows:
        near = [one for one in sessions if one[0] - gap <= row.at <= one[1] + gap]
        if not near and row.at + gap + OPEN <= reached:
            late.append(row)
            continue
        made = [
            min([row.at, *(one[0] for one in near)]),
            max([row.at, *(one[1] for one in near)]),
            row.n + sum(one[2] for one in near),
            any(one[3] for one in near),
        ]
        sessions[:] = [one for one in sessions if one not in near] + [made]
        if made[1] + gap <= reached:
            give(made, made[3])
        advance(max(reached, row.at - DISORDER - 1))
        reached = max(reached, row.at - DISORDER - 1)
    advance(10**6)
    return results, late


@settings(max_examples=40, deadline=None)
@given(streams)
def test_late_tuples_correct_sessions(rows: list[Row]) -> None:
    mine = [row._replace(key="a") for row in rows]
    expected, late = corrected_sessions(mine, 4)
    found, too_late = run(mine, lambda s: s.session(gap=4, lateness=OPEN).aggregate(name="sums", n=rel.sum("n")))
    assert sorted(found) == sorted(expected)
    assert too_late == late


FIRST: dict[str, Any] = {
    "tumbling": lambda s: s.window(seconds=10, lateness=20).aggregate(name="w", n=rel.count()),
    "sliding": lambda s: s.window(seconds=10, slide=5, lateness=20).aggregate(name="w", n=rel.count()),
    "session": lambda s: s.session(gap=4, lateness=20).aggregate(name="w", n=rel.count()),
    "folded": lambda s: s.window(seconds=10, lateness=20).fold(lambda n, t: n + 1, 0, name="w"),
    "updated": lambda s: s.window(seconds=10, lateness=20).fold(lambda n, t: n + 1, 0, name="w", emit="update"),
}


@pytest.mark.edges
@pytest.mark.parametrize("kind", FIRST)
def test_what_is_emitted_late_but_first_corrects_nothing(kind: str) -> None:
    """B4. The next one corrects it."""
    topology = rel.Topology("first")
    rows = [Row("a", 1, 0), Row("b", 25, 0), Row("c", 3, 0), Row("c", 3, 0), Row("a", 6, 0)]
    keyed = topology.source(rel.rows(rows, Row), name="rows").event_time("at", name="time").key_by("key")
    FIRST[kind](keyed).sink(rel.list(), name="out")
    seen, corrected = set(), []
    for row in rel.run(topology)["out"]:
        if not getattr(row, "final", True):
            continue
        window = (row.key, row.start) if kind == "session" else (row.key, row.start, row.end)
        assert row.corrected == (window in seen), row
        seen.add(window)
        corrected += [row.key] if row.corrected else []
    assert set(corrected) == ({"c"} if kind == "session" else {"a", "c"})


@pytest.mark.parametrize("config", CONFIGS)
def test_under_every_threading_model(config: str) -> None:
    rows = [Row("ab"[n % 2], n // 4 + (-14 if n % 7 == 0 else 0) + 20, n % 9) for n in range(600)]
    expected, late = corrected_windows(rows, 7, 3)
    framed: Callable[[rel.KeyedStream], Any] = lambda s: s.window(seconds=7, slide=3, lateness=OPEN)  # noqa: E731
    found, too_late = run(rows, lambda s: framed(s).aggregate(name="sums", n=rel.sum("n")), CONFIGS[config])
    assert (sorted(found), too_late) == (sorted(expected), late)
    assert any(one[3] for one in expected)
    assert late


@pytest.mark.parametrize("kind", ["native", "python", "session"])
def test_what_may_be_corrected_is_in_snapshots(kind: str, tmp_path: Path) -> None:
    rows = [Row("a", n // 2 + (-8 if n % 5 == 0 else 0) + 20, n % 7) for n in range(60)]
    if kind == "session":
        rows = [Row("a", n // 6 * 12 + n % 6 - (8 if n % 7 == 6 else 0), n % 7) for n in range(60)]

    def topology_of(source: Any) -> rel.Topology:
        topology = rel.Topology("saved")
        keyed = topology.source(source, name="rows").event_time("at", name="time", lateness=DISORDER).key_by("key")
        if kind == "session":
            made = keyed.session(gap=4, lateness=OPEN).aggregate(name="sums", n=rel.sum("n"))
        elif kind == "native":
            made = keyed.window(seconds=7, slide=3, lateness=OPEN).aggregate(name="sums", n=rel.sum("n"))
        else:
            made = keyed.window(seconds=7, slide=3, lateness=OPEN).fold(lambda total, t: total + t.n, 0, name="sums")
        made.sink(rel.list(), name="out")
        return topology

    expected, _ = corrected_sessions(rows, 4) if kind == "session" else corrected_windows(rows, 7, 3)
    assert any(one[3] for one in expected)
    for cut in (21, 46):
        gate = testing.Gate()
        snapshot = rel.Snapshot(tmp_path / str(cut), key=KEY)
        job = rel.start(topology_of(testing.script([*rows[:cut], gate], Row)), CONFIGS["manual"])
        try:
            assert gate.wait_reached(PATIENCE)
            wait_until_emitted(job, "rows", cut)
            before = job.stop(snapshot)["out"]
        finally:
            job.close()
        after = rel.run(topology_of(testing.script(rows, Row)), CONFIGS["manual"], restore=snapshot)["out"]
        assert sorted(map(tuple, [*before, *after])) == sorted(expected)


def saved_bytes(rows: list[Row], made: Callable[[rel.KeyedStream], Any], folder: Path) -> int:
    """What the state of windows takes in a snapshot behind these rows."""
    gate = testing.Gate()
    topology = rel.Topology("kept")
    timed = topology.source(testing.script([*rows, gate], Row), name="rows").event_time("at", lateness=DISORDER)
    made(timed.key_by("key")).sink(rel.count(), name="out")
    job = rel.start(topology, CONFIGS["manual"])
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_emitted(job, "rows", len(rows))
        job.stop(rel.Snapshot(folder, key=KEY))
    finally:
        job.close()
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.suffix != ".json")


KEPT: dict[str, Callable[[Any], Any]] = {
    "native": lambda s: s.window(seconds=7, slide=3, lateness=OPEN).aggregate(name="sums", n=rel.sum("n")),
    "session": lambda s: s.session(gap=2, lateness=OPEN).aggregate(name="sums", n=rel.sum("n")),
    "python": lambda s: s.window(seconds=7, slide=3, lateness=OPEN).fold(lambda total, t: total + t.n, 0, name="sums"),
}


@pytest.mark.parametrize("kind", KEPT)
def test_windows_that_take_late_tuples_no_longer_are_dropped(kind: str, tmp_path: Path) -> None:
    rows = [Row("a", 4 * n, 1) for n in range(2_000)]
    few, many = (saved_bytes(rows[:count], KEPT[kind], tmp_path / str(count)) for count in (50, 2_000))
    assert few > 0
    assert many < 1.2 * few, (few, many)


moment = dt.datetime.fromisoformat


def month(t: Any) -> Iterator[tuple[dt.datetime, dt.datetime]]:
    start = t.at.replace(day=1, hour=0)
    yield start, (start + dt.timedelta(days=32)).replace(day=1)


def test_windows_that_a_function_assigns() -> None:
    class Sale(NamedTuple):
        shop: str
        at: dt.datetime

    topology = rel.Topology("months")
    sales = [
        Sale("x", moment("2024-01-31T23:00")),
        Sale("x", moment("2024-02-29")),
        Sale("x", moment("2024-02-01")),
    ]
    timed = topology.source(rel.rows(sales)).event_time("at", lateness=40 * 86400).key_by("shop")
    timed.window(assign=month).fold(lambda n, _: n + 1, 0, name="n").sink(rel.list(), name="out")
    january, february, march = (moment(f"2024-0{number}-01") for number in (1, 2, 3))
    assert [tuple(t) for t in rel.run(topology)["out"]] == [("x", january, february, 1), ("x", february, march, 2)]


@settings(max_examples=15, deadline=None)
@given(streams)
def test_assigned_windows_are_like_others(rows: list[Row]) -> None:
    def spans(t: Row) -> list[tuple[int, int]]:
        return [(start, start + 7) for start in range(t.at // 3 * 3, t.at - 7, -3)]

    expected, _ = corrected_windows(rows, 7, 3)
    found, _ = run(rows, lambda s: s.window(assign=spans, lateness=OPEN).fold(lambda total, t: total + t.n, 0))
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("span", [(9, 3), (0, 5)])
def test_a_window_that_ends_before_its_tuples_fails_the_job(span: tuple[int, int]) -> None:
    with raises(JobFailedError, "function-raised", "it must end after its start and after its tuples"):
        run([Row("a", 5, 1)], lambda s: s.window(assign=lambda _: [span]).fold(lambda n, _: n + 1, 0, name="n"))


@settings(max_examples=15, deadline=None)
@given(streams)
def test_until(rows: list[Row]) -> None:
    rows = sorted(rows, key=lambda row: row.at)
    windows, sessions = [], []
    for key in "ab":
        open_windows: dict[int, int] = {}
        session: list[int] = []  # start, last, sum
        for _, at, n in (row for row in rows if row.key == key):
            start = at // 10 * 10
            open_windows[start] = open_windows.get(start, 0) + n
            if open_windows[start] > 12:
                windows.append((key, start, start + 10, open_windows.pop(start)))
            if session and at > session[1] + 4:
                sessions.append((key, session[0], session[1] + 4, session[2]))
                session = []
            session = [session[0], at, session[2] + n] if session else [at, at, n]
            if session[2] > 12:
                sessions.append((key, session[0], at + 4, session[2]))
                session = []
        windows += [(key, start, start + 10, total) for start, total in open_windows.items()]
        sessions += [(key, session[0], session[1] + 4, session[2])] if session else []

    def total(framed: Any) -> Any:
        return framed.fold(lambda total, t: total + t.n, 0, name="sums", until=lambda total: total > 12)

    assert sorted(run(rows, lambda s: total(s.window(seconds=10)))[0]) == sorted(windows)
    assert sorted(run(rows, lambda s: total(s.session(gap=4)))[0]) == sorted(sessions)


def test_collected_until_a_tuple() -> None:
    rows = [Row("a", 3, 1), Row("a", 1, 2), Row("a", 4, 9), Row("a", 5, 3), Row("b", 30, 4)]
    found, _ = run(rows, lambda s: s.window(count=4, within=20).collect(name="baskets", until=lambda t: t.n == 9))
    assert found == [
        ("a", 1, 5, 1, 1, 2),
        ("a", 1, 5, 2, 3, 1),
        ("a", 1, 5, 3, 4, 9),
        ("a", 5, 6, 1, 5, 3),
        ("b", 30, 31, 1, 30, 4),
    ]


@pytest.mark.parametrize("kind", ["window", "session", "ended"])
def test_by_the_clock(kind: str) -> None:
    seen: list[Any] = []
    gate = testing.Gate()
    topology = rel.Topology("clocked")
    rows = [*(Row("a", n, n) for n in range(5)), *([] if kind == "ended" else [gate])]
    keyed = topology.source(testing.script(rows, Row), name="rows").key_by("key")
    if kind == "session":
        framed = keyed.session(gap=0.02, clock=True)
    else:
        framed = keyed.window(seconds=0.02 if kind == "window" else 3600, clock=True)

    def see(t: Any) -> None:
        seen.append(t)
        if sum(one.value for one in seen) == 5:
            gate.open()  # until then nothing comes, and the source doesn't end

    framed.fold(lambda n, _: n + 1, 0, name="counted").sink(rel.call(see), name="see")
    job = rel.start(topology)
    try:
        job.wait(PATIENCE)
    finally:
        job.close()
    assert sum(t.value for t in seen) == 5
    assert all(t.start < t.end and t.start > 1.7e9 for t in seen)
    assert kind == "session" or all(
        t.end - t.start == pytest.approx(0.02 if kind == "window" else 3600, abs=1e-5) for t in seen
    )


def never() -> bool:
    return False


def test_what_is_wrong_is_told_when_it_is_declared() -> None:
    topology = rel.Topology("wrong")
    timed = topology.source(rel.rows([Row("a", 1, 1)]), name="rows").event_time("at", name="time")
    keyed = timed.key_by("key")
    count = {"n": rel.count()}
    number: Any = 7
    wrong: dict[str, Callable[[], Any]] = {
        "a function assigns it": lambda: keyed.window(seconds=3, assign=month),
        "can't be called as assign(t)": lambda: keyed.window(assign=number),
        "slide is for windows of seconds": lambda: keyed.window(assign=month, slide=3),
        "lateness is for windows by event time": lambda: keyed.window(count=3, lateness=3),
        "By the clock no tuple is late": lambda: keyed.session(gap=3, lateness=3, clock=True),
        "clock is for windows by time": lambda: keyed.window(count=3, clock=True),
        "windows of 3000000 us, by the clock don't support .aggregate": lambda: keyed.window(
            seconds=3, clock=True
        ).aggregate(name="x", **count),
        "can't be merged": lambda: keyed.session(gap=3, lateness=3).collect(name="x"),
        "until=": lambda: keyed.session(gap=3).collect(name="x", until=cast("Any", never)),
        "a field 'corrected' already": lambda: keyed.window(seconds=3, lateness=3).aggregate(
            name="x", corrected=rel.count()
        ),
    }
    for said, declare in wrong.items():
        with pytest.raises(GraphError) as caught:
            declare()
        assert said in str(caught.value)


def test_corrected_results_have_no_event_time_until_they_are_given_one() -> None:
    topology = rel.Topology("again")
    timed = topology.source(rel.rows([Row("a", 1, 1)]), name="rows").event_time("at", name="time").key_by("key")
    corrected = timed.window(seconds=3, lateness=3).aggregate(name="sums", n=rel.sum("n"))
    with raises(GraphError, "no-event-time"):
        corrected.window(seconds=6)
    corrected.event_time("end", name="again", lateness=6).window(seconds=6).aggregate(name="n", n=rel.count()).sink(
        rel.count(), name="out"
    )
