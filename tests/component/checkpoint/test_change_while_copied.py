"""A region gets a replica while the second copies of a checkpoint are made: it counts, and is restored afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rayelastic as rel
from rayelastic.job import start
from rayelastic.runtime.values.checkpoint_record import Copied
from rayelastic.runtime.values.failure import Failure
from tests.waiting import wait_until, wait_until_received

KEYS, ROWS = 97, 60_000


def test_a_region_grows_while_files_are_copied(tmp_path: Path) -> None:
    topology = rel.Topology("copied")
    rows = topology.source(rel.generate(lambda n: (n % KEYS, n), ROWS, schema={"key": int, "i": int}), name="rows")
    keyed = rows.throttle(10_000, name="pace").key_by("key")
    keyed.aggregate(name="count", emit="update", n=rel.count()).sink(rel.list(), name="out")
    checkpoint = rel.Checkpoint(str(tmp_path), every=600.0)
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off", checkpoint=checkpoint))
    coordinator: Any = job._control.within(10.0)
    region = job.plan().region_of("count").region.name
    copies: list[int] = []

    def copy(*_: object) -> Copied:
        if not copies:
            copies.append(job.rescale(region, 2).region(region).replicas)
        return Copied()

    coordinator._recovery.copies.copy = copy
    try:
        wait_until_received(job, "out", 500)
        assert coordinator._checkpoints.loop.take() is None
        assert copies == [2]
        assert job.plan().region(region).replicas == 2
        assert coordinator._journal.plan.region(region).replicas == 2, "the next coordinator has the plan in force"
        coordinator._recovery.lose(Failure("pe0 was lost"))
        wait_until(job, lambda: job.status.checkpoints.restarts == 1)
        assert sorted((t.key, t.n) for t in job.wait(60)["out"]) == sorted(
            (i % KEYS, i // KEYS + 1) for i in range(ROWS)
        )
    finally:
        job.close()
