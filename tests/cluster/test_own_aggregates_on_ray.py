"""Own aggregates, aggregates in two steps, JSON sinks, objects of scripts on Ray: behind kills, and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ray

import rayelastic as rel
from rayelastic.runtime.values.status import State
from tests.cluster import script_values
from tests.cluster.own_aggregates import KEY, PES, declared, expected, left

pytestmark = pytest.mark.cluster

PATIENCE = 120.0
ROOT = Path(__file__).resolve().parents[2]


def pause(job: rel.Job, until: float) -> None:
    assert time.monotonic() < until
    assert not job.status.state.is_final, job.status
    job.pause(0.02)


def await_checkpoint(job: rel.Job) -> None:
    until, before = time.monotonic() + PATIENCE, job.status.checkpoints.taken
    while job.status.checkpoints.taken == before:
        pause(job, until)


def kill(job: rel.Job, pe: str) -> None:
    until, before = time.monotonic() + PATIENCE, job.status.checkpoints.restarts
    os.kill(next(one.pid for one in job.status.pes if one.pe == pe), signal.SIGKILL)
    while job.status.checkpoints.restarts == before or job.status.state is not State.RUNNING:
        pause(job, until)


def test_they_are_the_same_behind_kills(ray_cluster: str, tmp_path: Path) -> None:
    config = rel.JobConfig(pes=PES, checkpoint=rel.Checkpoint(every=0.3, restarts=20))
    job = rel.submit(declared("own", tmp_path), config, address=ray_cluster)
    try:
        for pe in ("pe1", "pe2"):  # the aggregates, the sinks
            await_checkpoint(job)
            kill(job, pe)
        (tmp_path / "go").touch()
        result = job.wait(PATIENCE)
    finally:
        (tmp_path / "go").touch()
        job.close()
    assert left(tmp_path, result) == expected()


def test_a_process_that_compiles_nothing_goes_on_from_a_snapshot(ray_cluster: str, tmp_path: Path) -> None:
    job = rel.submit(declared("again", tmp_path), rel.JobConfig(pes=PES), address=ray_cluster)
    try:
        until = time.monotonic() + PATIENCE
        while job.metrics().operator("windows").tuples_out == 0:
            pause(job, until)
        job.stop(rel.Snapshot(tmp_path / "stopped", key=KEY))
    finally:
        (tmp_path / "go").touch()
        job.close()
    address = ray.get_runtime_context().gcs_address
    program = f"from tests.cluster.own_aggregates import go_on; go_on({str(tmp_path)!r}, {address!r})"
    again = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert again.returncode == 0, again.stderr[-3000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert not told["compiled"]
    assert told["left"] == expected()


def test_objects_of_a_script_s_own_classes_survive_a_kill(ray_cluster: str, tmp_path: Path) -> None:
    address = ray.get_runtime_context().gcs_address
    script = subprocess.run(
        [sys.executable, str(ROOT / "tests/cluster/script_values.py"), address, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert script.returncode == 0, script.stderr[-3000:]
    found = [tuple(row) for row in json.loads((tmp_path / "out.json").read_text())]
    sums: dict[int, list[int]] = {key: [] for key in range(script_values.KEYS)}
    for n in range(script_values.ROWS):
        sums[n % script_values.KEYS].append(n)
    expected = [
        (key, n - script_values.KEYS if number else -1, sum(given[: number + 1]))
        for key, given in sums.items()
        for number, n in enumerate(given)
    ]
    assert sorted(found) == sorted(expected)
