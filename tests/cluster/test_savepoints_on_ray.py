"""Savepoints and state of jobs on Ray, from Python and from the shell: with real processes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.cli import main
from tests.waiting import wait_until_received

pytestmark = pytest.mark.cluster

PATIENCE = 120.0
ROWS, KEYS = 200_000, 13


def counted(name: str, go: Path) -> rel.Topology:
    """Counts by key; rows come slowly until there is a file `go`: so the job runs while it is saved."""

    def numbers() -> Iterator[tuple[str, int]]:
        nobody = threading.Event()
        for n in range(ROWS):
            if n % 10 == 0 and not go.exists():
                nobody.wait(0.01)
            yield f"k{n % KEYS}", n

    topology = rel.Topology(name)
    keyed = topology.source(rel.callable(numbers, schema={"key": str, "n": int}), name="numbers").key_by("key")
    keyed.aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count()).sink(rel.list(), name="out")
    return topology


def expected(rows: int) -> list[tuple[int, int]]:
    return [(n, n // KEYS + 1) for n in range(rows)]


def left(result: Any) -> list[tuple[int, int]]:
    return sorted((t.n, t.all) for t in result["out"])


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_job_is_saved_looked_at_stopped_and_gone_on_from(
    ray_cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    go = tmp_path / "go"
    job = rel.submit(counted("saved", go), rel.JobConfig(pes=2, regions="manual"))
    try:
        wait_until_received(job, "out", 10 * KEYS)
        assert job.rescale("r1", 2).region("r1").replicas == 2
        state = job.state("counts")
        before = state.get("k3").all
        assert before > 1
        assert sorted(state.keys()) == sorted(f"k{n}" for n in range(KEYS))
        [shown] = printed(capsys, "state", "saved", "counts", "k3")
        assert shown["key"] == "k3"
        assert shown["value"]["all"] >= before
        assert len(printed(capsys, "state", "saved", "counts", "--limit", "5")) == 5
        assert main(["state", "saved", "counts", "nobody"]) == 2
        assert main(["state", "saved", "numbers"]) == 2
        told = printed(capsys, "snapshot", "saved", str(tmp_path / "live"))
        assert told == {"job": "saved", "location": str(tmp_path / "live")}
        read = rel.read_snapshot(tmp_path / "live")
        assert sum(read["counts"].column("all").to_pylist()) == read.positions["numbers"]  # of one moment
        assert main(["stop", "saved", "--snapshot", str(tmp_path / "stopped")]) == 0
        stopped = left(job.wait(PATIENCE))
        assert stopped == expected(len(stopped))
        assert len(stopped) >= read.positions["numbers"]
    finally:
        job.close()
    go.touch()
    live = rel.submit(counted("live", go), restore=tmp_path / "live")
    try:
        assert left(live.wait(PATIENCE)) == expected(ROWS)  # the rows that the sink had are in a savepoint
    finally:
        live.close()
    topology = tmp_path / "counted.py"
    topology.write_text(
        "import pathlib\nimport rayelastic as rel\nfrom tests.cluster.test_savepoints_on_ray import counted\n\n\n"
        f"def build() -> rel.Topology:\n    return counted('again', pathlib.Path({str(go)!r}))\n\n\n"
        "def report(result):\n    return len(result['out'])\n"
    )
    assert main(["submit", str(topology), "--quiet", "--restore", str(tmp_path / "stopped")]) == 0
    assert main(["submit", str(topology), "--quiet", "--restore", str(tmp_path / "nothing")]) == 2


def test_a_job_goes_on_with_another_secret(
    ray_cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    go = tmp_path / "go"
    job = rel.submit(counted("renewed", go), rel.JobConfig(pes=2, regions="manual"))
    try:
        wait_until_received(job, "out", 10 * KEYS)
        before = job.plan().epoch
        assert main(["renew-secret", "renewed"]) == 0
        assert "job renewed has a new secret" in capsys.readouterr().out
        assert job.plan().epoch > before, "all of its elements are new"
        go.touch()
        assert left(job.wait(PATIENCE)) == expected(ROWS)
        assert job.status.checkpoints.restarts == 0
    finally:
        job.close()
    assert main(["renew-secret", "renewed"]) == 2
