"""A job on Ray whose processes are killed: it goes back to its last checkpoint, and each row counts once."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from pyarrow import parquet

import rayelastic as rel
from rayelastic.errors import JobFailedError, RayelasticError
from rayelastic.runtime.values.status import State

pytestmark = pytest.mark.cluster

PATIENCE = 120.0
ROWS, KEYS = 30_000, 97
PES = {"numbers": 0, "counts": 1, "out": 2}
OFTEN = rel.Checkpoint(every=0.5, restarts=100)


def counted(name: str, folder: Path, sink: Any = None) -> rel.Topology:
    """Counts by key; a row for each, so that an outsider can tell which are missing or double.

    They go into a folder of Parquet files and a list, or into a sink that is given.

    The last rows come once there is a file `go`: so no job is over before it has lost what it is to lose.
    """
    go = folder / "go"

    def numbers() -> Iterator[tuple[int, int]]:
        nobody = threading.Event()
        for n in range(ROWS):
            if n % 100 == 0:
                nobody.wait(0.005)
            while n == ROWS - 1000 and not go.exists():
                nobody.wait(0.02)
            yield n % KEYS, n

    topology = rel.Topology(name)
    keyed = topology.source("numbers", rel.callable(numbers, schema={"key": int, "n": int})).key_by("key")
    counts = keyed.aggregate("counts", emit="update", n=rel.last("n"), all=rel.count())
    counts.sink("out", rel.parquet(str(folder / "out")) if sink is None else sink)
    if sink is None:
        counts.sink("also", rel.list())
    return topology


def check(job: rel.Job, folder: Path) -> None:
    """As an outsider: every row once, each with the count that it had to have."""
    (folder / "go").touch()
    result = job.wait(PATIENCE)
    table = parquet.read_table(folder / "out").to_pydict()
    left = sorted(zip(table["n"], table["all"], strict=True))
    assert left == [(n, n // KEYS + 1) for n in range(ROWS)]
    assert sorted((t.n, t.all) for t in result["also"]) == left


def wait_for(job: rel.Job, condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        job.pause(0.02)


def wait_for_checkpoint(job: rel.Job) -> None:
    before = job.status.checkpoints.taken
    wait_for(job, lambda: job.status.checkpoints.taken > before)


def kill(job: rel.Job, pe: str) -> None:
    before = job.status.checkpoints.restarts
    os.kill(next(one.pid for one in job.status.pes if one.pe == pe), signal.SIGKILL)
    wait_for(job, lambda: job.status.checkpoints.restarts > before and job.status.state is State.RUNNING)


def test_each_element_is_killed_once(ray_cluster: None, tmp_path: Path) -> None:
    job = rel.submit(counted("killed", tmp_path), rel.JobConfig(pins=PES, checkpoint=OFTEN))
    for pe in ("pe0", "pe1", "pe2"):
        wait_for_checkpoint(job)
        kill(job, pe)
    check(job, tmp_path)


def test_a_coordinator_and_an_element_die_at_once(ray_cluster: None, tmp_path: Path) -> None:
    job = rel.submit(counted("headless", tmp_path), rel.JobConfig(pins=PES, checkpoint=OFTEN))
    wait_for_checkpoint(job)
    coordinator = ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid()))  # type: ignore[attr-defined]
    victim = next(one.pid for one in job.status.pes if one.pe == "pe1")
    os.kill(coordinator, signal.SIGKILL)
    os.kill(victim, signal.SIGKILL)
    wait_for(job, lambda: job.status.checkpoints.restarts == 1 and job.status.state is State.RUNNING)
    check(job, tmp_path)


def test_a_replica_is_killed_by_default_settings(ray_cluster: None, tmp_path: Path) -> None:
    job = rel.submit(counted("replicas", tmp_path), rel.JobConfig(regions="manual"))
    plan = job.rescale(job.plan().region_of("counts").region.name, 3)
    kill(job, plan.region_of("counts").pipelines[0].pes[2])
    check(job, tmp_path)


def test_a_tuple_that_crashes_its_process_each_time_fails_the_job(ray_cluster: None, tmp_path: Path) -> None:
    def crash(t: Any) -> int:
        if t.value == 500:  # as native code that crashes, once the job has started
            threading.Event().wait(2.0)
            os._exit(3)
        return int(t.value)

    topology = rel.Topology("poison")
    topology.source("numbers", rel.sequence(1000)).map("crash", crash, schema={"n": int}, lane="python").sink(
        "out", rel.parquet(str(tmp_path / "out"))
    )
    with pytest.raises(JobFailedError, match="has gone back 2 times"):
        rel.submit(topology, rel.JobConfig(checkpoint=rel.Checkpoint(restarts=6))).wait(PATIENCE)


KILLS = 20


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(5))
def test_random_kills(ray_cluster: None, tmp_path: Path, seed: int) -> None:
    """Elements and coordinators, at any moment: in a checkpoint, on the way back, while replicas change."""
    dice = random.Random(seed)
    config = rel.JobConfig(regions="manual", checkpoint=rel.Checkpoint(every=0.5, restarts=1000))
    job = rel.submit(counted(f"random{seed}", tmp_path), config)
    region = job.plan().region_of("counts").region.name
    for number in range(KILLS):
        job.pause(dice.uniform(0.0, 2.0))
        if number % 4 == 0:
            with contextlib.suppress(RayelasticError):  # it may be on its way back
                job.rescale(region, dice.randint(1, 3))
        pids = [one.pid for one in job.status.pes if one.pid and not one.state.is_final]
        if dice.random() < 0.2:
            pids.append(ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid())))  # type: ignore[attr-defined]
        if pids:
            with contextlib.suppress(ProcessLookupError):  # it was killed just now
                os.kill(dice.choice(pids), signal.SIGKILL)
    check(job, tmp_path)
