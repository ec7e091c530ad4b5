"""A job on Ray whose processes are killed: it goes back to its last checkpoint, and each row counts once."""

from __future__ import annotations

import os
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
from rayelastic.errors import JobFailedError
from rayelastic.runtime.values.status import State

pytestmark = pytest.mark.cluster

PATIENCE = 120.0
ROWS, KEYS = 30_000, 97
PES = {"numbers": 0, "counts": 1, "out": 2}
OFTEN = rel.Checkpoint(every=0.5, restarts=100)


def counted(name: str, folder: Path, rows: int = ROWS) -> rel.Topology:
    """Counts by key; a row for each, so that an outsider can tell which are missing or double."""

    def numbers() -> Iterator[tuple[int, int]]:
        nobody = threading.Event()
        for n in range(rows):
            if n % 100 == 0:
                nobody.wait(0.02)  # so that there is more to come when processes die
            yield n % KEYS, n

    topology = rel.Topology(name)
    keyed = topology.source("numbers", rel.callable(numbers, schema={"key": int, "n": int})).key_by("key")
    counts = keyed.aggregate("counts", emit="update", n=rel.last("n"), all=rel.count())
    counts.sink("out", rel.parquet(str(folder)))
    counts.sink("also", rel.list())
    return topology


def check(folder: Path, result: Any, rows: int = ROWS) -> None:
    """As an outsider: every row once, each with the count that it had to have."""
    table = parquet.read_table(folder).to_pydict()
    left = sorted(zip(table["n"], table["all"], strict=True))
    assert left == [(n, n // KEYS + 1) for n in range(rows)]
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
    job = rel.submit(counted("killed", tmp_path / "out"), rel.JobConfig(pins=PES, checkpoint=OFTEN))
    for pe in ("pe0", "pe1", "pe2"):
        wait_for_checkpoint(job)
        kill(job, pe)
    check(tmp_path / "out", job.wait(PATIENCE))


def test_a_coordinator_and_an_element_die_at_once(ray_cluster: None, tmp_path: Path) -> None:
    job = rel.submit(counted("headless", tmp_path / "out"), rel.JobConfig(pins=PES, checkpoint=OFTEN))
    wait_for_checkpoint(job)
    coordinator = ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid()))  # type: ignore[attr-defined]
    victim = next(one.pid for one in job.status.pes if one.pe == "pe1")
    os.kill(coordinator, signal.SIGKILL)
    os.kill(victim, signal.SIGKILL)
    check(tmp_path / "out", job.wait(PATIENCE))


def test_a_replica_is_killed_by_default_settings(ray_cluster: None, tmp_path: Path) -> None:
    job = rel.submit(counted("replicas", tmp_path / "out"), rel.JobConfig(regions="manual"))
    plan = job.rescale(job.plan().region_of("counts").region.name, 3)
    kill(job, plan.region_of("counts").pipelines[0].pes[2])
    check(tmp_path / "out", job.wait(PATIENCE))


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
        rel.submit(topology, rel.JobConfig(checkpoint=rel.Checkpoint(restarts=2))).wait(PATIENCE)
