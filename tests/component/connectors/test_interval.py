"""`rel.interval` ticks by the clock, goes on after a restore, and ends at once."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.connectors.polled import interval as ticks
from rayelastic.errors import JobCancelledError, SourceError
from tests.raising import raises


def ticking(seconds: Any) -> Any:
    topology = rel.Topology("ticks")
    topology.source(rel.interval(seconds)).sink(rel.list(), name="out")
    return topology


def started(topology: Any, count: int, **options: Any) -> Any:
    job = rel.start(topology, **options)
    while job.metrics().operator("out").tuples_in < count:
        pass
    return job


def test_a_restored_job_continues_with_the_next_number(tmp_path: Path) -> None:
    topology = ticking(0.001)
    before = started(topology, 5).stop(tmp_path / "one")["out"]
    after = started(topology, 5, restore=tmp_path / "one").stop(tmp_path / "two")["out"]
    assert [t.n for t in (*before, *after)] == list(range(len(before) + len(after)))
    times = [t.at for t in (*before, *after)]
    assert times == sorted(times)


def test_a_long_interval_ticks_at_once_and_ends_at_once() -> None:
    job = started(ticking(dt.timedelta(days=1)), 1)
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.wait(timeout=30)


def test_missed_ticks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    source = ticks.Ticks(10.0)
    part = source.open("ticks", None)

    def emitted(at: float) -> list[int]:
        now[0] = at
        return [n for _ in range(3) for n, _ in part.poll() or ()]

    assert [emitted(at) for at in (100, 109, 111, 119, 120, 155, 164, 165)] == [
        [0], [], [1], [], [2], [3, 4], [], [5],
    ]  # fmt: skip
    now[0] = 170
    assert source.idle == 5


@pytest.mark.parametrize("seconds", [0, -1, "1", None, True, float("nan"), float("inf")])
def test_no_such_interval(seconds: Any) -> None:
    with raises(SourceError, "out-of-range", repr(seconds)):
        ticking(seconds)


def test_take_ends_the_sources_that_can_be_bounded() -> None:
    for source in (rel.interval(1e-3), rel.generate(lambda n: n, None, int), rel.sequence(2**62)):
        topology = rel.Topology("first")
        topology.source(source, name="in").take(3).sink(rel.count(), name="out")
        result = rel.run(topology)
        assert (result["out"], result.metrics.operator("in").tuples_out) == (3, 3)


def test_take_ends_them_through_operators_that_emit_one_tuple_for_each() -> None:
    topology = rel.Topology("far")
    ticking = topology.source(rel.interval(1e-3), name="in").map(lambda t: t.n, name="numbers").throttle(1e6)
    ticking.with_columns(twice=lambda t: 2 * t.value).delay(1e-3).take(3).sink(rel.list(), name="out")
    result = rel.run(topology)
    assert [tuple(t) for t in result["out"]] == [(0, 0), (1, 2), (2, 4)]
    assert result.metrics.operator("in").tuples_out == 3


def test_but_not_through_operators_that_may_drop_some() -> None:
    def even(t: Any) -> Any:
        if t.value % 2:
            raise ValueError("odd")
        return t

    topology = rel.Topology("dropping")
    numbers = topology.source(rel.sequence(100), name="all")
    numbers.filter(lambda t: t.value % 2 == 0).take(3).sink(rel.list(), name="filtered")
    skipping = topology.source(rel.sequence(100), name="some").map(
        even, on_error="skip", schema={"value": int}, lane="python"
    )
    skipping.take(3).sink(rel.list(), name="skipped")
    read = topology.source(rel.sequence(100), name="read")
    mapped = read.map(lambda t: t.value, name="mapped")
    mapped.take(3).sink(rel.list(), name="first")
    mapped.sink(rel.count(), name="also")
    result = rel.run(topology)
    for name in ("filtered", "skipped"):
        assert [t.value for t in result[name]] == [0, 2, 4]
    assert (len(result["first"]), result["also"]) == (3, 100)


def test_but_not_a_source_with_another_consumer_or_of_fewer_tuples() -> None:
    topology = rel.Topology("both")
    numbers = topology.source(rel.sequence(100))
    numbers.take(3).sink(rel.count(), name="first")
    numbers.sink(rel.count(), name="all")
    topology.source(rel.generate(lambda n: n, 2, int)).take(9).sink(rel.count(), name="fewer")
    result = rel.run(topology)
    assert (result["first"], result["all"], result["fewer"]) == (3, 100, 2)
