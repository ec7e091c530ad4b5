"""Classes with timers in the compiled lane: the same as in Python, and as somebody plays it who has all tuples."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import JobFailedError, LaneError, SchemaError
from rayelastic.graph.spec.operator_spec import Lane
from tests.component.operators.running import CONFIGS
from tests.component.operators.timed_rows import (
    MANUAL,
    PATIENCE,
    Row,
    Told,
    by_key,
    check_by_the_clock,
    check_played,
    check_replicas,
    check_snapshots,
    check_streams,
    few_and_many,
    processing,
    rows_of,
)
from tests.raising import check_reason, raises
from tests.waiting import wait_until_emitted


class Seen(NamedTuple):
    seen: int = 0


class Program:
    """Tells what it is called for; every third timer sets another one."""

    def __init__(self, more: int = 4) -> None:
        self.more = more

    def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
        state.seen += 1  # type: ignore[misc]
        out.give(Told(t.key, "tuple", out.time, state.seen))
        if t.wait > 0:
            out.after(t.wait)
        elif t.wait < 0:
            out.cancel(t.at - t.wait)

    def on_time(self, time: int, state: Seen, out: rel.Out) -> None:
        (key,) = out.key
        out.give(Told(key, "timer", time, state.seen))
        if time % 3 == 0:
            out.timer(time + self.more)

    def on_end(self, state: Seen, out: rel.Out) -> None:
        (key,) = out.key
        out.give(Told(key, "end", 0, state.seen))


def topology_of(
    source: Any, lateness: int, *, late: bool = True, program: Any = Program, state: Any = Seen, lane: Any = "compiled"
) -> rel.Topology:
    return processing(source, lateness, program, late=late, state=state, lane=lane)


# few keys and times, so that timers meet tuples, one another, and those that take them back
streams = st.lists(st.builds(Row, st.integers(0, 1), st.integers(0, 12), st.integers(-4, 5)), min_size=5, max_size=40)


@few_and_many
def test_streams_as_played(examples: int) -> None:
    check_streams(topology_of, streams, examples)


def test_in_the_order_of_the_python_lane() -> None:
    rows = rows_of(4, 900, 9)
    both = [rel.run(topology_of(rel.rows(rows), 10, lane=lane))["out"] for lane in ("python", "compiled")]
    ends = [sorted(t for t in told if t.what == "end") for told in both]
    assert [t for t in both[0] if t.what != "end"] == [t for t in both[1] if t.what != "end"]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("config", CONFIGS)
def test_under_every_threading_model(config: str) -> None:
    check_played(topology_of, rows_of(1, 2000, 20), 10, CONFIGS[config])


@pytest.mark.parametrize("cuts", [(1,), (299, 300, 555)])
def test_snapshots_have_timers_and_tuples_that_wait(cuts: tuple[int, ...], tmp_path: Path) -> None:
    # no key: nothing is pickled
    check_snapshots(topology_of, cuts, [rel.Snapshot(tmp_path / str(cut)) for cut in cuts])


def test_timers_go_to_other_replicas_with_their_keys() -> None:
    check_replicas(topology_of)


class Line(NamedTuple):
    who: str
    at: float
    text: str


class Last(NamedTuple):
    text: str = "nothing"
    times: int = 0


class Remembers:
    """The last text of a key, half a second behind it; texts are the state's own."""

    def on_tuple(self, t: Line, state: Last, out: rel.Out) -> None:
        if t.text == "forget":
            out.forget()
        else:
            out.give(Line(t.who, out.time, f"{state.text} then {t.text}"))
            state.text = t.text  # type: ignore[misc]
            out.timer(t.at + 0.5)

    def on_time(self, time: float, state: Last, out: rel.Out) -> None:
        state.times += 1  # type: ignore[misc]
        out.give(Line(*out.key, time, state.text if not out.ended else state.text + " at the end"))  # type: ignore[call-arg]

    def on_end(self, state: Last, out: rel.Out) -> None:
        out.give(("all", float(state.times), state.text))


def test_texts_and_seconds_as_in_python() -> None:
    dice = random.Random(5)
    texts = ["forget", "a", "much longer than what fits into a view", "ä" * 9]
    names = ["ann", "somebody with a name that is long"]
    rows = [Line(dice.choice(names), n / 8, dice.choice(texts)) for n in range(300)]
    found = []
    for lane in ("python", "compiled"):
        topology = rel.Topology("remembers")
        timed = topology.source(rel.rows(rows), name="rows").event_time("at", name="time").key_by("who")
        timed.process(Remembers, name="last", schema=Line, state=Last, lane=lane).sink(rel.list(), name="out")
        found.append([tuple(t) for t in rel.run(topology)["out"]])
    assert found[0] == found[1]
    assert len(found[0]) > 300


class Rested(NamedTuple):
    since: float = 0.0


class Clocked:
    """By the clock: tells of itself as soon as its time has come."""

    def on_tuple(self, t: Row, state: Rested, out: rel.Out) -> None:
        state.since = out.time  # type: ignore[misc]
        out.after(0.01)
        out.after(3600)

    def on_time(self, time: float, state: Rested, out: rel.Out) -> None:
        out.give((*out.key, time - state.since))

    def on_end(self, state: Rested, out: rel.Out) -> None:
        out.give((*out.key, -1.0))


def test_by_the_clock_timers_come_though_nothing_else_does() -> None:
    check_by_the_clock(
        lambda rows: rows.key_by("key").process(
            Clocked, name="clocked", schema={"key": int, "after": float}, state=Rested, lane="compiled"
        )
    )


def test_many_timers_of_a_key_each_once() -> None:
    class Many:
        def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
            for n in range(1000):
                out.timer(t.at + (n * 7919) % 500 + 1)

        def on_time(self, time: int, state: Seen, out: rel.Out) -> None:
            state.seen += 1  # type: ignore[misc]
            out.give(Told(out.key[0], "timer", time, state.seen))

    out = rel.run(topology_of(rel.rows([Row(1, 5, 0), Row(2, 7, 0)]), 0, program=Many))["out"]
    assert [t.at for t in by_key(out)[1]] == list(range(6, 506))
    assert [t.at for t in by_key(out)[2]] == list(range(8, 508))


def failing(program: Any, rows: list[Row]) -> JobFailedError:
    with pytest.raises(JobFailedError) as caught:
        rel.run(topology_of(rel.rows(rows), 0, program=program))
    assert caught.value.operator == "told"
    return caught.value


def test_what_fails_is_told() -> None:
    class Divides:
        def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
            out.give(Told(t.key, "x", 100 // t.wait, 0))

    class DividesLater(Divides):
        def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
            out.after(1)

        def on_time(self, time: int, state: Seen, out: rel.Out) -> None:
            out.give(Told(1, "x", 100 // (time - 6), 0))

    class Back:
        def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
            out.timer(t.at - 1)

        def on_time(self, time: int, state: Seen, out: rel.Out) -> None:
            pass

    class Beats:
        def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
            out.after(1)

        def on_time(self, time: int, state: Seen, out: rel.Out) -> None:
            out.after(1)

    said = str(failing(Divides, [Row(1, 4, 1), Row(1, 5, 0)]))
    assert "ZeroDivisionError" in said
    assert "Row(key=1, at=5, wait=0)" in said
    assert "ZeroDivisionError" in str(failing(DividesLater, [Row(1, 5, 0)]))
    assert "ValueError: a timer at 4, and it is 5 already" in str(failing(Back, [Row(1, 5, 0)]))
    assert "look at out.ended before you set one" in str(failing(Beats, [Row(1, 5, 0)]))


@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_any_number_of_timers_may_be_left_at_the_end(lane: str) -> None:
    """Those that are there are no sign of some that set each other for ever."""

    class Many:
        def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
            for at in range(t.at + 1, t.at + 100_010):
                out.timer(at)

        def on_time(self, time: int, state: Seen, out: rel.Out) -> None:
            if time % 10_000 == 0:
                out.give(Told(1, "came", time, 0))

    assert len(rel.run(topology_of(rel.rows([Row(1, 5, 1)]), 0, program=Many, lane=lane))["out"]) == 10


def body_of(program: Any, **options: Any) -> Any:
    topology = topology_of(rel.rows([Row(1, 5, 1)]), 0, program=program, lane="auto", **options)
    return topology.operators["told"].body


def test_what_keeps_it_in_python_is_said() -> None:
    class HandsOn:
        def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
            self.other(out)

        def other(self, out: rel.Out) -> None:
            out.give(Told(0, "x", 0, 0))

    class NoTimers:
        def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
            out.after(1)

    assert body_of(Program).lane is Lane.COMPILED
    assert body_of(Program(9)).lane is Lane.COMPILED
    for program, code in {HandsOn: "unsupported", NoTimers: "no_on_time"}.items():
        body = body_of(program)
        assert body.lane is Lane.PYTHON
        check_reason(body.refusal, code, "on_tuple")
        with raises(LaneError, "not-compiled", operator="told") as caught:
            topology_of(rel.rows([Row(1, 5, 1)]), 0, program=program)
        assert caught.value.details == body.refusal
    check_reason(body_of(Program, state=None).refusal, "state_class")
    with raises(SchemaError, "unknown-field", "sene"):
        topology_of(rel.rows([Row(1, 5, 1)]), 0, program=Misspells)


class Misspells:
    def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
        state.sene += 1  # type: ignore[attr-defined]


class Batches:
    """Three tuples of a key together; nothing is left of it then."""

    def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
        state.seen += 1  # type: ignore[misc]
        if state.seen == 3:
            out.give(Told(t.key, "full", t.at, 3))
            out.forget()
            if t.wait > 5:
                out.after(t.wait)

    def on_time(self, time: int, state: Seen, out: rel.Out) -> None:
        out.give(Told(out.key[0], "timer", time, state.seen))
        if state.seen > 1:
            out.forget()

    def on_end(self, state: Seen, out: rel.Out) -> None:
        out.give(Told(out.key[0], "end", 0, state.seen))


def test_nothing_is_left_of_a_key_that_is_forgotten() -> None:
    rows = rows_of(6, 700, 40)
    told = [
        rel.run(topology_of(rel.rows(rows), 10, program=Batches, lane=lane))["out"] for lane in ("python", "compiled")
    ]
    assert by_key(told[0]) == by_key(told[1])
    gate = testing.Gate()
    topology = rel.Topology("forgotten")
    source = testing.script([*(Row(n, n, 0) for n in range(500) for _ in range(3)), gate], Row)
    timed = topology.source(source, name="rows").event_time("at", name="time")
    timed.key_by("key").process(Batches, name="told", schema=Told, state=Seen, lane="compiled").sink(
        rel.count(), name="out"
    )
    job = rel.start(topology, MANUAL)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_emitted(job, "told", 499)
        assert job.metrics().operator("told").state_keys <= 1
        gate.open()
        assert job.wait(PATIENCE)["out"] == 500
    finally:
        job.close()
