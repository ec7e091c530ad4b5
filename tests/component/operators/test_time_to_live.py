"""State of keys that is forgotten: in every lane, by event time and by the clock, saved, restored and moved."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from rayelastic.fluent.stream import Stream
from rayelastic.job import start
from tests.component.operators.running import CONFIGS, table_of
from tests.component.operators.visits import LATENESS, TTL, VISITS, Counted, Seen, Visit, stream_of, visits
from tests.component.rescale.rescaling import PAUSE
from tests.raising import raises
from tests.waiting import wait_until_emitted, wait_until_received

PATIENCE = 60.0


def counted(t: Any, s: Any) -> Counted:
    s.count += 1
    s.note = t.who  # long texts are given back and not mixed up
    return Counted(s.note, s.count)


def first(t: Any, s: Any) -> bool:
    s.count += 1
    return s.count == 1


def several(t: Any, s: Any) -> Iterator[Counted]:
    s.count += 1
    for _ in range(s.count % 2):
        yield Counted(t.who, s.count)


def listed(t: Any, s: list[int]) -> Counted:
    s.append(t.at)
    return Counted(t.who, len(s))


def fails(t: Any, s: Any) -> Counted:
    s.count += 1
    if s.count == 2:
        raise ValueError(t.who)
    return Counted(t.who, s.count)


Operator = Callable[[Any, str, Any], Stream]


def maps(fn: Any, lane: Any, state: Any = Seen, on_error: Any = "fail") -> Operator:
    return lambda s, name, ttl: s.map(fn, name=name, state=state, schema=Counted, lane=lane, on_error=on_error, ttl=ttl)


def filters(lane: Any) -> Operator:
    return lambda s, name, ttl: s.filter(first, name=name, state=Seen, lane=lane, ttl=ttl)


def flat_maps(lane: Any) -> Operator:
    return lambda s, name, ttl: s.flat_map(several, name=name, state=Seen, schema=Counted, lane=lane, ttl=ttl)


def always(_count: int) -> bool:
    return True


# name: (operator, for which counts of a key it gives something: that count, or the tuple as it came)
COUNTING: dict[str, tuple[Operator, Callable[[int], bool]]] = {
    "compiled map": (maps(counted, "compiled"), always),
    "python map": (maps(counted, "python"), always),
    "python values": (maps(listed, "python", list), always),
    "compiled flat_map": (flat_maps("compiled"), lambda n: n % 2 == 1),
    "python flat_map": (flat_maps("python"), lambda n: n % 2 == 1),
    "compiled, skips": (maps(fails, "compiled", on_error="skip"), lambda n: n != 2),
    "python, skips": (maps(fails, "python", on_error="skip"), lambda n: n != 2),
    "scan": (lambda s, name, ttl: s.scan(lambda n, t: n + 1, 0, name=name, ttl=ttl), always),
    "aggregate": (lambda s, name, ttl: s.aggregate(name=name, emit="update", ttl=ttl, count=rel.count()), always),
}
PASSING: dict[str, tuple[Operator, Callable[[int], bool]]] = {
    "compiled filter": (filters("compiled"), lambda n: n == 1),
    "python filter": (filters("python"), lambda n: n == 1),
    "deduplicate": (lambda s, name, ttl: s.deduplicate(name=name, ttl=ttl), lambda n: n == 1),
}
OPERATORS = COUNTING | PASSING


def forgetting(rows: list[Visit], ttl: int, lateness: int) -> list[Counted]:
    """What each key's count is after each row, by event time."""
    kept: dict[str, tuple[int, int]] = {}  # last touch, count
    watermark, given = -(10**9), []
    for who, at in rows:
        touched, count = kept.get(who, (at, 0))
        if max(at, watermark) - touched > ttl:
            touched, count = at, 0
        kept[who] = max(at, touched), count + 1
        watermark = max(watermark, at - lateness - 1)
        given.append(Counted(who, count + 1))
    return given


def all_operators(source: Any, ttl: Any = TTL) -> rel.Topology:
    topology = rel.Topology("forgetful")
    timed = topology.source(source, name="rows").event_time("at", name="time", lateness=LATENESS).key_by("who")
    for number, (operator, _) in enumerate(OPERATORS.values()):
        operator(timed, f"op{number}", ttl).sink(rel.list(), name=f"out{number}")
    return topology


def check_all(rows: list[Visit], config: rel.JobConfig | None = None) -> None:
    result = rel.run(all_operators(rel.arrow(table_of(Visit, rows), Visit)), config)
    expected = forgetting(rows, TTL, LATENESS)
    for number, (name, (_, gives)) in enumerate(OPERATORS.items()):
        made = [
            row if name in PASSING else count for row, count in zip(rows, expected, strict=True) if gives(count.count)
        ]
        assert [tuple(t) for t in result[f"out{number}"]] == made, name


@settings(max_examples=60, deadline=None, derandomize=True)
@given(VISITS)
def test_all_lanes_forget_as_ten_lines_of_python_do(steps: list[tuple[str, int, int]]) -> None:
    check_all(visits(steps))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_result_does_not_depend_on_how_the_job_runs(config: rel.JobConfig) -> None:
    check_all(stream_of(3000, keys=15, disorder=9), config)


def test_a_reduce_begins_anew() -> None:
    rows = stream_of(300, keys=15)

    def declare(s: Stream) -> Stream:
        keyed = s.event_time("at", name="time", lateness=LATENESS).key_by("who")
        return keyed.reduce(lambda one, _: one, name="op", emit="update", ttl=TTL)

    firsts: dict[str, Visit] = {}
    expected = []
    for row, made in zip(rows, forgetting(rows, TTL, LATENESS), strict=True):
        if made.count == 1:
            firsts[row.who] = row
        expected.append(firsts[row.who])
    assert testing.collect(declare, rows, Visit) == expected


def test_one_operator_under_every_condition() -> None:
    rows = stream_of(60, keys=6)

    def declare(s: Stream, lane: Any) -> Stream:
        timed = s.event_time("at", name="time", lateness=LATENESS)
        return timed.key_by("who").map(counted, name="count", state=Seen, schema=Counted, lane=lane, ttl=TTL)

    assert list(testing.verify_operator(declare, rows, Visit).output) == forgetting(rows, TTL, LATENESS)


def stopped_after(
    count: int, rows: list[Visit], topology: Callable[[Any], rel.Topology], snapshot: rel.Snapshot
) -> Any:
    """Stops a job into a snapshot when it has had so many rows; what it gave until then."""
    gate = testing.Gate()
    job = start(topology(testing.script([*rows[:count], gate], Visit)))
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_emitted(job, "rows", count)
        return [tuple(t) for t in job.stop(snapshot)["out"]]
    finally:
        job.close()


@pytest.mark.parametrize("name", ["compiled map", "python values", "aggregate"])
def test_what_is_restored_has_its_touches_by_event_time(name: str, tmp_path: Path) -> None:
    rows = stream_of(400, keys=12)

    def topology(source: Any) -> rel.Topology:
        topology = rel.Topology("saved")
        timed = topology.source(source, name="rows").event_time("at", name="time", lateness=LATENESS)
        COUNTING[name][0](timed.key_by("who"), "op", TTL).sink(rel.list(), name="out")
        return topology

    snapshot = rel.Snapshot(tmp_path / "saved", key=b"0123456789abcdef")
    found = stopped_after(200, rows, topology, snapshot)
    found += [tuple(t) for t in rel.run(topology(rel.rows(rows, Visit)), restore=snapshot)["out"]]
    assert found == forgetting(rows, TTL, LATENESS)


@pytest.mark.parametrize("name", ["compiled map", "python values", "aggregate", "scan"])
def test_what_is_restored_has_its_touches(name: str, tmp_path: Path) -> None:
    rows = stream_of(400, keys=12)

    def topology(source: Any, ttl: float | None = 3600) -> rel.Topology:
        topology = rel.Topology("saved")
        COUNTING[name][0](topology.source(source, name="rows").key_by("who"), "op", ttl).sink(rel.list(), name="out")
        return topology

    snapshot = rel.Snapshot(tmp_path / "saved", key=b"0123456789abcdef")
    found = stopped_after(200, rows, topology, snapshot)
    found += [tuple(t) for t in rel.run(topology(rel.rows(rows, Visit), ttl=7200), restore=snapshot)["out"]]
    assert found == forgetting(rows, 10**9, LATENESS)
    found = [tuple(t) for t in rel.run(topology(rel.rows(rows, Visit), ttl=1e-9), restore=snapshot)["out"]]
    assert found[:1] == [(rows[200].who, 1)]
    with raises(StateError, "changed-state"):
        rel.run(topology(rel.rows(rows, Visit), ttl=None), restore=snapshot)


def test_keys_that_do_not_come_again_are_removed() -> None:
    rows = [Visit(f"a long name of a key: {at}", at) for at in range(20_000)]
    result = rel.run(
        all_operators(rel.arrow(table_of(Visit, rows), Visit), ttl=100),
        rel.JobConfig(threads=rel.Threads(run_records=64), pes=1),
    )
    for number, name in enumerate(OPERATORS):
        assert 100 <= result.metrics.operator(f"op{number}").state_keys <= 2 * (100 + 64) + LATENESS, name


class Tracked(list[int]):
    alive: weakref.WeakSet[Tracked] = weakref.WeakSet()
    most = 0

    def __init__(self) -> None:
        super().__init__()
        Tracked.alive.add(self)
        Tracked.most = max(Tracked.most, len(Tracked.alive))

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_python_values_of_forgotten_keys_are_let_go() -> None:
    rows = [Visit(f"{at % 3000}", at) for at in range(6000)]

    def declare(s: Stream) -> Stream:
        keyed = s.event_time("at", name="time").key_by("who")
        return keyed.map(listed, name="op", state=Tracked, schema=Counted, lane="python", ttl=50)

    found = testing.collect(declare, rows, Visit, rel.JobConfig(threads=rel.Threads(run_records=64)))
    assert {count for _, count in found} == {1}
    gc.collect()
    assert Tracked.most <= 2 * (50 + 64) + 64
    assert not Tracked.alive


@pytest.mark.parametrize(("ttl", "passed"), [(1e-9, ["a", "a"]), (3600, ["a"])])
@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_without_event_time_it_goes_by_the_clock(ttl: float, passed: list[str], lane: str) -> None:
    gate = testing.Gate()
    topology = rel.Topology("clock")
    rows = topology.source(testing.script([("a", 0), gate, ("a", 0)], Visit), name="rows")
    keyed = rows.key_by("who")
    keyed.filter(first, name="once", state=Seen, lane=lane, ttl=ttl).sink(rel.list(), name="out")  # type: ignore[call-overload]
    job = start(topology)
    try:
        assert gate.wait_reached(PATIENCE)
        while job.metrics().operator("once").tuples_in < 1:  # the next one comes in another run
            assert not job.status.state.is_final
        gate.open()
        assert [t.who for t in job.wait(PATIENCE)["out"]] == passed
    finally:
        job.close()


@pytest.mark.parametrize("name", ["compiled map", "python values"])
def test_keys_move_between_replicas_with_their_touches(name: str) -> None:
    enough, rows = threading.Event(), list[Visit]()

    def feed() -> Iterator[Visit]:
        dice, at = random.Random(3), 0
        while not enough.wait(PAUSE):
            for _ in range(256):
                at += 1
                rows.append(Visit(f"key {int(300 * dice.random() ** 2)}", at))  # some come often, some seldom
                yield rows[-1]

    topology = rel.Topology("moved")
    timed = topology.source(rel.callable(feed, Visit), name="rows").event_time("at", name="time").key_by("who")
    COUNTING[name][0](timed, "count", 400).sink(rel.list(), name="out")
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off"))
    try:
        region = next(planned.region.name for planned in job.plan().regions if planned.region.keys)
        for replicas in (2, 3, 1):
            before = job.metrics().operator("out").tuples_in
            wait_until_received(job, "out", before + 2000)
            job.rescale(region, replicas)
        enough.set()
        found = job.wait(PATIENCE)["out"]
    finally:
        enough.set()
        job.close()
    expected = forgetting(rows, 400, 0)
    assert max(t.count for t in expected) > 5
    assert min(t.count for t in expected[3000:]) == 1

    def by_key(given: list[Any]) -> dict[str, list[int]]:
        counts: dict[str, list[int]] = {}
        for t in given:
            counts.setdefault(t.who, []).append(t.count)
        return counts

    assert by_key(found) == by_key(expected)
