"""What a job has counted never falls: neither when its plan changes, live or by a restart, nor when it recovers."""

from __future__ import annotations

from typing import Any

import rayelastic as rel
from rayelastic.job import Job, start
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.period import job_period
from tests.component.rescale.rescaling import Feed, check, topology_of
from tests.waiting import wait_until, wait_until_received

OPERATORS = ["events", "count", "out"]


def counted(job: Job) -> list[int]:
    """The tuples that each operator has received and emitted."""
    operators = job.metrics().operators()
    return [number for name in OPERATORS for number in (operators[name].tuples_in, operators[name].tuples_out)]


def coordinator_of(job: Job) -> Any:
    """The coordinator, which is in this process."""
    return job._control.within(10.0)


def goes_on(job: Job, before: list[int]) -> None:
    """Nothing is below what it was, and all of it grows from there by what is processed, not by more."""
    now = counted(job)
    assert all(then <= later for then, later in zip(before, now, strict=True)), (before, now)
    wait_until_received(job, "out", before[-2] + 500)


def test_totals_go_on_through_changes_of_the_plan() -> None:
    feed = Feed(50)
    topology = topology_of(feed, "compiled")
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off"))
    try:
        wait_until_received(job, "out", 500)
        region = job.plan().region_of("count").region.name
        for replicas in (2, 1, 3, 1):
            before = counted(job)
            job.rescale(region, replicas)
            goes_on(job, before)
        feed.enough.set()
        rows = job.wait(60)["out"]
        check(rows, feed)
        assert job.metrics().operator("count").tuples_in == job.metrics().operator("out").tuples_in == len(rows)
    finally:
        feed.enough.set()
        job.close()


def test_totals_go_on_through_restarts(tmp_path: object) -> None:
    topology = rel.Topology("restarts")
    numbers = topology.source(rel.sequence(10**9), name="events").throttle(20_000, name="pace")
    numbers.key_by("value").aggregate(name="count", n=rel.count(), emit="update").sink(rel.count(), name="out")
    job = start(topology, rel.JobConfig(checkpoint=rel.Checkpoint(str(tmp_path), every=600.0), elasticity="off"))
    try:
        wait_until_received(job, "out", 500)
        first, before = job.metrics(), counted(job)
        seconds = first.seconds
        job.renew_secret()  # by the same plan, from a checkpoint
        goes_on(job, before)
        period = job_period(first, job.metrics())
        assert all(one.tuples_out >= 0 for one in period.operators().values())
        assert period.operator("out").tuples_in == period.pes[0].operators[-1].tuples_in > 0, "since it was replaced"
        metrics = job.metrics()
        assert metrics.pes[0].seconds < metrics.seconds, "an element counts from its own start"
        assert job.metrics().seconds > seconds
        before = counted(job)
        coordinator_of(job)._recovery.lose(Failure("pe0 was lost"))
        wait_until(job, lambda: job.status.checkpoints.restarts > 0)
        goes_on(job, before)
    finally:
        job.close()
