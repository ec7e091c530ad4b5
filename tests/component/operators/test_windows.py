"""Windows by count, by event time and sessions, keyed and global, against plain Python over the same rows."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from tests.component.operators.running import CONFIGS, results, table_of


class Event(NamedTuple):
    key: str
    at: int
    n: int
    text: str


Given = list[tuple[Any, ...]]
TEXTS = ["", "short", "twelve bytes", "a text of more than twelve bytes", "another of the longer texts"]


def aggregates() -> dict[str, Any]:
    return {
        "tuples": rel.count(),
        "sum": rel.sum("n"),
        "least": rel.min("text"),
        "greatest": rel.max("n"),
        "texts": rel.distinct("text"),
        "top": rel.top_k("n", 2),
        "first": rel.first("text"),
        "last": rel.last("n"),
    }


def aggregated(rows: list[Event]) -> tuple[Any, ...]:
    top = [*sorted((r.n for r in rows), reverse=True)[:2], None]
    least = min(r.text for r in rows)
    return (
        *(len(rows), sum(r.n for r in rows), least, max(r.n for r in rows), len({r.text for r in rows})),
        *(top[0], top[1], rows[0].text, rows[-1].n),
    )


def by_key(rows: list[Event]) -> dict[str, list[Event]]:
    keys: dict[str, list[Event]] = defaultdict(list)
    for row in rows:
        keys[row.key].append(row)
    return keys


# --- by count ---------------------------------------------------------------------------------------------------------


def count_windows(rows: list[Event], size: int, slide: int, rest: bool) -> Given:
    given_: Given = []
    seen: dict[str, list[Event]] = defaultdict(list)
    for row in rows:
        of_key = seen[row.key]
        of_key.append(row)
        if len(of_key) >= size and (len(of_key) - size) % slide == 0:
            given_.append((row.key, *aggregated(of_key[-size:])))
    for key, of_key in seen.items() if rest else ():
        windows = (len(of_key) - size) // slide + 1 if len(of_key) >= size else 0
        end = (windows - 1) * slide + size if windows else 0
        if windows * slide < len(of_key) and end < len(of_key):
            given_.append((key, *aggregated(of_key[windows * slide :])))
    return given_


EVENTS = st.lists(
    st.builds(Event, st.sampled_from("abc"), st.integers(-30, 90), st.integers(-9, 9), st.sampled_from(TEXTS)),
    max_size=80,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(EVENTS, st.integers(1, 12), st.integers(1, 12), st.booleans())
def test_windows_by_count(rows: list[Event], size: int, slide: int, rest: bool) -> None:
    found = results(
        Event,
        rows,
        lambda s: s.key_by("key").window(count=size, slide=slide, rest=rest).aggregate(name="w", **aggregates()),
    )
    assert found == count_windows(rows, size, slide, rest)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@pytest.mark.parametrize(("size", "slide"), [(15, 1), (10, 10), (7, 14), (6, 4)])
def test_windows_by_count_however_the_job_runs(config: rel.JobConfig, size: int, slide: int) -> None:
    rows = events(4000, keys=20)
    found = results(
        Event,
        rows,
        lambda s: s.key_by("key").window(count=size, slide=slide).aggregate(name="w", **aggregates()),
        config,
    )
    assert found == count_windows(rows, size, slide, rest=slide >= size)


# --- by event time ----------------------------------------------------------------------------------------------------


def events(count: int, *, keys: int, disorder: int = 0, seed: int = 3) -> list[Event]:
    chance = random.Random(seed)
    return [
        Event(
            f"key {chance.randrange(keys)}",
            at + chance.randint(-disorder, disorder),
            chance.randrange(-99, 99),
            chance.choice(TEXTS),
        )
        for at in range(count)
    ]


def split_late(
    rows: list[Event], lateness: int, is_late: Callable[[Event, int], bool]
) -> tuple[list[Event], list[Event]]:
    """Tuples in time and late ones, by the exact watermark in front of each."""
    on_time, late, greatest = [], [], None  # type: ignore[var-annotated]
    for row in rows:
        watermark = None if greatest is None else greatest - lateness - 1
        (late if watermark is not None and is_late(row, watermark) else on_time).append(row)  # type: ignore[unreachable]
        greatest = row.at if greatest is None else max(greatest, row.at)
    return on_time, late


def time_windows(rows: list[Event], size: int, slide: int, lateness: int) -> tuple[Given, list[Event]]:
    def is_late(row: Event, watermark: int) -> bool:
        end = row.at // slide * slide + size
        return row.at < end and end - 1 <= watermark

    on_time, late = [], []  # type: ignore[var-annotated]
    windows: dict[tuple[int, str], list[tuple[int, Event]]] = defaultdict(list)
    on_time, late = split_late(rows, lateness, is_late)
    greatest: dict[Event, int] = {}
    running = None
    for row in rows:
        greatest[row] = running if running is not None else -(10**9)
        running = row.at if running is None else max(running, row.at)
    for row in on_time:
        start = row.at // slide * slide
        while start + size > row.at:
            if start + size - 1 > greatest[row] - lateness - 1:
                windows[start + size, row.key].append((row.at, row))
            start -= slide
    found = [
        (key, end - size, end, *aggregated([row for _, row in sorted(inside, key=lambda one: one[0])]))
        for (end, key), inside in windows.items()
    ]
    return found, late


def run_timed(
    rows: list[Event], lateness: int, windowed: Callable[[rel.Stream], Any], config: rel.JobConfig | None = None
) -> tuple[Given, list[Event]]:
    topology = rel.Topology("timed")
    stream = topology.source(rel.arrow(table_of(Event, rows), Event), name="rows").event_time(
        "at", name="time", lateness=lateness
    )
    out = windowed(stream)
    out.sink(rel.list(), name="out")
    out.late().sink(rel.list(), name="late")
    result = rel.run(topology, config)
    return [tuple(t) for t in result["out"]], [Event(*t) for t in result["late"]]


def unique(rows: list[Event]) -> list[Event]:
    """Each with a number of its own, so that rows can be told apart."""
    return [row._replace(n=number) for number, row in enumerate(rows)]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(EVENTS, st.integers(1, 20), st.integers(1, 20), st.integers(0, 40))
def test_windows_by_time(rows: list[Event], size: int, slide: int, lateness: int) -> None:
    rows = unique(rows)
    found, late = run_timed(
        rows, lateness, lambda s: s.key_by("key").window(seconds=size, slide=slide).aggregate(name="w", **aggregates())
    )
    expected, expected_late = time_windows(rows, size, slide, lateness)
    assert late == expected_late
    assert sorted(found) == sorted(expected)
    assert [end for _, _, end, *_ in found] == sorted(end for _, _, end, *_ in found)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_windows_by_time_however_the_job_runs(config: rel.JobConfig) -> None:
    rows = unique(events(4000, keys=30, disorder=40))
    declare = lambda s: s.key_by("key").window(seconds=60, slide=20).aggregate(name="w", **aggregates())  # noqa: E731
    found, late = run_timed(rows, 25, declare, config)
    expected, expected_late = time_windows(rows, 60, 20, 25)
    assert late == expected_late
    assert len(late) > 0
    assert sorted(found) == sorted(expected)
    assert found == run_timed(rows, 25, declare)[0], "the order depends on how the job runs"


def test_global_windows_by_time_and_windows_of_windows() -> None:
    rows = unique(events(2000, keys=5, disorder=10))

    def declare(stream: rel.Stream) -> rel.Stream:
        counts = (
            stream.filter(lambda t: t.n % 3 != 0, name="some").window(seconds=10).aggregate(name="small", n=rel.count())
        )
        return counts.window(seconds=50).aggregate(name="large", n=rel.sum("n"), windows=rel.count())

    found, late = run_timed(rows, 30, declare)
    expected: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        if row.n % 3 != 0:
            expected[row.at // 50 * 50].append(row.at // 10)
    assert late == []
    assert found == [(start, start + 50, len(ats), len(set(ats))) for start, ats in sorted(expected.items())]


# --- sessions ---------------------------------------------------------------------------------------------------------


def sessions(rows: list[Event], gap: int, lateness: int) -> tuple[Given, list[Event]]:
    """Step by step: the windows of a key merge; one that the watermark has passed is given before the next tuple."""
    open_: dict[str, list[list[Event]]] = defaultdict(list)
    found: Given = []
    late: list[Event] = []
    greatest: int | None = None

    def give(watermark: float) -> None:
        due = [(max(r.at for r in s) + gap, key, s) for key, all_ in open_.items() for s in all_]
        for end, key, session in due:
            if end <= watermark:
                found.append((key, min(r.at for r in session), end, *aggregated_in_any_order(session)))
                open_[key].remove(session)

    for row in rows:
        watermark = -(10**9) if greatest is None else greatest - lateness - 1
        give(watermark)
        near = [s for s in open_[row.key] if min(r.at for r in s) - gap <= row.at <= max(r.at for r in s) + gap]
        if not near and row.at + gap <= watermark:
            late.append(row)
        else:
            open_[row.key] = [s for s in open_[row.key] if s not in near]
            open_[row.key].append([*(r for s in near for r in s), row])
        greatest = row.at if greatest is None else max(greatest, row.at)
    give(float("inf"))
    return found, late


def aggregated_in_any_order(rows: list[Event]) -> tuple[Any, ...]:
    return aggregated(rows)[:7]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(EVENTS, st.integers(1, 15), st.integers(0, 40))
def test_sessions(rows: list[Event], gap: int, lateness: int) -> None:
    rows = unique(rows)
    wanted = {name: one for name, one in aggregates().items() if name not in ("first", "last")}
    found, late = run_timed(rows, lateness, lambda s: s.key_by("key").session(gap=gap).aggregate(name="s", **wanted))
    expected, expected_late = sessions(rows, gap, lateness)
    assert late == expected_late
    assert sorted(found) == sorted(expected)
    assert [end for _, _, end, *_ in found] == sorted(end for _, _, end, *_ in found)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_sessions_however_the_job_runs(config: rel.JobConfig) -> None:
    rows = unique(events(1500, keys=40, disorder=30))
    wanted = {name: one for name, one in aggregates().items() if name not in ("first", "last")}
    declare = lambda s: s.key_by("key").session(gap=50).aggregate(name="s", **wanted)  # noqa: E731
    found, late = run_timed(rows, 10, declare, config)
    expected, expected_late = sessions(rows, 50, 10)
    assert sorted(found) == sorted(expected)
    assert late == expected_late
    assert found == run_timed(rows, 10, declare)[0]
