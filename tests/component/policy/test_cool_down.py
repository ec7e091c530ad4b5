"""How long less has to be enough before replicas are given back, as users say."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import start
from rayelastic.reasons import Code
from tests.reasons import region_passes
from tests.waiting import wait_until

PERIOD = 0.2  # seconds between two decisions
PERIODS = 20  # of them, for which less has to be enough; 8 is usual
RATE = 20.0  # tuples/s: nothing, for two replicas
TICK = 0.01  # seconds between two looks at the clock
PATIENCE = 90.0


class Number(NamedTuple):
    n: int


def keep(t: Number) -> Number:
    return t


@pytest.mark.timeout(200)
def test_replicas_are_given_back_once_less_was_enough_for_that_long() -> None:
    enough = threading.Event()

    def numbers() -> Iterator[Number]:
        made, due, now = itertools.count(), 0.0, time.monotonic()
        while not enough.wait(TICK):
            before, now = now, time.monotonic()
            due += (now - before) * RATE
            yield from map(Number, itertools.islice(made, int(due)))
            due -= int(due)

    topology = rel.Topology("cools")
    stream = topology.source(rel.callable(numbers, Number), name="numbers")
    stream.map(keep, name="keep", schema=Number, lane="python").sink(rel.list(), name="out")
    config = rel.JobConfig(
        regions="elastic",
        elasticity=rel.Elasticity(algorithm="off", region_period=PERIOD, cool_down=PERIODS * PERIOD, max_processes=4),
    )
    job = start(topology, config)
    try:
        plan = job.plan()
        region = plan.region_of("keep").region.name
        job.change(plan.with_replicas(region, 2, ("pe0", *plan.fresh_pes(1))))
        wait_until(job, lambda: any(one.changed for one in region_passes(job)))
        told = region_passes(job)
        given_back = next(at for at, one in enumerate(told) if one.changed)
        calm = sum(Code.LESS_WOULD_DO(regions=[region]) in one.decision.reasons for one in told[:given_back])
        assert calm >= PERIODS - 1, "\n".join(map(str, told))
        enough.set()
        rows = job.wait(60)["out"]
        assert [t.n for t in rows] == list(range(len(rows)))
    finally:
        enough.set()
        job.close()
