"""Operators far slower than their source: checkpoints are complete within seconds, and jobs can be stopped."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from tests.component.checkpoint.test_checkpoints import Losing

MOST_SECONDS = 5.0  # for a checkpoint
MOST_HELD = 0.3  # seconds
SLOW = 0.004  # seconds a record: what the window of a link holds would take half an hour
CHECKPOINTS = 3


class Number(NamedTuple):
    n: int


PINS = {
    "one element": {},
    "over a link": {"rows": 0, "doubled": 0, "out": 1},
    "over two links": {"rows": 0, "doubled": 1, "out": 2},
}


@pytest.mark.parametrize("pins", PINS.values(), ids=PINS)
def test_checkpoints_are_complete_within_five_seconds(pins: dict[str, int], tmp_path: Path) -> None:
    nobody, came = threading.Event(), threading.Event()

    def slow(_: object) -> None:
        came.set()
        nobody.wait(SLOW)

    topology = rel.Topology("slow")
    doubled = topology.source(rel.sequence(1 << 40), name="rows").map(
        lambda t: 2 * t.value, name="doubled", schema={"n": int}
    )
    doubled.sink(rel.call(slow), name="out")
    made = Losing(topology, rel.JobConfig(pes=pins, checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0)))
    try:
        assert came.wait(60)
        for _ in range(CHECKPOINTS):
            before = made.job.status.checkpoints.taken
            made.take()  # the first one, of the job itself, may end in between
            counted = made.job.status.checkpoints
            assert counted.taken > before, counted.problem
            assert counted.abandoned == 0, counted.problem
            assert counted.seconds < MOST_SECONDS
            assert counted.paused < MOST_HELD, "the source waits for room, which isn't the checkpoint's doing"
    finally:
        made.job.close()


def test_a_job_is_stopped_though_more_is_behind_a_slow_operator_than_a_link_takes(tmp_path: Path) -> None:
    nobody, gate, rows, wide = threading.Event(), testing.Gate(), 50, "x" * 65536

    def slow(t: Number) -> str:
        nobody.wait(SLOW)
        return f"{t.n}{wide}"

    topology = rel.Topology("stopped")
    source = topology.source(testing.script([*((n,) for n in range(rows)), gate], Number), name="rows")
    source.map(slow, name="widened", schema={"text": str}).sink(rel.list(), name="out")
    config = rel.JobConfig(
        pes={"rows": 0, "widened": 0, "out": 1}, threads=rel.Threads(count=2, model="dynamic"), elasticity="off"
    )
    job = rel.start(topology, config)
    try:
        assert gate.wait_reached(60)
        assert job.metrics().operator("widened").tuples_out < rows, "nothing is behind it any more"
        stopped = job.stop(rel.Snapshot(tmp_path / "saved"))
        assert [row.text for row in stopped["out"]] == [f"{n}{wide}" for n in range(rows)]
    finally:
        job.close()
