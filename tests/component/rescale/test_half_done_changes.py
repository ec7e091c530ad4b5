"""A stream ends in the middle of a change of its region: the job goes on, takes checkpoints, and loses nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import ErrorCode, RayelasticError
from rayelastic.job import start
from rayelastic.runtime.rescale import performer
from rayelastic.runtime.rescale.router_at import StreamEndedError
from tests.waiting import wait_until, wait_until_received

STEPS = ["begin", "start", "attach", "hold", "flush", "copy", "commit", "forget", "route", "end"]
AFTER_A_BATCH = "hold after a batch"  # some keys have their new owner, the others the old one
KEYS, ROWS = 97, 3000
SCHEMA = {"key": int, "i": int}


class Rows:
    """Rows (key, i) at once; the stream ends when the test asks for it."""

    idle = 0.01

    def __init__(self, rows: int) -> None:
        self.rows, self.ends = rows, threading.Event()

    def __deepcopy__(self, memo: object) -> Rows:
        """The test ends the one that each start has."""
        return self

    def partitions(self) -> list[str]:
        return ["all"]

    def open(self, partition: str, position: Any) -> Part:
        return Part(self, position or 0)


class Part:
    def __init__(self, of: Rows, position: int) -> None:
        self.of, self.position = of, position

    def poll(self) -> list[tuple[int, int]] | None:
        first, self.position = self.position, min(self.position + 50, self.of.rows)
        if first < self.of.rows:
            return [(i % KEYS, i) for i in range(first, self.position)]
        return None if self.of.ends.is_set() else []


@pytest.mark.parametrize("step", [*STEPS, AFTER_A_BATCH])
def test_a_stream_that_ends_in_a_change_stops_no_checkpoint(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(performer, "BATCH_BYTES", 2000)
    feed, others = Rows(ROWS), Rows(0)
    topology = rel.Topology("half")
    keyed = topology.source(rel.polled(feed, SCHEMA), name="events").key_by("key")
    keyed.aggregate(name="count", emit="update", n=rel.count()).sink(rel.list(), name="out")
    topology.source(rel.polled(others, SCHEMA), name="others").sink(rel.count(), name="seen")
    checkpoint = rel.Checkpoint(str(tmp_path / "saved"), every=0.2)
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off", checkpoint=checkpoint))
    try:
        wait_until_received(job, "out", ROWS)
        ends_at(job._control.within(10.0), step, feed)
        code = None
        try:
            job.rescale(job.plan().region_of("count").region.name, 2)
        except RayelasticError as error:
            code = error.code
        assert code is ErrorCode.CHANGE_HALF_DONE or step != AFTER_A_BATCH
        taken = job.status.checkpoints.taken
        wait_until(job, lambda: job.status.checkpoints.taken > taken + 1)
        if code is ErrorCode.CHANGE_HALF_DONE:
            assert job.status.checkpoints.restarts == 1
        job.snapshot(tmp_path / "savepoint")
        others.ends.set()
        feed.ends.set()
        rows = job.wait(60)["out"]
        assert sorted((t.key, t.n) for t in rows) == sorted((i % KEYS, i // KEYS + 1) for i in range(ROWS))
    finally:
        others.ends.set()
        feed.ends.set()
        job.close()


def ends_at(coordinator: Any, step: str, feed: Rows) -> None:
    """Let the stream end when a change comes to a step, and the change go on once it has.

    Between two batches its end is only what the change hears: a new owner that is as quick as here finishes, which is
    another case, but one with a backlog doesn't.
    """
    seen: list[str] = []

    def passing(name: str) -> None:
        seen.append(name)
        if step == AFTER_A_BATCH and name == "hold" and "route" in seen:
            raise StreamEndedError("all streams into the region have ended")
        if name == step and seen.count(name) == 1:
            feed.ends.set()
            routers = coordinator._cluster.handles["pe0"]._element.routing._routers
            has_ended = threading.Event()
            while not any(router.counters().ended for router in routers.values()):
                has_ended.wait(0.005)

    coordinator._rescaling._performer._passing = passing
