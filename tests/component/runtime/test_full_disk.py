"""A disk that checkpoints are written to gets full: they are given up and counted, and the job goes on."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic import testing
from tests.component.checkpoint.test_checkpoints import Losing
from tests.component.runtime.dying_coordinator import PATIENCE, ROWS, Row

SIZE = 256 << 10  # bytes of the disk: enough for some checkpoints of this job


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    at = tmp_path / "disk"
    at.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(at)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    yield at
    subprocess.run(["umount", "--lazy", str(at)], check=True)


def fill(file: Path) -> None:
    """Writes until the disk is full."""
    with file.open("wb", buffering=0) as written, contextlib.suppress(OSError):
        while True:
            written.write(bytes(4096))


def test_a_full_disk_costs_checkpoints_and_nothing_else(disk: Path) -> None:
    gates = [testing.Gate() for _ in range(3)]
    script = [*ROWS[:100], gates[0], *ROWS[100:300], gates[1], *ROWS[300:500], gates[2], *ROWS[500:]]
    topology = rel.Topology("full")
    keyed = topology.source(testing.script(script, Row), name="rows").key_by("key")
    keyed.aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count()).sink(rel.list(), name="out")
    made = Losing(topology, rel.JobConfig(checkpoint=rel.Checkpoint(disk / "saved", every=600.0)))
    rest = disk / "rest"
    try:
        assert gates[0].wait_reached(PATIENCE)
        made.take()
        assert made.job.status.checkpoints.last == 1
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        fill(rest)
        made.take()
        counted = made.job.status.checkpoints
        assert (counted.last, counted.abandoned) == (1, 1)
        assert "No space left" in counted.problem
        made.lose(gates[1])  # back to the one before
        assert gates[2].wait_reached(PATIENCE)
        rest.unlink()
        made.take()
        counted = made.job.status.checkpoints
        assert (counted.problem, counted.abandoned) == ("", 1)
        made.lose(gates[2])
        out = made.job.wait(PATIENCE)["out"]
    finally:
        for gate in gates:
            gate.open()
        made.job.close()
    assert [(row.n, row.all) for row in out] == [(n, n // 7 + 1) for n in range(len(ROWS))]
