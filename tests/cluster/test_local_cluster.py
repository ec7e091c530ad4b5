"""`cluster/local.py`: several raylets on one machine, which end with the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LOCAL = Path(__file__).parents[2] / "cluster" / "local.py"
TIMEOUT = 200.0
pytestmark = pytest.mark.nightly  # starts three raylets

SPREAD = """
import json, sys
import ray
import rayelastic as rel
topology = rel.Topology("spread")
numbers = topology.source(rel.sequence(100_000), name="numbers")
odd = numbers.filter(lambda t: t.value % 2 == 1, name="odd")
odd.sink(rel.count(), name="out")
job = rel.submit(topology, rel.JobConfig(pes={"odd": 1, "out": 2}))
rows = job.wait(timeout=120)["out"]
print(json.dumps({"rows": rows, "nodes": sum(node["Alive"] for node in ray.nodes()), "pes": len(job.status.pes)}))
"""


def local(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(LOCAL), *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def test_a_job_runs_on_three_raylets() -> None:
    done = local("3", "--", sys.executable, "-c", SPREAD)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"rows": 50_000, "nodes": 3, "pes": 3}


def test_the_status_of_the_command_is_given_on() -> None:
    assert local("1", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7


@pytest.mark.parametrize("wrong", [("0",), ("33",), ("two",), ("1", "--cpus", "0")])
def test_wrong_numbers_start_nothing(wrong: tuple[str, ...]) -> None:
    done = local(*wrong)
    assert done.returncode == 2
    assert "usage" in done.stderr
