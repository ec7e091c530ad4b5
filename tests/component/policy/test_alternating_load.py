"""A load that comes and goes every 10, 60 or 300 s, ten times as fast with a tenth of the period: no flapping, live."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import start
from rayelastic.runtime.values.region_adaptation import RegionAdaptation

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(400)]

PERIOD = 0.2  # seconds between two decisions: a tenth of the default
ANSWER = 0.01  # seconds that each tuple waits for its answer: a replica takes a hundred a second
HIGH, LOW = 200.0, 20.0  # tuples/s: what three replicas take at their target, and less than one
TICK = 0.01  # seconds between two bursts


class Number(NamedTuple):
    n: int


class Alternating:
    """As many tuples a second as the clock says, until it is enough."""

    def __init__(self, half: float) -> None:
        self.enough, self._half = threading.Event(), half
        self.made = 0

    def __call__(self) -> Iterator[Number]:
        began = now = time.monotonic()
        due = 0.0
        while not self.enough.wait(TICK):
            before, now = now, time.monotonic()
            due += (now - before) * (HIGH if int((now - began) / self._half) % 2 == 0 else LOW)
            for n in itertools.islice(itertools.count(self.made), int(due)):
                yield Number(n)
                self.made += 1
            due -= int(due)


def ask(t: Number) -> Number:
    threading.Event().wait(ANSWER)
    return t


@pytest.mark.parametrize(("half", "seconds", "most"), [(0.5, 40.0, 4), (3.0, 90.0, 8), (15.0, 120.0, 12)])
def test_a_load_that_comes_and_goes_does_not_have_replicas_come_and_go(half: float, seconds: float, most: int) -> None:
    feed = Alternating(half)
    topology = rel.Topology("alternates")
    stream = topology.source(rel.callable(feed, Number), name="numbers")
    stream.map(ask, name="ask", schema=Number, lane="python").sink(rel.list(), name="out")
    config = rel.JobConfig(
        regions="elastic", elasticity=rel.Elasticity(algorithm="off", region_period=PERIOD, max_processes=4)
    )
    job = start(topology, config)
    try:
        job.pause(seconds)
        changes = [one for one in job.adaptations() if isinstance(one, RegionAdaptation) and one.changed]
        assert not job.status.state.is_final, job.status
        feed.enough.set()
        rows = job.wait(60)["out"]
    finally:
        feed.enough.set()
        job.close()
    assert 1 <= len(changes) <= most, "\n".join(map(str, changes))
    assert [t.n for t in rows] == list(range(feed.made))
