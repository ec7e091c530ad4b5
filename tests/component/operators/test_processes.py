"""Classes with timers of keys, against what the same program gives when somebody who has all tuples plays it."""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError, JobFailedError
from tests.component.operators.running import CONFIGS, table_of
from tests.component.rescaling import flows

PATIENCE = 60.0
KEY = b"0123456789abcdef"
MANUAL = rel.JobConfig(threading="manual", threads=1, elasticity="off")
ELASTIC = rel.JobConfig(regions="manual", elasticity="off")


class Row(NamedTuple):
    key: int
    at: int
    wait: int  # above 0: sets a timer so much later; below: takes back the one at that time


class Told(NamedTuple):
    key: int
    what: str
    at: int
    seen: int


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


def played(rows: list[Row], lateness: int) -> tuple[dict[int, list[Told]], list[Row]]:
    """What each key gives, and what is late."""
    late, accepted, latest = [], defaultdict(list), -(2**40)
    for row in rows:
        if row.at <= latest - lateness - 1:
            late.append(row)
        else:
            accepted[row.key].append(row)
        latest = max(latest, row.at)
    return {key: list(of_key(key, sorted(mine, key=lambda row: row.at))) for key, mine in accepted.items()}, late


def of_key(key: int, rows: list[Row]) -> Iterator[Told]:
    timers: set[int] = set()
    seen = 0
    while rows or timers:
        if rows and (not timers or rows[0].at <= min(timers)):
            row = rows.pop(0)
            seen += 1
            yield Told(key, "tuple", row.at, seen)
            if row.wait > 0:
                timers.add(row.at + row.wait)
            if row.wait < 0:
                timers.discard(row.at - row.wait)
        else:
            time = min(timers)
            timers.remove(time)
            yield Told(key, "timer", time, seen)
            if time % 3 == 0:
                timers.add(time + 4)
    yield Told(key, "end", 0, seen)


def topology_of(source: Any, lateness: int, program: Any = Program, *, takes_late: bool = True) -> rel.Topology:
    topology = rel.Topology("process")
    timed = topology.source("rows", source).event_time("time", "at", lateness=lateness)
    told = timed.key_by("key").process("told", program, schema=Told)
    told.sink("out", rel.list())
    if takes_late:
        told.late().sink("late", rel.list())
    return topology


def by_key(told: Any) -> dict[int, list[Told]]:
    found: dict[int, list[Told]] = defaultdict(list)
    for one in told:
        found[one[0]].append(Told(*one))
    return dict(found)


streams = st.lists(st.builds(Row, st.integers(0, 3), st.integers(0, 40), st.integers(-6, 9)), max_size=40)


def check_played(rows: list[Row], lateness: int, run: int) -> None:
    config = rel.JobConfig(threading="manual", threads=1, elasticity="off", run_records=run)
    result = rel.run(topology_of(rel.arrow(table_of(Row, rows), Row), lateness), config)
    told, late = played(rows, lateness)
    assert by_key(result["out"]) == told
    assert [Row(*t) for t in result["late"]] == late


@settings(max_examples=100, deadline=None)
@given(streams, st.sampled_from([0, 3, 15]), st.sampled_from([1, 3, 64]))
def test_streams_as_played(rows: list[Row], lateness: int, run: int) -> None:
    check_played(rows, lateness, run)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@settings(max_examples=500, deadline=None)
@given(streams, st.sampled_from([0, 3, 15]), st.sampled_from([1, 3, 64]))
def test_many_streams_as_played(rows: list[Row], lateness: int, run: int) -> None:
    check_played(rows, lateness, run)


def rows_of(seed: int, number: int, keys: int) -> list[Row]:
    dice = random.Random(seed)
    return [Row(dice.randrange(keys), n // 3 + dice.randrange(-15, 15), dice.randrange(-6, 30)) for n in range(number)]


@pytest.mark.parametrize("config", CONFIGS)
def test_under_every_threading_model(config: str) -> None:
    rows = rows_of(1, 2000, 20)
    result = rel.run(topology_of(rel.arrow(table_of(Row, rows), Row), 10), CONFIGS[config])
    told, late = played(rows, 10)
    assert by_key(result["out"]) == told
    assert [Row(*t) for t in result["late"]] == late


@pytest.mark.parametrize("cuts", [(1,), (300,), (299, 300, 555)])
def test_snapshots_have_timers_and_tuples_that_wait(cuts: tuple[int, ...], tmp_path: Path) -> None:
    rows = rows_of(2, 600, 10)
    out: list[Any] = []
    late: list[Any] = []
    before, restore = 0, None
    for cut in cuts:
        gate = testing.Gate()
        snapshot = rel.Snapshot(tmp_path / str(cut), key=KEY)
        source = testing.script([*rows[:cut], gate], Row)
        job = rel.start(topology_of(source, 10), MANUAL, restore=restore)
        try:
            assert gate.wait_reached(PATIENCE)
            while job.metrics().operator("rows").tuples_out < cut - before:
                assert not job.status.state.is_final
            result = job.stop(snapshot)
        finally:
            job.close()
        out += result["out"]
        late += result["late"]
        before, restore = cut, snapshot
    result = rel.run(topology_of(testing.script(rows, Row), 10), MANUAL, restore=restore)
    expected = played(rows, 10)
    assert by_key([*out, *result["out"]]) == expected[0]
    assert [Row(*t) for t in [*late, *result["late"]]] == expected[1]


class Feed:
    """Rows until told to end; what it gave."""

    def __init__(self) -> None:
        self.given: list[Row] = []
        self.enough = threading.Event()

    def __call__(self) -> Iterator[Row]:
        dice = random.Random(3)
        while not self.enough.is_set():
            for _ in range(64):
                row = Row(dice.randrange(50), len(self.given) // 5 + dice.randrange(-10, 10), dice.randrange(-6, 400))
                self.given.append(row)
                yield row


def test_timers_go_to_other_replicas_with_their_keys() -> None:
    feed = Feed()
    job = rel.start(topology_of(rel.callable(feed, Row), 20, takes_late=False), ELASTIC)
    try:
        region = job.plan().region_of("told").region
        for replicas in (2, 3, 1, 2):
            flows(job)
            assert job.rescale(region.name, replicas).region(region.name).replicas == replicas
        flows(job)
        feed.enough.set()
        result = job.wait(PATIENCE)
    finally:
        feed.enough.set()
        job.close()
    told, late = played(feed.given, 20)
    assert by_key(result["out"]) == told
    assert late == []  # a change of replicas holds watermarks back, so that later ones may still be taken


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
    seen: list[Any] = []
    came = threading.Event()

    def see(t: Any) -> None:
        seen.append(tuple(t))
        if len(seen) == 2:
            came.set()

    gate = testing.Gate()
    topology = rel.Topology("clock")
    rows = topology.source("rows", testing.script([Row(1, 1, 0), Row(2, 1, 0), gate], Row))
    rows = rows.event_time("time", "at") if timed else rows
    schema = {"key": int, "after": float}
    rows.key_by("key").process("clocked", Clocked, schema=schema, clock=timed).sink("see", rel.call(see))
    job = rel.start(topology)
    try:
        assert came.wait(PATIENCE)
        assert sorted(key for key, _ in seen) == [1, 2]
        assert all(0.0099 <= after < PATIENCE for _, after in seen)
        gate.open()
        job.wait(PATIENCE)
    finally:
        job.close()
    assert sorted(seen[2:]) == [(1, -1.0), (2, -1.0)]


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
    timed = topology.source("rows", rows).event_time("time", "at").key_by("who")
    timed.process("daily", Daily, schema=timed.schema).sink("out", rel.list())
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
    result = rel.run(topology_of(rel.rows(rows, schema=Row), 0, Forgets))
    assert [t.seen for t in result["out"]] == [1, 2, 1]


def failing(program: Any, rows: list[Row] | None = None) -> JobFailedError:
    with pytest.raises(JobFailedError) as caught:
        rel.run(topology_of(rel.rows(rows or [Row(1, 5, 1)], schema=Row), 0, program))
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

    assert rel.run(topology_of(rel.rows([Row(1, 5, 1)], schema=Row), 0, Ends))["out"] == []


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
        Misspelt: "has a method on_timer, which nobody calls. Did you mean on_time?",
        Nothing: "Write def on_tuple(self, t, state, out)",
        Waits: "on_tuple is async",
        Other: "on_tuple is called as on_tuple(t, state, out)",
        Needs: "Give the object itself: Needs(...)",
    }
    for cls, words in said.items():
        with pytest.raises(GraphError) as caught:
            topology_of(rel.rows([Row(1, 5, 1)], schema=Row), 0, cls)
        assert words in str(caught.value)
        assert "operator 'told'" in str(caught.value)
    assert rel.run(topology_of(rel.rows([Row(1, 5, 1)], schema=Row), 0, Needs(3)))["out"] == []
