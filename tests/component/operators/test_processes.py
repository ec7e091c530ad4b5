"""Classes with timers of keys, against what the same program gives when somebody who has all tuples plays it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import GraphError, JobFailedError
from tests.component.operators.running import CONFIGS
from tests.component.operators.timed_rows import (
    Row,
    Told,
    check_by_the_clock,
    check_played,
    check_replicas,
    check_snapshots,
    check_streams,
    few_and_many,
    processing,
    rows_of,
)

KEY = b"0123456789abcdef"


class Program:
    """Tells what it is called for; every third timer sets another one."""

    def on_tuple(self, t: Row, state: dict[str, int], out: rel.Out) -> None:
        state["seen"] = state.get("seen", 0) + 1
        out.give(Told(t.key, "tuple", out.time, state["seen"]))
        if t.wait > 0:
            out.after(t.wait)
        elif t.wait < 0:
            out.cancel(t.at - t.wait)

    def on_time(self, time: int, state: dict[str, int], out: rel.Out) -> None:
        (key,) = out.key
        out.give(Told(key, "timer", time, state["seen"]))
        if time % 3 == 0:
            out.timer(time + 4)

    def on_end(self, state: dict[str, int], out: rel.Out) -> None:
        (key,) = out.key
        out.give(Told(key, "end", 0, state.get("seen", 0)))


def topology_of(source: Any, lateness: int, *, late: bool = True, program: Any = Program) -> rel.Topology:
    return processing(source, lateness, program, late=late)


streams = st.lists(st.builds(Row, st.integers(0, 3), st.integers(0, 40), st.integers(-6, 9)), max_size=40)


@few_and_many
def test_streams_as_played(examples: int) -> None:
    check_streams(topology_of, streams, examples)


@pytest.mark.parametrize("config", CONFIGS)
def test_under_every_threading_model(config: str) -> None:
    check_played(topology_of, rows_of(1, 2000, 20), 10, CONFIGS[config])


@pytest.mark.parametrize("cuts", [(1,), (300,), (299, 300, 555)])
def test_snapshots_have_timers_and_tuples_that_wait(cuts: tuple[int, ...], tmp_path: Path) -> None:
    check_snapshots(topology_of, cuts, [rel.Snapshot(tmp_path / str(cut), key=KEY) for cut in cuts])


def test_timers_go_to_other_replicas_with_their_keys() -> None:
    check_replicas(topology_of)


class Clocked:
    """By the clock: tells of itself as soon as its time has come."""

    def on_tuple(self, t: Row, state: Any, out: rel.Out) -> None:
        state["at"] = out.time
        out.after(0.01)
        out.after(3600)

    def on_time(self, time: float, state: Any, out: rel.Out) -> None:
        out.give((*out.key, time - state["at"]))

    def on_end(self, state: Any, out: rel.Out) -> None:
        out.give((*out.key, -1.0))


@pytest.mark.parametrize("timed", [True, False])
def test_by_the_clock_timers_come_though_nothing_else_does(timed: bool) -> None:
    def declare(rows: rel.Stream) -> rel.Stream:
        rows = rows.event_time("at", name="time") if timed else rows
        return rows.key_by("key").process(Clocked, name="clocked", schema={"key": int, "after": float}, clock=timed)

    check_by_the_clock(declare)


class Moment(NamedTuple):
    who: str
    at: dt.datetime


class Daily:
    def on_tuple(self, t: Moment, state: Any, out: rel.Out) -> None:
        assert out.time == t.at
        out.timer(t.at.replace(hour=23, minute=59, second=59, microsecond=0))
        out.after(dt.timedelta(hours=1))

    def on_time(self, time: dt.datetime, state: Any, out: rel.Out) -> None:
        out.give(Moment(out.key[0], time))


@pytest.mark.parametrize("zone", [None, dt.UTC])
def test_times_are_written_as_in_the_stream(zone: Any) -> None:
    at = dt.datetime(2026, 5, 1, 12, 30, 15, 250, zone)
    annotation: Any = dt.datetime if zone is None else None
    topology = rel.Topology("daily")
    rows = rel.rows([("a", at)], schema={"who": str, "at": annotation}) if zone is None else rel.arrow(_zoned(at))
    timed = topology.source(rows, name="rows").event_time("at", name="time").key_by("who")
    timed.process(Daily, name="daily", schema=timed.schema).sink(rel.list(), name="out")
    given_times = [t[1] for t in rel.run(topology)["out"]]
    assert given_times == [at + dt.timedelta(hours=1), at.replace(hour=23, minute=59, second=59, microsecond=0)]


def _zoned(at: dt.datetime) -> Any:
    import pyarrow as pa

    columns = [pa.field("who", pa.string(), nullable=False), pa.field("at", pa.timestamp("us", "UTC"), nullable=False)]
    return pa.table({"who": ["a"], "at": [at]}, schema=pa.schema(columns))


def test_a_key_that_is_forgotten_begins_anew() -> None:
    class Forgets:
        def on_tuple(self, t: Row, state: Any, out: rel.Out) -> None:
            state["seen"] = state.get("seen", 0) + 1
            out.give(Told(t.key, "tuple", t.at, state["seen"]))
            out.timer(100)
            if t.wait:
                out.forget()

        def on_time(self, time: int, state: Any, out: rel.Out) -> None:
            raise AssertionError

    rows = [Row(1, 1, 0), Row(1, 2, 1), Row(1, 3, 1)]
    result = rel.run(topology_of(rel.rows(rows, schema=Row), 0, program=Forgets))
    assert [t.seen for t in result["out"]] == [1, 2, 1]


def failing(program: Any, rows: list[Row] | None = None) -> JobFailedError:
    with pytest.raises(JobFailedError) as caught:
        rel.run(topology_of(rel.rows(rows or [Row(1, 5, 1)], schema=Row), 0, program=program))
    return caught.value


def test_what_raises_is_told_with_the_tuple() -> None:
    class Raises:
        def on_tuple(self, t: Row, state: Any, out: rel.Out) -> None:
            raise ValueError(f"no {t.at}")

    error = failing(Raises)
    assert error.operator == "told"
    assert "ValueError: no 5" in str(error)
    assert error.failing_tuple == "Row(key=1, at=5, wait=1)"


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (4, "a timer at 4, and it is 5 already"),
        ("x", "'x' is no time here: times are of type int"),
        (None, "is no time"),
    ],
)
def test_timers_lie_ahead(at: Any, said: str) -> None:
    class Asks:
        def on_tuple(self, t: Row, state: Any, out: rel.Out) -> None:
            out.timer(at)

        def on_time(self, time: int, state: Any, out: rel.Out) -> None:
            pass

    assert said in str(failing(Asks))


def test_timers_without_end_are_told() -> None:
    class Beats:
        def on_tuple(self, t: Row, state: Any, out: rel.Out) -> None:
            out.after(1)

        def on_time(self, time: int, state: Any, out: rel.Out) -> None:
            out.after(1)

    assert "look at out.ended before you set one" in str(failing(Beats))

    class Ends(Beats):
        def on_time(self, time: int, state: Any, out: rel.Out) -> None:
            if not out.ended:
                out.after(1)

    assert rel.run(topology_of(rel.rows([Row(1, 5, 1)], schema=Row), 0, program=Ends))["out"] == []


def test_the_class_is_looked_at_when_it_is_declared() -> None:
    class Misspelt:
        def on_tuple(self, t: Any, state: Any, out: Any) -> None: ...
        def on_timer(self, time: Any, state: Any, out: Any) -> None: ...

    class Nothing:
        pass

    class Waits:
        async def on_tuple(self, t: Any, state: Any, out: Any) -> None: ...

    class Other:
        def on_tuple(self, t: Any) -> None: ...

    class Needs:
        def __init__(self, number: int) -> None: ...
        def on_tuple(self, t: Any, state: Any, out: Any) -> None: ...

    said = {
        Misspelt: "has a method on_timer that the runtime doesn't call. Did you mean on_time?",
        Nothing: "Write def on_tuple(self, t, state, out)",
        Waits: "on_tuple is async",
        Other: "on_tuple is called as on_tuple(t, state, out)",
        Needs: "Pass the object itself: Needs(...)",
    }
    for cls, words in said.items():
        with pytest.raises(GraphError) as caught:
            topology_of(rel.rows([Row(1, 5, 1)], schema=Row), 0, program=cls)
        assert words in str(caught.value)
        assert "operator 'told'" in str(caught.value)
    assert rel.run(topology_of(rel.rows([Row(1, 5, 1)], schema=Row), 0, program=Needs(3)))["out"] == []
