"""Rows that set timers and take them back, what is told of them as somebody plays it, and checks against that.

A topology is declared by `declare(source, lateness, late=...)`; `processing` does so for a program.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from tests.component.operators.running import table_of
from tests.component.rescale.rescaling import PAUSE, flows
from tests.waiting import wait_until_emitted

PATIENCE = 60.0
MANUAL = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")
ELASTIC = rel.JobConfig(regions="manual", elasticity="off")

Declare = Callable[..., rel.Topology]


class Row(NamedTuple):
    key: int
    at: int
    wait: int  # above 0: sets a timer so much later; below: takes back the one at that time


class Told(NamedTuple):
    key: int
    what: str
    at: int
    seen: int


def processing(source: Any, lateness: int, program: Any, *, late: bool = True, **how: Any) -> rel.Topology:
    """What a program tells of rows, and the late ones."""
    topology = rel.Topology("process")
    timed = topology.source(source, name="rows").event_time("at", name="time", lateness=lateness)
    told: Any = timed.key_by("key").process(program, name="told", schema=Told, **how)
    told.sink(rel.list(), name="out")
    if late:
        told.late().sink(rel.list(), name="late")
    return topology


def rows_of(seed: int, number: int, keys: int) -> list[Row]:
    dice = random.Random(seed)
    return [Row(dice.randrange(keys), n // 3 + dice.randrange(-15, 15), dice.randrange(-6, 30)) for n in range(number)]


class Feed:
    """Rows, with a pause after each 64, until told to end; what it gave."""

    def __init__(self) -> None:
        self.given: list[Row] = []
        self.enough = threading.Event()

    def __call__(self) -> Iterator[Row]:
        dice = random.Random(3)
        while not self.enough.wait(PAUSE):
            for _ in range(64):
                row = Row(dice.randrange(50), len(self.given) // 5 + dice.randrange(-10, 10), dice.randrange(-6, 400))
                self.given.append(row)
                yield row


# --- as somebody plays it ---------------------------------------------------------------------------------------------


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


def by_key(told: Any) -> dict[int, list[Told]]:
    found: dict[int, list[Told]] = defaultdict(list)
    for one in told:
        found[one[0]].append(Told(*one))
    return dict(found)


# --- checks -----------------------------------------------------------------------------------------------------------


def in_runs(records: int) -> rel.JobConfig:
    """One thread, runs of so many records."""
    return rel.JobConfig(threads=rel.Threads(count=1, model="manual", run_records=records), elasticity="off")


def check_played(declare: Declare, rows: list[Row], lateness: int, config: rel.JobConfig) -> None:
    result = rel.run(declare(rel.arrow(table_of(Row, rows), Row), lateness), config)
    told, late = played(rows, lateness)
    assert by_key(result["out"]) == told
    assert [Row(*t) for t in result["late"]] == late


few_and_many = pytest.mark.parametrize(
    "examples", [100, pytest.param(500, marks=[pytest.mark.nightly, pytest.mark.timeout(1800)])]
)


def check_streams(declare: Declare, streams: st.SearchStrategy[list[Row]], examples: int) -> None:
    """Checks random streams, with several latenesses and lengths of runs."""

    @settings(max_examples=examples, deadline=None)
    @given(streams, st.sampled_from([0, 3, 15]), st.sampled_from([1, 3, 64]))
    def check(rows: list[Row], lateness: int, run: int) -> None:
        check_played(declare, rows, lateness, in_runs(run))

    check()


def check_snapshots(declare: Declare, cuts: Sequence[int], snapshots: Sequence[rel.Snapshot]) -> None:
    """Stops a job behind so many rows, lets another go on from there, and so on."""
    rows = rows_of(2, 600, 10)
    out: list[Any] = []
    late: list[Any] = []
    before, restore = 0, None
    for cut, snapshot in zip(cuts, snapshots, strict=True):
        gate = testing.Gate()
        job = rel.start(declare(testing.script([*rows[:cut], gate], Row), 10), MANUAL, restore=restore)
        try:
            assert gate.wait_reached(PATIENCE)
            wait_until_emitted(job, "rows", cut - before)
            result = job.stop(snapshot)
        finally:
            job.close()
        out += result["out"]
        late += result["late"]
        before, restore = cut, snapshot
    last = rel.run(declare(testing.script(rows, Row), 10), MANUAL, restore=restore)
    expected = played(rows, 10)
    assert by_key([*out, *last["out"]]) == expected[0]
    assert [Row(*t) for t in [*late, *last["late"]]] == expected[1]


def check_replicas(declare: Declare) -> None:
    """Changes the number of replicas while rows come."""
    feed = Feed()
    job = rel.start(declare(rel.callable(feed, Row), 20, late=False), ELASTIC)
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


def check_by_the_clock(declare: Callable[[rel.Stream], rel.Stream]) -> None:
    """One that tells of each key after 10 ms, and at the end: the former come while nothing else does."""
    seen: list[Any] = []
    came = threading.Event()

    def see(t: Any) -> None:
        seen.append(tuple(t))
        if len(seen) == 2:
            came.set()

    gate = testing.Gate()
    topology = rel.Topology("clock")
    rows = topology.source(testing.script([Row(1, 1, 0), Row(2, 1, 0), gate], Row), name="rows")
    declare(rows).sink(rel.call(see), name="see")
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
