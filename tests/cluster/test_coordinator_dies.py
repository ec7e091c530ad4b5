"""A coordinator or an element dies during a change on Ray: it is ended or undone, the stream goes on (R1, R11)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic.errors import JobExistsError, JobFailedError, RayelasticError
from rayelastic.job import Job, prepare
from rayelastic.on_ray.jobs import start_coordinator
from tests.cluster.mortal import COORDINATOR_PATH, ITSELF
from tests.cluster.oracle import Load, finish, flows, topology

pytestmark = pytest.mark.timeout(180)

STEPS = ["begin", "start", "attach", "hold", "flush", "copy", "commit", "forget", "route", "end"]
CONFIG = rel.JobConfig(regions="manual", elasticity="off")
SETTLED = 10.0  # seconds until the change has been ended or undone (R11)
CALL = 30.0  # seconds


@contextmanager
def running(folder: Path) -> Iterator[Job]:
    load = Load(folder)
    load.set(5000.0)
    made = topology(folder)
    control = start_coordinator(prepare(made, CONFIG), coordinator_class=COORDINATOR_PATH)
    job = Job(made.name, control, made)
    try:
        job._start()
        flows(job)
        yield job
    finally:
        load.end()
        job.close()


def dies(job: Job, step: str, victim: str, replicas: int, occurrence: int = 1) -> float:
    """Rescales while a victim dies; returns how long it took until what there is was settled."""
    job._control.call("arm", step, occurrence, victim, timeout=CALL)
    began = time.monotonic()
    try:
        job.rescale("r1", replicas)
    except (RayelasticError, TimeoutError):
        job.plan()  # waits for the next coordinator
    return time.monotonic() - began


def test_the_next_coordinator_ends_what_one_has_begun(ray_cluster: str, tmp_path: Path) -> None:
    with running(tmp_path) as job:
        pids = {status.pid for status in job.status.pes}
        assert dies(job, "commit", ITSELF, 2) < SETTLED
        assert job.plan().region("r1").replicas == 2
        assert pids < {status.pid for status in job.status.pes}, "elements run on while it is away"
        flows(job)
        with pytest.raises(JobExistsError, match="attach"):
            rel.submit(topology(tmp_path), CONFIG)
        job.rescale("r1", 1)
        flows(job)
        finish(job, Load(tmp_path))


@pytest.mark.nightly
@pytest.mark.parametrize("step", STEPS)
def test_a_coordinator_that_dies_at_any_step(ray_cluster: str, tmp_path: Path, step: str) -> None:
    with running(tmp_path) as job:
        for round_number in range(4):
            replicas = 1 + (round_number + 1) % 2
            assert dies(job, step, ITSELF, replicas) < SETTLED
            if job.plan().region("r1").replicas != replicas:
                assert step == "begin"
                job.rescale("r1", replicas)
            flows(job)
        finish(job, Load(tmp_path))


@pytest.mark.nightly
@pytest.mark.parametrize("occurrence", [1, 2])
@pytest.mark.parametrize("step", STEPS[2:])
def test_a_new_element_that_dies_at_any_step(ray_cluster: str, tmp_path: Path, step: str, occurrence: int) -> None:
    """Before it has keys, the change is undone and all goes on. After, they are lost, and the job says so."""
    with running(tmp_path) as job:
        assert dies(job, step, "pe1", 2, occurrence) < SETTLED
        try:
            flows(job)
            if job.plan().region("r1").replicas == 1:
                job.rescale("r1", 2)
                flows(job)
            finish(job, Load(tmp_path))
        except (AssertionError, JobFailedError):
            failure = job.status.failure
            assert failure is not None
            assert "pe1" in failure.reason, failure
