"""Eight minutes on Ray with a kill a minute and replicas that come and go (R9): rows once, and nothing grows.

What is looked at before each kill: memory, open files and threads of the job's processes, its journal in Ray, and its
checkpoints on the disk. Each element keeps its last 10,000 passes, some 1.6 kB each and one a second: that's no growth.
How long it soaks doesn't change what may be there at the end.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import ray
from pyarrow import parquet

import rayelastic as rel
from rayelastic.errors import RayelasticError
from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.private import adapter
from rayelastic.runtime.values.status import State
from tests.cluster.random_kills import status_of

pytestmark = [pytest.mark.alone, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1200)]

MINUTES = 8
KILL_EVERY, CHANGE_EVERY = 60.0, 5.0  # seconds
COORDINATORS = 4  # one kill in so many is of the coordinator: its element is twice as old when it is looked at next
ROWS = 700_000  # a thousand a second at most, until all kills are done
PACE, BURST = 0.1, 100  # seconds between so many rows
KEYS = 997
WARM = 2  # looks until all has its size: processes have recovered once
GROWTH = 1.05  # of memory, at most (R8); of others, which are counted, there may be a few more
MORE = {"files": 20, "threads": 10, "journal": 20_000, "saved": 2_000_000}
PATIENCE = 300.0


class Row(NamedTuple):
    key: int
    n: int
    seen: int


class Look(NamedTuple):
    """What a job takes.

    Args:
        coordinator: bytes of memory of its process.
        elements: the most that one of the elements has.
        files: open ones, of the process that has most.
        threads: the same.
        journal: bytes in Ray's store.
        saved: bytes of checkpoints on the disk.
    """

    coordinator: int
    elements: int
    files: int
    threads: int
    journal: int
    saved: int


def topology(folder: Path) -> rel.Topology:
    """Counts by key in Python values and in an aggregate, row by row; slowly until there is a file `go`."""
    go = folder / "go"

    def count(t: Any, s: dict[str, int]) -> Row:
        if t.value % BURST == 0 and not go.exists():
            threading.Event().wait(PACE)
        s["seen"] += 1
        return Row(t.value % KEYS, t.value, s["seen"])

    made = rel.Topology("soak")
    numbers = made.source(rel.sequence(ROWS), name="numbers").map(
        lambda t: (t.value, t.value % KEYS), name="keyed", schema={"value": int, "key": int}
    )
    seen = numbers.key_by("key").map(count, name="seen", state=lambda: {"seen": 0}, schema=Row, lane="python")
    counts = seen.key_by("key").aggregate(
        name="counts", emit="update", n=rel.last("n"), seen=rel.last("seen"), all=rel.count()
    )
    counts.sink(rel.parquet(str(folder / "out")), name="out")
    return made


def look(job: rel.Job, saved: Path, keys: set[str]) -> Look:
    """As it is with one replica of all."""
    rescaled(job, 1)
    coordinator = psutil.Process(coordinator_of(job))
    elements = [psutil.Process(one.pid) for one in status_of(job).pes if one.pid and not one.state.is_final]
    journal = [adapter.kv_get(key, NAMESPACE) for key in adapter.kv_keys("", NAMESPACE) if key not in keys]
    return Look(
        coordinator.memory_info().rss,
        max(one.memory_info().rss for one in elements),
        max(one.num_fds() for one in [coordinator, *elements]),
        max(one.num_threads() for one in [coordinator, *elements]),
        sum(len(value or b"") for value in journal),
        sum(file.stat().st_size for file in saved.rglob("*") if file.is_file()),
    )


def soaked(job: rel.Job, seconds: float, saved: Path, keys: set[str], dice: random.Random) -> list[Look]:
    """Changes replicas and kills for so long; what the job took before each kill, and when all was over."""
    looks, until, number = [], time.monotonic() + seconds, 0
    while time.monotonic() < until:
        kill_at = time.monotonic() + KILL_EVERY
        while time.monotonic() < kill_at:
            job.pause(CHANGE_EVERY)
            rescaled(job, dice.randint(1, 3))
        looks.append(look(job, saved, keys))
        number += 1
        if number % COORDINATORS == WARM:  # so that there is such an element in each half of the looks
            kill_the_coordinator(job)
        else:
            kill_an_element(job, dice)
    return looks


def kill_an_element(job: rel.Job, dice: random.Random) -> None:
    before, until = status_of(job).checkpoints.restarts, time.monotonic() + PATIENCE
    os.kill(dice.choice([one.pid for one in status_of(job).pes if one.pid and not one.state.is_final]), signal.SIGKILL)
    while (status := status_of(job)).checkpoints.restarts == before or status.state is not State.RUNNING:
        assert not status.state.is_final, status
        assert time.monotonic() < until, status
        job.pause(0.1)


def kill_the_coordinator(job: rel.Job) -> None:
    before = coordinator_of(job)
    os.kill(before, signal.SIGKILL)
    assert coordinator_of(job) != before
    assert not status_of(job).state.is_final


def coordinator_of(job: rel.Job) -> int:
    """Its process, as soon as there is one that answers."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return int(ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid())))  # type: ignore[attr-defined]
        except ray.exceptions.ActorUnavailableError:  # it was killed just now
            assert time.monotonic() < until
            job.pause(0.1)


def rescaled(job: rel.Job, replicas: int) -> None:
    with contextlib.suppress(RayelasticError, TimeoutError):  # somebody dies meanwhile
        job.rescale(job.plan().region_of("counts").region.name, replicas)


@pytest.fixture(scope="module")
def memory_of_the_system() -> Iterator[None]:
    """Arrow's own allocator keeps up to 4 MiB for each thread that ever wrote a file: 60 to 100 MB, by which did."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
        yield


@pytest.mark.usefixtures("memory_of_the_system", "no_ray")
def test_a_soak_with_a_kill_a_minute_keeps_rows_and_grows_nothing(ray_cluster: None, tmp_path: Path) -> None:
    saved, keys = tmp_path / "saved", set(adapter.kv_keys("", NAMESPACE))
    config = rel.JobConfig(regions="manual", checkpoint=rel.Checkpoint(saved, every=1.0, restarts=1000))
    job = rel.submit(topology(tmp_path), config)
    looks = soaked(job, MINUTES * 60.0, saved, keys, random.Random(0))
    (tmp_path / "go").touch()
    job.wait(PATIENCE)
    sys.stdout.write("".join(f"{one}\n" for one in looks))
    table = parquet.read_table(tmp_path / "out").to_pydict()
    rows = sorted(zip(table["n"], table["seen"], table["all"], strict=True))
    assert rows == [(n, n // KEYS + 1, n // KEYS + 1) for n in range(ROWS)]
    warm, last = looks[WARM : len(looks) // 2], looks[len(looks) // 2 :]
    for name in ("coordinator", "elements"):
        assert max(getattr(one, name) for one in last) <= GROWTH * max(getattr(one, name) for one in warm), looks
    for name, more in MORE.items():
        assert max(getattr(one, name) for one in last) <= more + max(getattr(one, name) for one in warm), looks
