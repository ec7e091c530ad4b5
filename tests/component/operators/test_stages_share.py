"""Elastic stages of one process get equal shares of its CPUs if they need the same (IPDPS'09 section 6, S10)."""

from __future__ import annotations

from typing import Any

import pytest

import rayelastic as rel
from rayelastic.job import start
from tests.waiting import wait_until

STAGES = [f"stage{number}" for number in range(4)]
BEFORE, MEASURED = 200_000, 500_000  # tuples of all stages: until they have settled, and those that count
PERIOD = 0.2  # s
LOOKS = 20  # in a row, with as many channels in each stage
EQUAL = 2.0  # though a stage tries more channels for a second or two; 3 without shares


def dear(t: Any) -> float:
    x = 1.0
    for _ in range(20_000):
        x = x * 1.0000001
    return x + float(t.value)


def are_equal(looks: list[list[int]]) -> bool:
    return len(looks) == LOOKS and all(len(set(channels)) == 1 for channels in looks)


@pytest.mark.alone
def test_four_equal_stages_get_equal_shares() -> None:
    """By IPDPS'09 alone one stage ends with seven channels and another one with one, at a third of the throughput."""
    topology = rel.Topology("stages")
    for stage in STAGES:
        source = topology.source(rel.sequence(1 << 40), name=f"source of {stage}")
        source.elastic(lambda s: s.map(dear, name="dear"), name=stage, most=8).sink(rel.count(), name=f"out of {stage}")
    job = start(topology, rel.JobConfig(elasticity=rel.Elasticity(thread_period=PERIOD, remember=False)))

    seen: list[list[int]] = []  # channels of each stage, look by look

    def taken() -> list[int]:
        metrics = job.metrics()
        seen.append([metrics.operator(stage).channels for stage in STAGES])
        return [metrics.operator(stage).tuples_in for stage in STAGES]

    try:
        wait_until(job, lambda: sum(taken()) >= BEFORE, look=0.1)
        settled = taken()
        wait_until(job, lambda: sum(taken()) >= sum(settled) + MEASURED, look=0.1)
        seen.clear()
        wait_until(job, lambda: bool(taken()) and are_equal(seen[-LOOKS:]), look=0.1)
        now = taken()
    finally:
        job.close()
    rates = [after - before for before, after in zip(settled, now, strict=True)]
    assert max(rates) <= EQUAL * min(rates), rates
