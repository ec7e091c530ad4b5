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


def test_but_not_a_source_with_another_consumer_or_of_fewer_tuples() -> None:
    topology = rel.Topology("both")
    numbers = topology.source(rel.sequence(100))
    numbers.take(3).sink(rel.count(), name="first")
    numbers.sink(rel.count(), name="all")
    topology.source(rel.generate(lambda n: n, 2, int)).take(9).sink(rel.count(), name="fewer")
    result = rel.run(topology)
    assert (result["first"], result["all"], result["fewer"]) == (3, 100, 2)
