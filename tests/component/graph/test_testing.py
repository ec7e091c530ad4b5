"""The test kit: it finds what it is for, and nothing else."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import JobFailedError
from rayelastic.fluent.stream import Stream
from tests.raising import raises
from tests.waiting import wait_until_received


class Row(NamedTuple):
    k: int
    n: int


class Sum(NamedTuple):
    total: int = 0


ROWS = [Row(n % 5, n) for n in range(300)]


def running(stream: Stream, lane: Any) -> Stream:
    def add(t: Row, s: Any) -> tuple[int, int]:
        s.total += t.n
        return t.k, s.total

    return stream.key_by("k").map(add, name="running", state=Sum, schema={"k": int, "total": int}, lane=lane)


def test_an_operator_that_is_right_passes_in_every_condition() -> None:
    report = testing.verify_operator(running, ROWS, Row, snapshots=4)
    sums = dict.fromkeys(range(5), 0)
    for row, made in zip(ROWS, report.output, strict=True):
        sums[row.k] += row.n
        assert made == (row.k, sums[row.k])
    for said in (
        "python lane, manual",
        "compiled lane, full queues, 8 threads",
        "compiled lane, restored after 300 rows",
    ):
        assert said in report.conditions
    assert len(report.conditions) == 2 * (1 + 3 * 3 + 4)


def test_state_outside_of_the_runtimes_hands_is_found_by_restoring() -> None:
    def declare(stream: Stream) -> Stream:
        seen: list[int] = []

        def count(t: Row) -> int:
            seen.append(t.n)
            return len(seen)

        return stream.map(count, name="count", schema={"n": int}, lane="python")

    with pytest.raises(testing.VerificationError, match=r"restored after 100 rows: row 100 is \(1,\), not \(101,\)"):
        testing.verify_operator(declare, ROWS, Row, snapshots=4)


def test_a_lane_that_gives_something_else_is_found() -> None:
    def declare(stream: Stream, lane: Any) -> Stream:
        return stream.map(
            (lambda t: t.n) if lane == "python" else (lambda t: t.n + 1), name="same", lane=lane, schema={"n": int}
        )

    with pytest.raises(testing.VerificationError, match=r"compiled lane, manual: row 0 is \(1,\), not \(0,\)"):
        testing.verify_operator(declare, ROWS, Row)


def test_an_operator_that_raises_fails_the_check() -> None:
    def declare(stream: Stream) -> Stream:
        return stream.map(lambda t: 1 // (t.n - 150), name="inverse", schema={"n": int}, lane="python")

    with raises(JobFailedError, "function-raised", "ZeroDivisionError", operator="inverse"):
        testing.verify_operator(declare, ROWS, Row)


def test_a_script_waits_at_its_gates_and_fails_as_often_as_it_says() -> None:
    gate = testing.Gate()
    steps = [(0,), gate, (1,), testing.Raise(OSError("gone"), times=1), (2,)]
    topology = rel.Topology("scripted")
    topology.source(testing.script(steps, {"n": int}), name="numbers").sink(rel.list(), name="out")
    job = rel.start(topology)
    assert gate.wait_reached(60)
    wait_until_received(job, "out", 1)
    gate.open()
    with raises(JobFailedError, "function-raised"):
        job.wait(60)
    assert [t.n for t in rel.run(topology)["out"]] == [0, 1, 2]


def test_a_closed_gate_does_not_keep_a_job_from_being_cancelled() -> None:
    gate = testing.Gate()
    topology = rel.Topology("gated")
    topology.source(testing.script([gate], {"n": int}), name="numbers").sink(rel.list(), name="out")
    job = rel.start(topology)
    assert gate.wait_reached(60)
    job.cancel()
    with pytest.raises(rel.errors.JobCancelledError):
        job.wait(60)


def test_a_clock_passes_when_told() -> None:
    clock = testing.FakeClock(10)
    clock.sleep(0.5)
    assert (clock(), clock.nanoseconds()) == (10.5, 10_500_000_000)
    with pytest.raises(ValueError, match="-1"):
        clock.advance(-1)
