"""Windows that a function assigns, aggregated natively: as other windows are, whatever lane the function runs in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given, settings

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError, JobFailedError
from tests.component.operators.running import CONFIGS
from tests.component.operators.test_corrections import OPEN, Row, corrected_windows, run, streams
from tests.raising import raises

pytestmark = pytest.mark.edges

Spans = list[tuple[int, int]]


def compiled(t: Row) -> Spans:
    return [(start, start + 7) for start in range(t.at // 3 * 3, t.at - 7, -3)]


def in_python(t: Row) -> Iterator[tuple[int, int]]:
    yield from sorted(((start, start + 7) for start in range(t.at // 3 * 3, t.at - 7, -3)), key=repr)


ASSIGNERS: dict[str, Callable[[Any], Any]] = {"compiled": compiled, "python": in_python}


def sums(assign: Callable[[Any], Any], lateness: int | None = OPEN) -> Callable[[Any], Any]:
    return lambda s: s.window(assign=assign, lateness=lateness).aggregate(name="sums", n=rel.sum("n"))


@pytest.mark.parametrize("lane", ASSIGNERS)
@settings(max_examples=15, deadline=None)
@given(streams)
def test_they_are_emitted_and_corrected_as_windows_by_time_are(lane: str, rows: list[Row]) -> None:
    expected, late = corrected_windows(rows, 7, 3)
    found, too_late = run(rows, sums(ASSIGNERS[lane]))
    assert (sorted(found), too_late) == (sorted(expected), late)
    plain, too_late = run(rows, sums(ASSIGNERS[lane], None))
    assert (plain, too_late) == run(rows, lambda s: s.window(seconds=7, slide=3).aggregate(n=rel.sum("n")))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("lane", ASSIGNERS)
def test_under_every_threading_model(lane: str, config: str) -> None:
    rows = [Row("ab"[n % 2], n // 4 + (-14 if n % 7 == 0 else 0) + 20, n % 9) for n in range(600)]
    expected, late = corrected_windows(rows, 7, 3)
    found, too_late = run(rows, sums(ASSIGNERS[lane]), CONFIGS[config])
    assert (sorted(found), too_late) == (sorted(expected), late)
    assert any(one[3] for one in expected)
    assert late


def test_their_state_is_restored() -> None:
    rows = [Row("a", n // 2 + (-8 if n % 5 == 0 else 0) + 20, n % 7) for n in range(60)]
    report = testing.verify_operator(
        lambda s: sums(compiled)(s.event_time("at", name="time", lateness=3).key_by("key")), rows, Row, snapshots=5
    )
    assert any(row[3] for row in report.output), "nothing was corrected"
    assert any(condition.startswith("restored after") for condition in report.conditions)


@pytest.mark.parametrize("lane", ASSIGNERS)
def test_the_lane_is_that_of_the_function(lane: str) -> None:
    topology = rel.Topology("lanes")
    timed = topology.source(rel.rows([Row("a", 1, 1)]), name="rows").event_time("at", name="time").key_by("key")
    sums(ASSIGNERS[lane])(timed).sink(rel.list(), name="out")
    assert topology.operators["sums"].lane.value == lane
    assert "assign: " in topology.operators["sums"].body.reason


@pytest.mark.parametrize("lane", ASSIGNERS)
@pytest.mark.parametrize("span", [(9, 3), (0, 5), (0, 2**63 - 1)])
def test_a_window_that_cannot_be_fails_the_job(lane: str, span: tuple[int, int]) -> None:
    def wrong(t: Row) -> Spans:
        return [span] if t.n else []

    def in_python_too(t: Row) -> Iterator[tuple[int, int]]:
        yield from sorted(wrong(t), key=repr)

    with raises(JobFailedError, "function-raised", str(span[0]), str(span[1])) as error:
        run([Row("a", 1, 0), Row("a", 5, 1)], sums(wrong if lane == "compiled" else in_python_too))
    assert "Row(key='a', at=5, n=1)" in str(error.value)
    assert isinstance(error.value.__cause__, ValueError)


@pytest.mark.parametrize("lane", ASSIGNERS)
def test_what_the_function_raises_fails_the_job(lane: str) -> None:
    def divides(t: Row) -> Spans:
        return [(0, 10 // t.n)]

    def in_python_too(t: Row) -> Iterator[tuple[int, int]]:
        yield from sorted(divides(t), key=repr)

    with raises(JobFailedError, "function-raised", "ZeroDivisionError") as error:
        run([Row("a", 1, 1), Row("a", 1, 0)], sums(divides if lane == "compiled" else in_python_too))
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_python_answers_for_numbers_beyond_64_bits() -> None:
    def large(t: Row) -> Spans:
        end = (t.n << 62) // (1 << 62) * 10 if t.n else 10
        return [(0, end), (5, end + 5)]

    found, _ = run([Row("a", 1, 1), Row("a", 2, 9), Row("a", 3, 1)], sums(large, None))
    assert found == [("a", 0, 10, 2), ("a", 5, 15, 2), ("a", 0, 90, 9), ("a", 5, 95, 9)]


def test_a_tuple_that_is_in_no_window_is_not_late() -> None:
    def some(t: Row) -> Spans:
        return [(0, 40)] if t.n else []

    rows = [Row("a", 30, 1), Row("a", 2, 0), Row("a", 3, 1)]
    assert run(rows, sums(some, None)) == ([("a", 0, 40, 2)], [])
    folded = run(rows, lambda s: s.window(assign=some, lateness=OPEN).fold(lambda total, t: total + t.n, 0))
    assert folded == ([("a", 0, 40, False, 2)], [])


class Event(NamedTuple):
    user: str
    at: Annotated[dt.datetime, dt.UTC]
    value: float


def day_part(t: Event) -> Iterator[tuple[dt.datetime, dt.datetime]]:
    start = t.at - dt.timedelta(hours=t.at.hour % 8, minutes=t.at.minute)
    yield start, start + dt.timedelta(hours=8)


class Largest(NamedTuple):
    value: float = -1.0


class Peak:
    init = Largest

    def add(self, t: Event, state: Any) -> None:
        state.value = max(state.value, t.value)

    def merge(self, other: Any, state: Any) -> None:
        state.value = max(state.value, other.value)

    def result(self, state: Any) -> float:
        value: float = state.value
        return value


def test_dates_with_a_zone_and_aggregates_of_users_as_folded() -> None:
    first = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    events = [Event("ab"[n % 2], first + dt.timedelta(minutes=97 * n), n * 7 % 11.0) for n in range(40)]
    topology = rel.Topology("parts of days")
    keyed = topology.source(rel.rows(events), name="events").event_time("at", name="time").key_by("user")
    framed = keyed.window(assign=day_part)
    framed.aggregate(value=rel.max("value"), name="native").sink(rel.list(), name="aggregated")
    framed.combine(Peak, name="own", schema={"value": float}).sink(rel.list(), name="combined")
    framed.fold(lambda value, t: max(value, t.value), -1.0, name="folded").sink(rel.list(), name="in Python")
    assert topology.operators["own"].lane.value == topology.operators["native"].lane.value
    result = rel.run(topology)
    expected = sorted(map(tuple, result["in Python"]))
    assert len(expected) > 10
    assert sorted(map(tuple, result["aggregated"])) == expected
    assert sorted(map(tuple, result["combined"])) == expected


def test_of_a_whole_stream_and_of_windows_again() -> None:
    topology = rel.Topology("coarse")
    rows = [Row("ab"[n % 2], n, 1) for n in range(40)]
    timed = topology.source(rel.rows(rows), name="rows").event_time("at", name="time")
    fine = timed.window(assign=lambda t: [(t.at // 10 * 10, t.at // 10 * 10 + 10)]).aggregate(
        n=rel.count(), name="fine"
    )
    coarse = fine.window(assign=lambda t: [(t.start // 20 * 20, t.start // 20 * 20 + 20)])
    coarse.aggregate(n=rel.sum("n"), name="coarse").sink(rel.list(), name="out")
    assert [tuple(t) for t in rel.run(topology)["out"]] == [(0, 20, 20), (20, 40, 20)]


FRAMES: dict[str, Callable[[Any], Any]] = {
    "time": lambda s: s.window(seconds=20),
    "session": lambda s: s.session(gap=3),
    "assigned": lambda s: s.window(assign=lambda t: [(t.start // 20 * 20, t.start // 20 * 20 + 20)]),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_windows_of_windows_have_the_same_bounds_in_python(frame: str) -> None:
    topology = rel.Topology("coarse")
    rows = [Row("ab"[n % 2], n, 1) for n in range(40)]
    timed = topology.source(rel.rows(rows), name="rows").event_time("at", name="time").key_by("key")
    coarse = FRAMES[frame](timed.window(seconds=10).aggregate(n=rel.count(), name="fine").key_by("key"))
    coarse.aggregate(value=rel.sum("n"), name="native").sink(rel.list(), name="aggregated")
    coarse.fold(lambda n, t: n + t.n, 0, name="fold").sink(rel.list(), name="folded")
    result = rel.run(topology)
    assert sorted(map(tuple, result["folded"])) == sorted(map(tuple, result["aggregated"]))
    assert len(result["folded"]) == (8 if frame == "session" else 4)


def test_what_is_wrong_is_an_error_at_the_declaration() -> None:
    timed = rel.Topology("wrong").source(rel.rows([Row("a", 1, 1)]), name="rows").event_time("at", name="time")
    with raises(GraphError, "unsupported-window"):
        timed.key_by("key").window(assign=compiled, clock=True).aggregate(n=rel.count())
