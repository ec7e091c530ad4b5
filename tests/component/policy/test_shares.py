"""Partitions of keys move between replicas that stay: told so, and by themselves where one replica has warmer keys."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import rayelastic as rel
from rayelastic import _native
from rayelastic.errors import ConfigError
from rayelastic.job import Job, start
from rayelastic.plan.hash_ring import PARTITIONS, HashRing
from rayelastic.reasons import Code
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.values.region_adaptation import RegionAdaptation
from tests.component.rescale.rescaling import Counted, Event, Feed, Seen, check, count, flows, topology_of
from tests.raising import raises
from tests.reasons import codes
from tests.waiting import wait_until

PATIENCE = 60.0
PERIOD = 0.4  # seconds between two decisions
ANSWER = 0.002  # seconds that each tuple waits for its answer
KEYS = 200
KEY = native_schema(rel.Schema.of({"key": int}))
WARM = 4  # times as many tuples of each key that the first replica has


def taken(job: rel.Job) -> dict[str, int]:
    return {pe.pe: o.tuples_in for pe in job.metrics().pes for o in pe.operators if o.name == "count"}


@pytest.mark.timeout(120)
def test_shares_that_are_asked_for_come_into_force_while_the_job_runs() -> None:
    feed = Feed(KEYS)
    job = start(topology_of(feed, "compiled"), rel.JobConfig(regions="manual"))
    try:
        flows(job)
        job.rescale("r1", 2)
        for shares in ((3800, 296), (296, 3800), ()):
            plan = job.change(job.plan().with_shares("r1", shares))
            assert plan.region("r1").shares == shares
            flows(job, tuples=2000)  # what was under way before
            before = taken(job)
            flows(job, tuples=20_000)
            more, fewer = (taken(job)[pe] - before[pe] for pe in ("pe0", "pe1"))
            share = more / (more + fewer)
            assert share == pytest.approx((shares[0] if shares else PARTITIONS / 2) / PARTITIONS, abs=0.15)
        moved = job.metrics().regions["r1"]
        assert moved.changes == 4
        job.rescale("r1", 3)
        job.change(job.plan().with_replicas("r1", 2).with_shares("r1", (1360, 2736)))  # as a change is taken back
        assert job.plan().region("r1").shares == (1360, 2736)
        flows(job, tuples=2000)
        with raises(ConfigError, "bad-change"):
            job.change(job.plan().with_shares("r1", (3000, 1096)).with_replicas("r1", 2, ("pe0", "pe9")))
        feed.enough.set()
        check(job.wait(PATIENCE)["out"], feed)
    finally:
        feed.enough.set()
        job.close()


class WarmFeed(Feed):
    """Keys that the first of two replicas has, if both have as many partitions, come more often than the others."""

    def __call__(self) -> Iterator[Event]:
        ring = HashRing.of(2)
        first = {key for key in range(KEYS) if ring.owner_of(_native.key_hash(KEY, (key,))) == 0}
        turns = [key for key in range(KEYS) for _ in range(WARM if key in first else 1)]
        while not self.enough.is_set():
            for key in turns:
                self.next[key] += 1
                yield Event(key, self.next[key] - 1)


def ask(t: Event, s: Seen) -> Counted:
    threading.Event().wait(ANSWER)
    return count(t, s)


def shared(job: Job) -> list[RegionAdaptation]:
    """What made the first plan with shares."""
    return [one for one in job.adaptations() if isinstance(one, RegionAdaptation) and one.in_force.epoch == 1]


@pytest.mark.timeout(150)
def test_warm_keys_go_where_there_is_time_for_them() -> None:
    feed = WarmFeed(KEYS)
    topology = rel.Topology("warm")
    keyed = topology.source(rel.callable(feed, Event), name="events").key_by("key")
    keyed.map(ask, name="count", state=Seen, schema=Counted, lane="python").sink(rel.list(), name="out")
    config = rel.JobConfig(
        regions="elastic",
        elasticity=rel.Elasticity(algorithm="off", region_period=PERIOD, max_processes=2),
        replicas={"count": 2},
    )
    job = start(topology, config)
    try:
        wait_until(job, lambda: shared(job))
        [share] = shared(job)
        feed.enough.set()
        check(job.wait(timeout=PATIENCE)["out"], feed)
    finally:
        feed.enough.set()
        job.close()
    assert codes(share.decision.reasons)[-3:] == [Code.UNEVEN, Code.SHARE, Code.GAIN]
    first, second = share.in_force.region("r1").shares
    assert first < second, "the first one's keys are warmer"
