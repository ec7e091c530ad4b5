"""Operators that are made of others: scan, fold, reduce, enrich, throttle, switch, gate, union."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.fluent.stream import Stream
from rayelastic.testing.collect import SINK, topology_of
from tests.component.operators.running import CONFIGS
from tests.waiting import wait_until_emitted, wait_until_received


class Row(NamedTuple):
    k: str
    n: int
    note: str


class Both(NamedTuple):
    total: int = 0
    seen: str = ""


ROWS = [Row(f"key {n % 7}", n * n % 101, f"note {n}") for n in range(700)]
KEYS = [f"key {k}" for k in range(7)]


def of(key: str) -> list[Row]:
    return [row for row in ROWS if row.k == key]


def both(so_far: Both, t: Any) -> Both:
    return Both(so_far.total + t.n, max(so_far.seen, t.note))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_scan_gives_what_came_together_after_each(config: rel.JobConfig) -> None:
    found = testing.collect(lambda s: s.key_by("k").scan(both, Both(), name="scan"), ROWS, Row, config)
    for key in KEYS:
        expected, so_far = [], Both()
        for row in of(key):
            so_far = both(so_far, row)
            expected.append((key, *so_far))
        assert [t for t in found if t[0] == key] == expected


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_fold_gives_the_last_of_them(config: rel.JobConfig) -> None:
    found = testing.collect(lambda s: s.key_by("k").fold(both, Both(), name="fold"), ROWS, Row, config)
    assert sorted(found) == [(key, sum(row.n for row in of(key)), max(row.note for row in of(key))) for key in KEYS]


def least(one: Row, other: Row) -> Row:
    return min(one, other, key=lambda row: (row.n, row.note))


def test_a_reduce_makes_one_tuple_of_all() -> None:
    found = testing.collect(lambda s: s.key_by("k").reduce(least, name="least"), ROWS, Row)
    assert sorted(found) == [tuple(min(of(key), key=lambda row: (row.n, row.note))) for key in KEYS]  # type: ignore[attr-defined]
    updates = testing.collect(lambda s: s.key_by("k").reduce(least, name="least", emit="update"), ROWS, Row)
    assert len(updates) == len(ROWS)
    assert {row[0]: row for row in updates} == {row[0]: row for row in found}


def test_a_scan_goes_on_from_a_snapshot(tmp_path: Any) -> None:
    def declare(stream: Stream) -> Stream:
        made: Stream = stream.key_by("k").reduce(least, name="least", emit="update")
        return made

    gate = testing.Gate()
    job = rel.start(topology_of(declare, testing.script([*ROWS[:300], gate, *ROWS[300:]], Row)))
    try:
        assert gate.wait_reached(60.0)
        snapshot = rel.Snapshot(f"{tmp_path}/snapshot", key=b"0123456789abcdef" * 2)
        first = job.stop(snapshot)[SINK]
    finally:
        job.close()
    assert [*map(tuple, first), *testing.collect(declare, ROWS, Row, restore=snapshot)] == testing.collect(
        declare, ROWS, Row
    )


class Owner(NamedTuple):
    n: int
    name: str | None


OWNERS = {"key 1": Owner(1, "Ada"), "key 3": Owner(3, None)}


@pytest.mark.edges
def test_a_key_that_is_none_is_in_no_table() -> None:
    rows, schema = [("a", 1), (None, 1), ("a", None)], {"k": str | None, "j": int | None}
    one: dict[Any, int] = {"a": 1, None: 2}
    found = testing.collect(lambda s: s.key_by("k").enrich(one, name="x", how="left"), rows, schema)
    assert found == [("a", 1, 1), (None, 1, None), ("a", None, 1)]
    assert testing.collect(lambda s: s.key_by("k").enrich(one, name="x"), rows, schema) == [("a", 1, 1), ("a", None, 1)]
    two: dict[Any, int] = {("a", 1): 1, (None, 1): 2, ("a", None): 3}
    assert testing.collect(lambda s: s.key_by("k", "j").enrich(two, name="x"), rows, schema) == [("a", 1, 1)]


def test_enriched_by_a_table() -> None:
    inner = testing.collect(lambda s: s.key_by("k").enrich(OWNERS, name="owned"), ROWS, Row)
    assert inner == [(*row, *OWNERS[row.k]) for row in ROWS if row.k in OWNERS]
    left = testing.collect(lambda s: s.key_by("k").enrich(OWNERS, name="owned", how="left"), ROWS, Row)
    assert left == [(*row, *OWNERS.get(row.k, (None, None))) for row in ROWS]
    topology = rel.Topology("names")
    rows = topology.source(rel.rows(ROWS, Row), name="rows")
    assert rows.key_by("k").enrich(OWNERS, name="owned").schema.names == ("k", "n", "note", "n_table", "name")
    pairs = {("key 1", 1): 5.0}
    found = testing.collect(lambda s: s.key_by("k", "n").enrich(pairs, name="owned"), ROWS, Row)
    assert found == [(*row, 5.0) for row in ROWS if (row.k, row.n) in pairs]


@pytest.mark.parametrize("rate", [500, 20_000])
def test_a_throttle_takes_its_time_and_loses_nothing(rate: float) -> None:
    count = 100 if rate == 500 else 3000
    topology = rel.Topology("slow")
    topology.source(rel.sequence(count), name="n").throttle(name="slow", per_second=rate).sink(rel.list(), name="out")
    started = time.monotonic()
    found = rel.run(topology)["out"]
    assert [t.value for t in found] == [*range(count)]
    assert time.monotonic() - started >= (count / rate) * 0.9  # the last part needn't be waited for


def test_a_throttle_can_be_stopped() -> None:
    topology = rel.Topology("endless")
    topology.source(rel.sequence(10), name="n").throttle(name="slow", per_second=1e-6).sink(rel.count(), name="out")
    job = rel.start(topology)
    wait_until_emitted(job, "slow", 1)
    job.cancel(drain=False)
    job.close()


class Turn(NamedTuple):
    on: bool


def switched(turns: list[Any], rows: list[Any], **options: Any) -> tuple[rel.Topology, Any]:
    topology = rel.Topology("switched")
    control = topology.source(testing.script(turns, Turn), name="turns")
    data = topology.source(testing.script(rows, Row), name="rows")
    return topology, data.switch(control, lambda t: t.on, name="switch", **options)


def waited(job: rel.Job, operator: str, taken: int) -> None:
    wait_until_received(job, operator, taken)


@pytest.mark.parametrize("off", ["wait", "drop"])
def test_a_switch_lets_tuples_pass_while_it_is_on(off: Any) -> None:
    first, turned = testing.Gate(), testing.Gate()
    topology, stream = switched(
        [Turn(False), first, Turn(True), turned], [*ROWS[:0], first, *ROWS[:50], turned, *ROWS[50:60]], off=off
    )
    stream.sink(rel.list(), name="out")
    job = rel.start(topology)
    try:
        waited(job, "switch", 1)  # it is off
        first.open()
        waited(job, "switch", 52)  # on again, somewhere among them
        turned.open()
        found = job.wait()["out"]
    finally:
        job.close()
    assert found == sorted(found, key=ROWS.index)
    assert found[-10:] == ROWS[50:60]
    assert off == "drop" or found == ROWS[:60]


def test_what_waits_for_a_switch_goes_out_at_the_end() -> None:
    gate = testing.Gate()
    topology, stream = switched([Turn(False), gate], [gate, *ROWS])
    stream.sink(rel.list(), name="out")
    job = rel.start(topology)
    try:
        waited(job, "switch", 1)
        gate.open()
        assert job.wait()["out"] == ROWS
    finally:
        job.close()


def test_a_gate_lets_pass_what_is_acknowledged() -> None:
    gate = testing.Gate()
    topology = rel.Topology("gated")
    control = topology.source(testing.script([gate, (5,)], {"n": int}), name="acks")
    data = topology.source(testing.script([*ROWS[:20], gate, *ROWS[20:30]], Row), name="rows")
    data.gate(control, name="gate", most=3, passes=lambda t: t.n).sink(rel.list(), name="out")
    job = rel.start(topology)
    try:
        waited(job, "gate", 20)
        wait_until_received(job, "out", 3)
        assert job.metrics().operator("out").tuples_in == 3
        gate.open()
        assert job.wait()["out"] == ROWS[:30]
    finally:
        job.close()


def test_united_streams_have_all_tuples_of_each_in_order() -> None:
    topology = rel.Topology("united")
    rows = topology.source(rel.rows(ROWS, Row), name="rows")
    sides = [rows.filter(lambda t, side=side: t.n % 3 == side, name=f"side{side}", lane="python") for side in range(3)]  # type: ignore[call-overload]
    sides[0].union(*sides[1:]).sink(rel.list(), name="out")
    found = rel.run(topology)["out"]
    for side in range(3):
        assert [row for row in found if row.n % 3 == side] == [row for row in ROWS if row.n % 3 == side]
    assert len(found) == len(ROWS)


def test_a_delay_gives_everything_later_and_in_order() -> None:
    gate = testing.Gate()
    topology = rel.Topology("later")
    rows = topology.source(testing.script([*ROWS[:5], gate, *ROWS[5:]], Row), name="rows")
    rows.delay(0.05, name="later", most=50).sink(rel.list(), name="out")
    started = time.monotonic()
    job = rel.start(topology)
    try:
        while job.metrics().operator("out").tuples_in < 5:  # although nothing else comes
            assert not job.status.state.is_final, job.status
        assert time.monotonic() - started >= 0.05
        gate.open()
        assert job.wait()["out"] == ROWS
    finally:
        job.close()


def test_a_delay_keeps_watermarks_behind_what_they_are_about() -> None:
    def declare(stream: Stream) -> Stream:
        timed = stream.event_time("n", name="time", lateness=200).delay(0.02, name="later")
        return timed.window(seconds=20).aggregate(name="counts", n=rel.count())

    def plain(stream: Stream) -> Stream:
        return (
            stream.event_time("n", name="time", lateness=200).window(seconds=20).aggregate(name="counts", n=rel.count())
        )

    assert testing.collect(declare, ROWS, Row) == testing.collect(plain, ROWS, Row)


def test_a_delay_can_be_stopped() -> None:
    topology = rel.Topology("endless")
    topology.source(rel.sequence(10), name="n").delay(1e5, name="later").sink(rel.count(), name="out")
    job = rel.start(topology)
    waited(job, "later", 10)
    job.cancel(drain=False)
    job.close()
