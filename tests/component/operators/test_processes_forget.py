"""Keys of classes with timers end: by `forget`, by a time to live, and where all of their tuples were late (A3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError
from tests.component.operators import test_compiled_processes, test_processes
from tests.component.operators.running import CONFIGS, table_of
from tests.component.operators.timed_rows import MANUAL, PATIENCE, Row, Told, by_key, in_runs, processing, rows_of
from tests.raising import raises
from tests.waiting import wait_until_emitted, wait_until_received

pytestmark = pytest.mark.edges

KEY = b"0123456789abcdef"
TTL = 7
LANES = ("python", "compiled")


def topology_of(source: Any, lateness: int, lane: str, ttl: Any) -> rel.Topology:
    program: Any = (test_compiled_processes if lane == "compiled" else test_processes).Program
    state = test_compiled_processes.Seen if lane == "compiled" else None
    return processing(source, lateness, program, state=state, lane=lane, ttl=ttl)


# --- as somebody plays it ---------------------------------------------------------------------------------------------


def played(rows: list[Row], lateness: int, since: str) -> dict[int, list[Told]]:
    accepted, latest = defaultdict(list), -(2**40)
    for row in rows:
        if row.at > latest - lateness - 1:
            accepted[row.key].append(row)
        latest = max(latest, row.at)
    reached = latest - lateness - 1  # the last watermark before the end
    told = {
        key: list(of_key(key, sorted(mine, key=lambda row: row.at), since, reached)) for key, mine in accepted.items()
    }
    return {key: mine for key, mine in told.items() if mine}


def of_key(key: int, rows: list[Row], since: str, reached: int) -> Iterator[Told]:
    timers: set[int] = set()
    seen, touched = 0, -(2**40)
    while rows or timers:
        time = rows[0].at if rows and (not timers or rows[0].at <= min(timers)) else min(timers)
        if seen and touched + TTL < time:  # behind all of that time
            timers = set()
            if rows or touched + TTL <= reached:
                seen = 0
            if not rows:
                break
            continue
        if time in timers and not (rows and rows[0].at == time):
            timers.remove(time)
            yield Told(key, "timer", time, seen)
            if time % 3 == 0:
                timers.add(time + 4)
            continue
        row = rows.pop(0)
        touched = row.at if since == "last" or not seen else touched
        seen += 1
        yield Told(key, "tuple", row.at, seen)
        if row.wait > 0:
            timers.add(row.at + row.wait)
        if row.wait < 0:
            timers.discard(row.at - row.wait)
    if seen and touched + TTL > reached:
        yield Told(key, "end", 0, seen)


streams = st.lists(st.builds(Row, st.integers(0, 2), st.integers(0, 40), st.integers(-4, 12)), max_size=40)


def check(rows: list[Row], lateness: int, since: Any, lane: str, config: rel.JobConfig) -> None:
    source = rel.arrow(table_of(Row, rows), Row)
    result = rel.run(topology_of(source, lateness, lane, rel.Ttl(TTL, since=since)), config)
    assert by_key(result["out"]) == played(rows, lateness, since)


@pytest.mark.parametrize("lane", LANES)
@settings(max_examples=100, deadline=None)
@given(streams, st.sampled_from([0, 3, 15]), st.sampled_from([1, 3, 64]), st.sampled_from(["last", "first"]))
def test_keys_are_forgotten_as_played(lane: str, rows: list[Row], lateness: int, run: int, since: str) -> None:
    check(rows, lateness, since, lane, in_runs(run))


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("config", CONFIGS)
def test_under_every_threading_model(config: str, lane: str) -> None:
    check(rows_of(1, 2000, 90), 10, "last", lane, CONFIGS[config])


@pytest.mark.parametrize("lane", LANES)
def test_a_restore_goes_on_with_what_was_left_of_the_time_to_live(lane: str, tmp_path: Path) -> None:
    rows = rows_of(5, 900, 60)
    out: list[Any] = []
    restore, before = None, 0
    for cut in (200, 431, 760):
        gate, snapshot = testing.Gate(), rel.Snapshot(tmp_path / str(cut), key=KEY)
        script = testing.script([*rows[:cut], gate], Row)
        job = rel.start(topology_of(script, 10, lane, TTL), MANUAL, restore=restore)
        try:
            assert gate.wait_reached(PATIENCE)
            wait_until_emitted(job, "rows", cut - before)
            out += job.stop(snapshot)["out"]
        finally:
            job.close()
        before, restore = cut, snapshot
    last = rel.run(topology_of(testing.script(rows, Row), 10, lane, TTL), MANUAL, restore=restore)
    assert by_key([*out, *last["out"]]) == played(rows, 10, "last")


def test_since_change_is_rejected() -> None:
    with raises(GraphError, "unsupported-ttl", "last", "first", "since="):
        topology_of(rel.rows([Row(1, 1, 1)]), 0, "python", rel.Ttl(5, since="change"))


# --- memory -----------------------------------------------------------------------------------------------------------


class Count(NamedTuple):
    n: int = 0


class Cancels:
    """Sets a timer far ahead for each tuple, and takes it back by the next one or by `forget`."""

    def on_tuple(self, t: Row, state: Count, out: rel.Out) -> None:
        state.n += 1  # type: ignore[misc]
        if t.wait == 1:
            out.after(10**9)
        elif t.wait == 2:
            out.cancel(t.at + 10**9)
            out.timer(t.at + 10**9)
        else:
            out.forget()

    def on_time(self, time: int, state: Count, out: rel.Out) -> None:
        out.forget()


@pytest.mark.parametrize("lane", LANES)
def test_timers_that_were_taken_back_take_no_memory(lane: str) -> None:
    rows = [Row(n % 3, n // 100, 1 + n % 2) for n in range(30_000)]
    rows += [Row(n // 2, 300 + n, (n + 1) % 2) for n in range(60_000)]
    gate = testing.Gate()
    source = testing.script([*rows, Row(-1, 10**6, 0), gate], Row)
    topology = processing(source, 0, Cancels, state=Count, lane=lane)
    job = rel.start(topology, MANUAL)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_received(job, "told", len(rows) + 1)
        seen = job.metrics().operator("told")
        gate.open()
        job.wait(PATIENCE)
    finally:
        job.close()
    assert seen.state_keys <= 10
    if lane == "compiled":
        assert seen.state_bytes < 1_000_000  # 16 bytes for each of 60,000 timers were more
