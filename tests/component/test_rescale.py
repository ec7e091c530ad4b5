"""Regions get more and fewer replicas while the job runs, in this process: real schedulers, links, data ports (R3)."""

from __future__ import annotations

import pytest

import rayelastic as rel
from rayelastic.errors import ConfigError
from rayelastic.job import Job, start
from tests.component.rescaling import Feed, check, topology_of

ELASTIC = rel.JobConfig(regions="elastic", elasticity="off")


def taken(job: Job, operator: str) -> int:
    return job.metrics().operator(operator).tuples_in


def flows(job: Job, operator: str = "out", tuples: int = 200) -> None:
    """Waits until more tuples have arrived."""
    before = taken(job, operator)
    while taken(job, operator) < before + tuples:
        assert not job.status.state.is_final, job.status


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("threading", [None, "dynamic"])
def test_a_region_goes_from_one_to_three_replicas_and_back(lane: str, threading: str | None) -> None:
    feed = Feed(keys=500)
    config = rel.JobConfig(regions="elastic", elasticity="off", threading=threading, threads=2)
    job = start(topology_of(feed, lane), config)
    try:
        assert job.plan().region("r1").replicas == 1
        for replicas in (2, 3, 1, 2, 1):
            flows(job)
            assert job.rescale("r1", replicas).region("r1").replicas == replicas
            assert job.plan().region("r1").replicas == replicas
            assert len(job.status.pes) == replicas
        flows(job)
        feed.enough.set()
        check(job.wait()["out"], feed)
    finally:
        feed.enough.set()
        job.close()


def test_what_cant_be_rescaled_is_said() -> None:
    feed = Feed(keys=5)
    job = start(topology_of(feed, "compiled"), ELASTIC)
    try:
        with pytest.raises(ConfigError, match="region r0 keeps its replicas: it is source"):
            job.rescale("r0", 2)
        with pytest.raises(ConfigError, match="272 replicas"):
            job.rescale("r1", 272)
        feed.enough.set()
        check(job.wait()["out"], feed)
    finally:
        feed.enough.set()
        job.close()
    fixed = start(topology_of(Feed(keys=1), "compiled"))
    with pytest.raises(ConfigError, match=r"regions='fixed'"):
        fixed.rescale("r1", 2)
    fixed.close()
