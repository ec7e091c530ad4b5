"""Functions whose calls wait at the same time: order, capacity, errors, marks, snapshots, ends."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import JobFailedError
from tests.component.operators.running import CONFIGS, results
from tests.component.rescale.rescaling import Counted, Event, Feed, Seen, check, count, flows
from tests.raising import raises

PATIENCE = 60.0  # seconds for what takes none


class Row(NamedTuple):
    n: int
    text: str


ROWS = [Row(n, f"text number {n}, which is longer than a view") for n in range(500)]


class Turn:
    """Lets all others on the loop go first, once."""

    def __await__(self) -> Iterator[None]:
        yield


async def later(turns: int) -> None:
    """Lets others go first."""
    for _ in range(turns):
        await Turn()  # type: ignore[misc]


async def answer(t: Row) -> Row:
    await later(t.n % 7)
    return Row(2 * t.n, t.text + "!")


def answer_plainly(t: Row) -> Row:
    return Row(2 * t.n, t.text + "!")


ANSWERS = [answer_plainly(row) for row in ROWS]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("function", [answer, answer_plainly, lambda t: answer(t)])
@pytest.mark.parametrize("config", CONFIGS)
def test_every_tuple_is_answered_once(config: str, function: Callable[..., Any], ordered: bool) -> None:
    how = rel.concurrent(capacity=16, ordered=ordered)
    given = results(Row, ROWS, lambda s: s.map(function, name="answer", schema=Row, concurrent=how), CONFIGS[config])
    assert (given if ordered else sorted(given)) == ANSWERS


def test_async_functions_need_no_more_than_async() -> None:
    topology = rel.Topology("async")
    topology.source(rel.rows(ROWS, schema=Row), name="rows").map(answer, name="answer").sink(rel.list(), name="out")
    assert "up to 100 calls at the same time, in order" in str(topology.explain())
    assert [tuple(t) for t in rel.run(topology)["out"]] == ANSWERS


async def odd(t: Row) -> bool:
    await later(t.n % 3)
    return t.n % 2 == 1


async def times(t: Row) -> AsyncIterator[Row]:
    for number in range(t.n % 4):
        await later(1)
        yield Row(number, t.text)


def times_plainly(t: Row) -> Iterator[Row]:
    for number in range(t.n % 4):
        yield Row(number, t.text)


async def listed(t: Row) -> list[Row] | None:
    return list(times_plainly(t)) or None


def test_filters() -> None:
    assert results(Row, ROWS, lambda s: s.filter(odd, name="odd")) == [row for row in ROWS if row.n % 2 == 1]


@pytest.mark.parametrize("function", [times, times_plainly, listed])
def test_any_number_of_results(function: Callable[..., Any]) -> None:
    how = rel.concurrent(capacity=8)
    given = results(Row, ROWS, lambda s: s.flat_map(function, name="times", schema=Row, concurrent=how))
    assert given == [one for row in ROWS for one in times_plainly(row)]


class Meeting:
    """Calls that wait until so many are there; counts how many are there at most."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.here = self.most = 0
        self.lock = threading.Lock()
        self.full = threading.Event()

    def enter(self) -> None:
        with self.lock:
            self.here += 1
            self.most = max(self.most, self.here)
            if self.here == self.size:
                self.full.set()

    def leave(self) -> None:
        with self.lock:
            self.here -= 1


MEETING = Meeting(0)


async def meets(t: Row) -> Row:
    MEETING.enter()
    while not MEETING.full.is_set():
        await Turn()  # type: ignore[misc]
    await Turn()  # type: ignore[misc]
    MEETING.leave()
    return t


def meets_plainly(t: Row) -> Row:
    MEETING.enter()
    assert MEETING.full.wait(PATIENCE)
    MEETING.leave()
    return t


@pytest.mark.parametrize("function", [meets, meets_plainly])
@pytest.mark.parametrize("capacity", [1, 32])
def test_as_many_calls_as_the_capacity_wait_at_once_and_never_more(
    function: Callable[..., Any], capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "MEETING", meeting := Meeting(capacity))
    how = rel.concurrent(capacity=capacity)
    given = results(Row, ROWS[:200], lambda s: s.map(function, name="meet", schema=Row, concurrent=how))
    assert given == ROWS[:200]
    assert meeting.most == capacity


async def refuses_fives(t: Row) -> Row:
    await later(t.n % 3)
    if t.n % 5 == 0:
        raise ValueError(f"no {t.n}")
    return t


def test_failing_tuples_are_left_out_and_counted() -> None:
    topology = rel.Topology("skip")
    source = topology.source(rel.rows(ROWS, schema=Row), name="rows")
    source.map(refuses_fives, name="refuse", on_error="skip").sink(rel.list(), name="out")
    result = rel.run(topology)
    assert [tuple(t) for t in result["out"]] == [row for row in ROWS if row.n % 5]
    assert result.metrics.operator("refuse").dropped == {"failed": len(ROWS) // 5}


def test_failing_tuples_are_diverted() -> None:
    topology = rel.Topology("divert")
    source = topology.source(rel.rows(ROWS, schema=Row), name="rows")
    refused = source.map(refuses_fives, name="refuse", on_error="divert", concurrent=rel.concurrent(ordered=False))
    refused.sink(rel.list(), name="out")
    refused.errors.sink(rel.list(), name="errors")
    result = rel.run(topology)
    assert sorted(tuple(t) for t in result["out"]) == [row for row in ROWS if row.n % 5]
    letters = [
        (n, f"text number {n}, which is longer than a view", f"ValueError: no {n}", "refuse") for n in range(0, 500, 5)
    ]
    assert sorted(tuple(t) for t in result["errors"]) == letters


def test_a_job_fails_with_the_operator_the_tuple_and_the_traceback() -> None:
    with raises(JobFailedError, "function-raised", "ValueError") as caught:
        results(Row, ROWS[1:], lambda s: s.map(refuses_fives, name="refuse"))
    assert caught.value.operator == "refuse"
    assert "refuses_fives" in str(caught.value.traceback_text)
    assert "Row(n=5, " in str(caught.value.failing_tuple)


def test_what_a_record_cannot_hold_fails() -> None:
    async def wrong(t: Row) -> Any:
        return "no row"

    with raises(JobFailedError, "function-raised"):
        results(Row, ROWS, lambda s: s.map(wrong, name="wrong", schema=Row))


def test_a_call_that_takes_too_long_has_failed() -> None:
    async def waits(t: Row) -> Row:
        if t.n % 50 == 0:
            await asyncio.Event().wait()
        return t

    topology = rel.Topology("timeout")
    how = rel.concurrent(capacity=500, timeout=0.05)
    waited = topology.source(rel.rows(ROWS, schema=Row), name="rows").map(
        waits, name="wait", on_error="divert", concurrent=how
    )
    waited.sink(rel.list(), name="out")
    waited.errors.sink(rel.list(), name="errors")
    result = rel.run(topology)
    assert [t.n for t in result["out"]] == [n for n in range(500) if n % 50]
    assert [(t.n, t.error) for t in result["errors"]] == [(n, "TimeoutError") for n in range(0, 500, 50)]


@pytest.mark.parametrize(("retry", "answered"), [(2, 20), (1, 0)])
def test_calls_are_made_again(retry: int, answered: int) -> None:
    attempts: dict[int, int] = {}

    async def third(t: Row) -> Row:
        attempts[t.n] = attempts.get(t.n, 0) + 1
        if attempts[t.n] < 3:
            raise ConnectionError("try again")
        return t

    how = rel.concurrent(retry=retry)
    topology = rel.Topology("retry")
    source = topology.source(rel.rows(ROWS[:20], schema=Row), name="rows")
    source.map(third, name="third", concurrent=how, on_error="skip").sink(rel.list(), name="out")
    assert len(rel.run(topology)["out"]) == answered


@pytest.mark.parametrize("waits", [True, False])
def test_batches(waits: bool) -> None:
    sizes: list[int] = []

    async def together(ts: list[Row]) -> list[Row]:
        sizes.append(len(ts))
        await later(len(sizes) % 3)
        return [answer_plainly(t) for t in ts]

    def together_plainly(ts: list[Row]) -> list[Row]:
        sizes.append(len(ts))
        return [answer_plainly(t) for t in ts]

    how = rel.concurrent(capacity=4, max_batch=32)
    function = together if waits else together_plainly
    assert results(Row, ROWS, lambda s: s.map(function, name="together", schema=Row, concurrent=how)) == ANSWERS
    assert sum(sizes) == len(ROWS)
    assert 1 < max(sizes) <= 32


def test_of_a_batch_that_fails_only_the_tuples_that_do_are_left_out() -> None:
    async def together(ts: list[Row]) -> list[Row]:
        if any(t.n % 50 == 0 for t in ts):
            raise ValueError("no")
        return ts

    how = rel.concurrent(max_batch=16)
    given = results(Row, ROWS, lambda s: s.map(together, name="together", schema=Row, concurrent=how, on_error="skip"))
    assert given == [row for row in ROWS if row.n % 50]


def test_a_batch_has_as_many_results_as_tuples() -> None:
    async def loses(ts: list[Row]) -> list[Row]:
        return ts[1:]

    with raises(JobFailedError, "function-raised"):
        results(Row, ROWS, lambda s: s.map(loses, name="lose", concurrent=rel.concurrent(max_batch=16)))


@pytest.mark.parametrize("ordered", [True, False])
def test_watermarks_keep_their_place(ordered: bool) -> None:
    def declare(answered: bool) -> Callable[[rel.Stream], rel.Stream]:
        def operators(s: rel.Stream) -> rel.Stream:
            timed = s.event_time("n", name="time")
            how = rel.concurrent(capacity=16, ordered=ordered)
            same = timed.map(unchanged, name="same", concurrent=how) if answered else timed
            return same.window(seconds=10).aggregate(name="windows", n=rel.count(), all=rel.sum("n"))

        return operators

    async def unchanged(t: Row) -> Row:
        await later(t.n % 5)
        return t

    assert results(Row, ROWS, declare(True)) == results(Row, ROWS, declare(False))


def test_a_snapshot_waits_for_what_is_under_way(tmp_path: Path) -> None:
    gate = testing.Gate()
    arrived, goes = threading.Event(), threading.Event()

    async def waits(t: Row) -> Row:
        if t.n == 99:
            arrived.set()
        while not goes.is_set():
            await Turn()  # type: ignore[misc]
        return answer_plainly(t)

    def declare(source: Any) -> rel.Topology:
        topology = rel.Topology("snapshot")
        topology.source(source, name="rows").map(waits, name="wait").sink(rel.list(), name="out")
        return topology

    job = rel.start(declare(testing.script([*ROWS[:100], gate], Row)))
    try:
        assert gate.wait_reached(PATIENCE)
        assert arrived.wait(PATIENCE)
        threading.Timer(0.05, goes.set).start()
        output = [tuple(t) for t in job.stop(tmp_path / "snapshot")["out"]]
    finally:
        job.close()
    assert output == ANSWERS[:100]
    restored = rel.run(declare(testing.script(ROWS, Row)), restore=tmp_path / "snapshot")
    assert output + [tuple(t) for t in restored["out"]] == ANSWERS


@pytest.mark.parametrize("drain", [True, False])
def test_a_job_ends_though_calls_wait(drain: bool) -> None:
    waiting, unwound = threading.Event(), threading.Event()

    async def waits(t: Row) -> Row:
        try:
            waiting.set()
            if not drain:
                await asyncio.Event().wait()
            await later(1000)
            return t
        finally:
            unwound.set()

    topology = rel.Topology("endless")
    source = topology.source(testing.script([ROWS[0], gate := testing.Gate()], Row), name="rows")
    source.map(waits, name="wait").sink(rel.list(), name="out")
    job = rel.start(topology)
    try:
        assert gate.wait_reached(PATIENCE)
        assert waiting.wait(PATIENCE)
        before = time.monotonic()
        job.cancel(drain=drain)
        assert time.monotonic() - before < PATIENCE / 2
    finally:
        job.close()
    assert unwound.wait(PATIENCE)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("event-loop-")]


def test_two_operators_share_a_loop() -> None:
    loops: set[asyncio.AbstractEventLoop] = set()

    async def seen(t: Row) -> Row:
        loops.add(asyncio.get_running_loop())
        await later(t.n % 4)
        return t

    assert results(Row, ROWS, lambda s: s.map(seen, name="one").map(seen, name="two")) == ROWS
    assert len(loops) == 1


def test_calls_are_waited_for_when_keys_go_to_other_replicas() -> None:
    async def passes(t: Event) -> bool:
        await later(t.sequence % 3)
        return True

    feed = Feed(50)
    topology = rel.Topology("replicas")
    passed = topology.source(rel.callable(feed, Event), name="events").filter(passes, name="passes")
    passed.key_by("key").map(count, name="counted", state=Seen, schema=Counted).sink(rel.list(), name="out")
    job = rel.start(topology, rel.JobConfig(regions="manual", elasticity="off"))
    try:
        region = job.plan().region_of("counted").region
        assert region.operators == ("passes", "counted")
        for replicas in (2, 3, 1, 2):
            flows(job)
            assert job.rescale(region.name, replicas).region(region.name).replicas == replicas
        flows(job)
        feed.enough.set()
        rows = [Counted(*t) for t in job.wait(PATIENCE)["out"]]
    finally:
        feed.enough.set()
        job.close()
    check(rows, feed)
