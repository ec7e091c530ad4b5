"""A job on Ray whose processes are killed: it goes back to its last checkpoint, and each row counts once."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from pyarrow import parquet

import rayelastic as rel
from rayelastic.errors import JobFailedError
from rayelastic.runtime.values.status import State
from tests.raising import raises
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

PATIENCE = 120.0
ROWS, KEYS = 30_000, 97
PES = {"numbers": 0, "counts": 1, "out": 2}
OFTEN = rel.Checkpoint(every=0.5, restarts=100)


def counted(
    name: str, folder: Path, sink: Any = None, rows: int = ROWS, pace: tuple[int, float] = (100, 0.005)
) -> rel.Topology:
    """Counts by key; a row for each, so that an outsider can tell which are missing or double.

    They go into a folder of Parquet files and a list, or into a sink that is given. After so many rows each it pauses
    for so many seconds.

    The last rows come once there is a file `go`: so no job is over before it has lost what it is to lose.
    """
    go = folder / "go"

    def numbers() -> Iterator[tuple[int, int]]:
        nobody = threading.Event()
        for n in range(rows):
            if n % pace[0] == 0 and not go.exists():
                nobody.wait(pace[1])
            while n == rows - 1000 and not go.exists():
                nobody.wait(0.02)
            yield n % KEYS, n

    topology = rel.Topology(name)
    keyed = topology.source(rel.callable(numbers, schema={"key": int, "n": int}), name="numbers").key_by("key")
    counts = keyed.aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count())
    counts.sink(rel.parquet(str(folder / "out")) if sink is None else sink, name="out")
    if sink is None:
        counts.sink(rel.list(), name="also")
    return topology


def check(job: rel.Job, folder: Path, rows: int = ROWS) -> None:
    """As an outsider: every row once, each with the count that it had to have."""
    (folder / "go").touch()
    result = job.wait(PATIENCE)
    table = parquet.read_table(folder / "out").to_pydict()
    left = sorted(zip(table["n"], table["all"], strict=True))
    assert left == [(n, n // KEYS + 1) for n in range(rows)]
    assert sorted((t.n, t.all) for t in result["also"]) == left


def wait_for_checkpoint(job: rel.Job) -> None:
    before = job.status.checkpoints.taken
    wait_until(job, lambda: job.status.checkpoints.taken > before)


def kill(job: rel.Job, pe: str) -> None:
    before = job.status.checkpoints.restarts
    os.kill(next(one.pid for one in job.status.pes if one.pe == pe), signal.SIGKILL)
    wait_until(job, lambda: job.status.checkpoints.restarts > before and job.status.state is State.RUNNING)


def test_each_element_is_killed_once(ray_cluster: None, tmp_path: Path) -> None:
    job = rel.submit(counted("killed", tmp_path), rel.JobConfig(pes=PES, checkpoint=OFTEN))
    for pe in ("pe0", "pe1", "pe2"):
        wait_for_checkpoint(job)
        kill(job, pe)
        assert elements_in_processes(job) == [1, 1, 1], "those that were there before are gone, with all that they held"
    check(job, tmp_path)


def elements_in_processes(job: rel.Job) -> list[int]:
    """How many there are in each process that hosts one; some of these have hosted others."""

    def there(_: Any) -> int:
        return sum(type(one).__name__ == "ProcessingElement" for one in gc.get_objects())

    def of_all(shell: Any) -> list[int]:
        actors = [handle.actor for handle in shell._coordinator._cluster.handles.values()]
        return [int(found) for found in ray.get([actor.__ray_call__.remote(there) for actor in actors])]

    found: list[int] = ray.get(job._control._actor.__ray_call__.remote(of_all))  # type: ignore[attr-defined]
    return found


@pytest.mark.guarantee(
    source="a seekable Python source",
    sink="Parquet, `rel.list`",
    lost="the coordinator and a process at once",
    rows="each once",
)
def test_a_coordinator_and_an_element_die_at_once(ray_cluster: None, tmp_path: Path) -> None:
    job = rel.submit(counted("headless", tmp_path), rel.JobConfig(pes=PES, checkpoint=OFTEN))
    wait_for_checkpoint(job)
    coordinator = ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid()))  # type: ignore[attr-defined]
    victim = next(one.pid for one in job.status.pes if one.pe == "pe1")
    os.kill(coordinator, signal.SIGKILL)
    os.kill(victim, signal.SIGKILL)
    wait_until(job, lambda: job.status.checkpoints.restarts == 1 and job.status.state is State.RUNNING)
    check(job, tmp_path)


def test_a_replica_is_killed_by_default_settings(ray_cluster: None, tmp_path: Path) -> None:
    job = rel.submit(counted("replicas", tmp_path), rel.JobConfig(regions="manual"))
    plan = job.rescale(job.plan().region_of("counts").region.name, 3)
    kill(job, plan.region_of("counts").pipelines[0].pes[2])
    check(job, tmp_path)


def test_what_waits_and_what_a_class_keeps_is_in_the_checkpoint(ray_cluster: None, tmp_path: Path) -> None:
    """Of a job with default settings: its class counts on, and no tuple of its delay and its switch is lost."""
    go = tmp_path / "go"

    def numbers() -> Iterator[tuple[int]]:
        nobody = threading.Event()
        for n in range(2000):
            while n == 1500 and not go.exists():
                nobody.wait(0.02)
            yield (n,)

    @rel.operator(outputs={"out": {"n": int, "number": int}})
    class Numbered:
        def initialize(self) -> None:
            self.lock, self.seen = threading.Lock(), 0

        def invoke(self, t: Any) -> Iterator[tuple[int, int]]:
            with self.lock:
                self.seen += 1
            yield t.n, self.seen

    topology = rel.Topology("keeps")
    numbered = topology.source(rel.callable(numbers, schema={"n": int}), name="numbers").apply(
        Numbered(), name="numbered"
    )
    last = numbered.filter(lambda t: t.n == 1999, name="last")
    numbered.delay(0.2, name="late").switch(last, lambda t: True, name="open", start=False).sink(rel.list(), name="out")
    job = rel.submit(topology, rel.JobConfig(pes={"numbers": 0, "numbered": 1}))
    wait_for_checkpoint(job)
    kill(job, "pe1")
    go.touch()
    assert sorted((t.n, t.number) for t in job.wait(PATIENCE)["out"]) == [(n, n + 1) for n in range(2000)]


def test_what_the_source_counted_in_part_is_in_the_checkpoint(ray_cluster: None) -> None:
    """An aggregate at the end has two threads: those that take from its queue, and the one that finds it full."""
    many = 200_000_000
    topology = rel.Topology("parts")
    numbers = topology.source(rel.sequence(many), name="numbers")
    keyed = numbers.map(lambda t: (t.value % KEYS,), name="key", schema={"key": int}).key_by("key")
    keyed.aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    job = rel.submit(
        topology, rel.JobConfig(threads=rel.Threads(model={"counts": "dynamic"}), checkpoint=rel.Checkpoint(every=0.5))
    )
    wait_for_checkpoint(job)
    kill(job, "pe0")
    assert {t.key: t.n for t in job.wait(PATIENCE)["out"]} == {key: len(range(key, many, KEYS)) for key in range(KEYS)}


@pytest.mark.guarantee(
    source="any",
    sink="any",
    lost="the process, at the same tuple each time",
    rows="the job fails and names the operator",
)
def test_a_tuple_that_crashes_its_process_each_time_fails_the_job(ray_cluster: None, tmp_path: Path) -> None:
    def crash(t: Any) -> int:
        if t.value == 500:  # as native code that crashes, once the job has started
            threading.Event().wait(2.0)
            os._exit(3)
        return int(t.value)

    topology = rel.Topology("poison")
    topology.source(rel.sequence(1000), name="numbers").map(crash, name="crash", schema={"n": int}, lane="python").sink(
        rel.parquet(str(tmp_path / "out")), name="out"
    )
    with raises(JobFailedError, "pe-lost", "has gone back 2 times"):
        rel.submit(topology, rel.JobConfig(checkpoint=rel.Checkpoint(restarts=6))).wait(PATIENCE)


def test_a_sink_far_slower_than_its_source_has_checkpoints_within_five_seconds(ray_cluster: None) -> None:
    def slow(_: Any) -> None:
        threading.Event().wait(0.004)

    topology = rel.Topology("slow")
    topology.source(rel.sequence(1 << 40), name="numbers").sink(rel.call(slow), name="out")
    pins = {"numbers": 0, "out": 1}
    job = rel.submit(topology, rel.JobConfig(pes=pins, checkpoint=rel.Checkpoint(every=1.0)))
    try:
        for _ in range(2):
            wait_for_checkpoint(job)
            assert job.status.checkpoints.seconds < 5.0
        assert job.status.checkpoints.abandoned == 0
    finally:
        job.close()
