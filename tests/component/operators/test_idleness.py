"""Streams on which nothing comes: others don't wait for them, windows close by the clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError

PATIENCE = 60.0


class Row(NamedTuple):
    at: int
    x: int


class Seen:
    """What a sink has been given, and when it has some of it."""

    def __init__(self) -> None:
        self.tuples: list[tuple[Any, ...]] = []
        self._changed = threading.Condition()

    def __call__(self, t: Any) -> None:
        with self._changed:
            self.tuples.append(tuple(t))
            self._changed.notify_all()

    def wait(self, number: int) -> list[tuple[Any, ...]]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.tuples) >= number, PATIENCE)
            return self.tuples[:number]


def windows(stream: rel.Stream) -> Any:
    return stream.window(seconds=10).aggregate(name="windows", n=rel.count(), x=rel.sum("x"))


UNITED: dict[str, Callable[[Any, Any], Any]] = {
    "union": lambda one, other: windows(one.union(other)),
    "merge": lambda one, other: windows(one.merge_by_time(other, name="merged")),
}


@pytest.mark.parametrize("united", UNITED)
@pytest.mark.parametrize("first", [[], [Row(2, 100)]])
def test_an_idle_stream_keeps_no_other_waiting(united: str, first: list[Row]) -> None:
    seen, idle, busy = Seen(), testing.Gate(), testing.Gate()
    topology = rel.Topology("idle")
    flows = topology.source(testing.script([*(Row(n, 1) for n in range(35)), busy], Row), name="flows")
    waits = topology.source(testing.script([*first, idle, Row(45, 1000), Row(60, 1)], Row), name="waits")
    one = flows.event_time("at", name="time one")
    other = waits.event_time("at", name="time other", idle_after=0.05)
    UNITED[united](one, other).sink(rel.call(seen), name="see")
    job = rel.start(topology)
    try:
        more = sum(row.x for row in first)
        assert seen.wait(3) == [(0, 10, 10 + len(first), 10 + more), (10, 20, 10, 10), (20, 30, 10, 10)]
        idle.open()
        busy.open()
        job.wait(PATIENCE)
    finally:
        idle.open()
        busy.open()
        job.close()
    assert seen.tuples[3:] == [(30, 40, 5, 5), (40, 50, 1, 1000), (60, 70, 1, 1)]


def test_windows_close_by_the_clock() -> None:
    seen, gate = Seen(), testing.Gate()
    topology = rel.Topology("clock")
    rows = topology.source(testing.script([Row(5, 1), Row(7, 2), gate, Row(8, 4), Row(10**9, 8)], Row), name="rows")
    timed = rows.event_time("at", name="time", unit="ms", idle_after=0.02, by_clock=True)
    counts = timed.window(seconds=0.01).aggregate(name="windows", n=rel.count(), x=rel.sum("x"))
    counts.sink(rel.call(seen), name="see")
    counts.late().sink(rel.list(), name="late")
    job = rel.start(topology)
    try:
        assert seen.wait(1) == [(0, 10, 2, 3)]
        gate.open()
        result = job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()
    assert [tuple(t) for t in result["late"]] == [(8, 4)]
    assert seen.tuples[1:] == [(10**9, 10**9 + 10, 1, 8)]


def test_timers_come_by_the_clock() -> None:
    class Silence:
        def on_tuple(self, t: Row, state: Any, out: rel.Out) -> None:
            out.after(0.01)

        def on_time(self, time: int, state: Any, out: rel.Out) -> None:
            out.give((*out.key, time))

    seen, gate = Seen(), testing.Gate()
    topology = rel.Topology("silence")
    rows = topology.source(testing.script([Row(5, 1), Row(7, 2), gate], Row), name="rows")
    timed = rows.event_time("at", name="time", unit="ms", idle_after=0.02, by_clock=True)
    timed.key_by("x").process(Silence, name="silence", schema={"x": int, "at": int}).sink(rel.call(seen), name="see")
    job = rel.start(topology)
    try:
        assert seen.wait(2) == [(1, 15), (2, 17)]
    finally:
        gate.open()
        job.close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"idle_after": 0}, "idle_after=0 is invalid. Pass seconds, more than 0"),
        ({"idle_after": "x"}, "idle_after='x' isn't a length of time"),
        ({"by_clock": True}, "by_clock=True without idle_after="),
        ({"by_clock": 1}, "by_clock=1 is invalid. Pass True or False"),
    ],
)
def test_what_is_no_idleness(given: dict[str, Any], said: str) -> None:
    topology = rel.Topology("wrong")
    rows = topology.source(rel.rows([Row(1, 1)], schema=Row), name="rows")
    with pytest.raises(GraphError) as caught:
        rows.event_time("at", name="time", **given)
    assert said in str(caught.value)
    assert "operator 'time'" in str(caught.value)
