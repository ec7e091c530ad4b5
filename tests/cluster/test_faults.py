"""What goes wrong in ordinary operation, on real processes: what users are told, and what isn't lost."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import ray
from pyarrow import parquet

import rayelastic as rel
from rayelastic.errors import JobExistsError, JobFailedError, JobNotFoundError, NotShippableError, PELostError
from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.jobs import PREFIX
from rayelastic.on_ray.private import adapter
from rayelastic.runtime.values.status import State
from tests.raising import raises
from tests.waiting import wait_until, wait_until_received

pytestmark = pytest.mark.cluster

BACKED_OFF = 100.0  # seconds for a job that has gone back in vain, again and again, to give up
PATIENCE = 60.0


def numbers(name: str, function: Any, count: int = 10) -> rel.Topology:
    topology = rel.Topology(name)
    source = topology.source(rel.sequence(count), name="numbers")
    source.map(function, name="named", schema={"n": int}, lane="python").sink(rel.list(), name="out")
    return topology


def test_a_module_that_the_cluster_lacks_is_told_by_its_name(
    ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "driver_only.py").write_text("def double(t):\n    return 2 * t.value\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import driver_only  # type: ignore[import-not-found]

    try:
        with raises(NotShippableError, "missing-module", "driver_only", "No"):
            rel.submit(numbers("lacks", driver_only.double))
    finally:
        del sys.modules["driver_only"]
    assert rel.submit(numbers("lacks", lambda t: t.value)).wait(PATIENCE)["out"][-1].n == 9


def test_a_crash_in_native_code_names_its_operator(ray_cluster: None, capfd: pytest.CaptureFixture[str]) -> None:
    def crash(t: Any) -> int:
        if t.value == 5:
            ctypes.string_at(0)
        return int(t.value)

    often = rel.JobConfig(checkpoint=rel.Checkpoint(restarts=4))  # a process each, of seconds on a slow machine
    with raises((PELostError, JobFailedError), "pe-lost", "pe0"):
        rel.submit(numbers("crash", crash), often).wait(BACKED_OFF)


def test_the_text_of_an_exception_is_bounded(ray_cluster: None) -> None:
    def huge(t: Any) -> int:
        raise ValueError("q" * 50_000_000)

    with raises(JobFailedError, "function-raised", "ValueError", operator="named") as failed:
        rel.submit(numbers("huge", huge)).wait(PATIENCE)
    assert len(str(failed.value)) < 100_000


DRIVER = """
import os, sys
import ray
import rayelastic as rel
from rayelastic.job import prepare
from rayelastic.on_ray.jobs import start_coordinator

ray.init(address=sys.argv[1], log_to_driver=False)
topology = rel.Topology("interrupted")
topology.source(rel.sequence(10), name="numbers").sink(rel.count(), name="out")
control = start_coordinator(prepare(topology))
print(control.within(60).status().state.value, flush=True)
sys.stdin.readline()
os._exit(1)  # between making the coordinator and starting the job, as a signal may end it
"""


def test_a_driver_that_ends_while_it_submits_leaves_no_name_behind(ray_cluster: None) -> None:
    address = ray.get_runtime_context().gcs_address
    program = [sys.executable, "-c", DRIVER, address]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "created\n"
        with raises(JobExistsError, "job-exists", "interrupted"):
            rel.submit(numbers("interrupted", lambda t: t.value))
        coordinator = rel.attach("interrupted")
        driver.communicate("\n")
    with contextlib.suppress(PELostError):  # it may be gone before it has said so
        assert coordinator._control.within(2 * PATIENCE).wait(PATIENCE).state is State.CANCELLED
    assert rel.submit(numbers("interrupted", lambda t: t.value)).wait(PATIENCE)["out"][-1].n == 9


LEAVES = """
import os, sys
import ray
import rayelastic as rel

ray.init(address=sys.argv[1], log_to_driver=False)
topology = rel.Topology("left")
topology.source(rel.sequence(10**12), name="numbers").throttle(1000).sink(rel.count(), name="out")
print(rel.submit(topology).status.state.value, flush=True)
os._exit(0)
"""


def test_a_coordinator_whose_driver_has_gone_is_replaced_as_any_other(ray_cluster: None) -> None:
    address = ray.get_runtime_context().gcs_address
    done = subprocess.run([sys.executable, "-c", LEAVES, address], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "running\n", done.stderr
    job = rel.attach("left")
    try:
        (element,) = (one.pid for one in job.status.pes)
        coordinator = ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid()))  # type: ignore[attr-defined]
        os.kill(coordinator, signal.SIGKILL)
        until = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(PELostError, TimeoutError):
                status = job.status
                break
            assert time.monotonic() < until
        assert (status.state, [one.pid for one in status.pes]) == (State.RUNNING, [element])
    finally:
        job.close()


@pytest.mark.parametrize(("held", "stopped_for"), [(14, 6), pytest.param(16, 20, marks=pytest.mark.nightly)])
def test_a_held_gil_and_a_process_that_stands_still_lose_nothing(
    ray_cluster: None, tmp_path: Path, held: int, stopped_for: int
) -> None:
    go = tmp_path / "go"

    def sleeps_with_the_gil(t: Any) -> int:
        nobody = threading.Event()
        while t.value == 500 and not go.exists():
            nobody.wait(0.01)
        if t.value == 500:
            ctypes.PyDLL(None).sleep(held)  # as a library that loads a model; a call of the coordinator ends before
        return int(t.value)

    topology = rel.Topology("still")
    source = topology.source(rel.sequence(1000), name="numbers")
    sleeping = source.map(sleeps_with_the_gil, name="held", schema={"n": int}, lane="python")
    sleeping.map(lambda t: t.n, name="next", schema={"m": int}, lane="python").sink(rel.list(), name="out")
    job = rel.submit(topology, rel.JobConfig(pes={"numbers": 0, "next": 1}))
    stopped = next(status.pid for status in job.status.pes if status.pe == "pe1")
    os.kill(stopped, signal.SIGSTOP)
    go.touch()
    try:
        job.pause(stopped_for)  # links that say nothing for some seconds were lost
        assert not job.status.state.is_final
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert [row.m for row in job.wait(2 * PATIENCE)["out"]] == list(range(1000))
    assert job.status.checkpoints.restarts == 0, "nobody was taken for lost"


def test_a_finished_job_stays_finished_when_its_coordinator_dies(ray_cluster: None) -> None:
    job = rel.submit(numbers("over", lambda t: t.value))
    wait_until(job, lambda: job.status.state.is_final, look=0.05)
    coordinator = ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid()))  # type: ignore[attr-defined]
    os.kill(coordinator, signal.SIGKILL)
    result = job.wait(PATIENCE)
    assert [row.n for row in result["out"]] == list(range(10))


def test_a_snapshot_is_written_where_the_driver_says(
    ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def endless(n: int) -> int:
        return n

    def topology() -> rel.Topology:
        made = rel.Topology("relative")
        source = made.source(rel.generate(endless, None, schema={"n": int}), name="numbers")
        source.aggregate(name="count", emit="update", n=rel.count()).sink(
            rel.parquet(tmp_path / "out.parquet"), name="out"
        )
        return made

    job = rel.submit(topology())
    wait_until_received(job, "count", 1000)
    job.stop("saved")
    assert (tmp_path / "saved" / "manifest.json").exists()
    before = parquet.read_metadata(tmp_path / "out.parquet").num_rows
    job = rel.submit(topology(), restore="saved")
    wait_until_received(job, "count", 1000)
    job.stop("again")
    counts = parquet.read_table(tmp_path / "out.parquet")["n"].to_pylist()
    assert len(counts) > before
    assert counts == list(range(1, len(counts) + 1))


FORGETFUL = """
import sys
import ray
import rayelastic as rel

ray.init(address=sys.argv[1], log_to_driver=False)
topology = rel.Topology("forgotten")
topology.source(rel.sequence(10), name="numbers").sink(rel.count(), name="out")
job = rel.submit(topology)
while not job.status.state.is_final:
    job.pause(1.0)
"""


def test_the_coordinator_of_a_job_that_nobody_waits_for_ends_and_takes_its_keys_along(ray_cluster: None) -> None:
    def impatient(shell: Any) -> None:
        shell._keeper._linger = 0.0  # seconds; ten minutes by default

    before = set(adapter.kv_keys("", NAMESPACE))
    address = ray.get_runtime_context().gcs_address
    subprocess.run([sys.executable, "-c", FORGETFUL, address], check=True, timeout=2 * PATIENCE)
    assert rel.attach("forgotten").status.state is State.FINISHED  # for as long as somebody may ask
    keys = set(adapter.kv_keys("", NAMESPACE)) - before
    assert {key.partition(":")[0] for key in keys} == {"job", "journal"}
    actor = ray.get_actor(f"{PREFIX}forgotten", namespace=NAMESPACE)
    ray.get(actor.__ray_call__.remote(impatient))
    with pytest.raises(ray.exceptions.RayActorError):  # the end of its process is the only answer
        ray.get(actor.__ray_call__.remote(lambda _: threading.Event().wait()), timeout=PATIENCE)
    assert not keys & set(adapter.kv_keys("", NAMESPACE))
    with raises(JobNotFoundError, "unknown-job", "forgotten"):
        rel.attach("forgotten")
