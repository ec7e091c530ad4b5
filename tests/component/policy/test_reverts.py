"""A native region gets a replica, is slower with it, and gives it back: judged on the live path, and left alone then.

What is tested is the way there and back, not how well is measured beside other work: tuples cost several times as much
as soon as there are two replicas, as if both waited for one memory or one lock (run F of the evidence).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.job import Job, start
from rayelastic.policy.regions.actions import Verdict
from rayelastic.reasons import Code
from tests.reasons import region_passes

PERIOD = 0.4  # seconds between two decisions
PATIENCE = 100.0  # seconds
ROUNDS = 3000  # of a loop in machine code: some 20 us
HURT = 6  # times as many beside another replica
QUIET = 12  # passes behind the verdict
TARGET = 0.1  # of a CPU: other work may leave little more
KEYS = 97


class Work(NamedTuple):
    key: int
    rounds: int


class Seen(NamedTuple):
    times: int = 0


class Done(NamedTuple):
    key: int
    times: int


def burn(t: Work, s: Any) -> Done:
    spent = t.key
    for n in range(t.rounds):
        spent = (spent * 48271 + n) % 2147483647
    s.times += 1 if spent >= 0 else 2  # always 1, but no compiler knows
    return Done(t.key, s.times)


class Feed:
    """Work by turns of the keys, as fast as it is taken; dearer while it hurts, free when it is enough."""

    def __init__(self) -> None:
        self.enough, self.hurts = threading.Event(), threading.Event()
        self.made = 0

    def __call__(self) -> Iterator[Work]:
        while not self.enough.is_set():
            yield Work(self.made % KEYS, ROUNDS * (HURT if self.hurts.is_set() else 1))
            self.made += 1


def replicas_hurt(job: Job, feed: Feed) -> None:
    if job.plan().region_of("burn").replicas > 1:
        feed.hurts.set()
    else:
        feed.hurts.clear()


@pytest.mark.timeout(200)
def test_a_replica_of_a_native_region_that_does_not_help_is_taken_back() -> None:
    feed = Feed()
    topology = rel.Topology("hurts")
    keyed = topology.source(rel.callable(feed, Work), name="work").key_by("key")
    keyed.map(burn, name="burn", state=Seen, schema=Done, lane="compiled").sink(rel.list(), name="out")
    assert topology.operators["burn"].lane is Lane.COMPILED
    config = rel.JobConfig(
        regions="elastic",
        elasticity=rel.Elasticity(algorithm="off", region_period=PERIOD, region_target=TARGET, max_processes=2),
    )
    job = start(topology, config)
    try:
        until = time.monotonic() + PATIENCE
        while not (back := [one for one in region_passes(job) if one.decision.verdict is Verdict.REVERT]):
            replicas_hurt(job, feed)
            assert not job.status.state.is_final, job.status
            assert time.monotonic() < until, "\n".join(map(str, region_passes(job)))
            job.pause(0.05)
        while len(region_passes(job)) < back[0].number + QUIET:
            replicas_hurt(job, feed)
            job.pause(0.05)
        seen = region_passes(job)
        feed.enough.set()
        rows = job.wait(PATIENCE)["out"]
    finally:
        feed.enough.set()
        job.close()
    told = [one for one in seen if one.decision.verdict is not Verdict.HOLD]
    assert [one.decision.verdict for one in told[:2]] == [Verdict.TRY, Verdict.REVERT], told
    tried, reverted = told[:2]
    assert tried.in_force.region_of("burn").replicas == 2, "what was asked for is what was judged"
    assert reverted.in_force.region_of("burn").pipelines[0].pes == ("pe0",)
    assert Code.REPLICAS_REVERTED() in reverted.decision.reasons
    again = [one for one in told[2:] if one.decision.verdict is Verdict.TRY]
    assert len(again) <= 1, "it isn't asked for again and again; once, if the machine's other work looks like a change"
    assert sorted((t.key, t.times) for t in rows) == sorted((n % KEYS, n // KEYS + 1) for n in range(feed.made))
