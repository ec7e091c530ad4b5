"""Which Ray a program without an address joins is told: somebody else's would take its jobs without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import ray

JOINS = """
import sys
from rayelastic.on_ray.connect import ensure_ray
ensure_ray(*sys.argv[1:])
import ray
print(ray.get_runtime_context().gcs_address)
"""


@pytest.mark.parametrize("named", [False, True])
def test_a_running_ray_that_nobody_named_is_named(ray_cluster: str, tmp_path: Path, named: bool) -> None:
    address = ray.get_runtime_context().gcs_address
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text(address)  # where `ray start` notes what it has started
    variables = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = subprocess.run(
        [sys.executable, "-c", JOINS, *([address] if named else [])],
        env=variables | {"RAY_TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == address
    told = f"joined the Ray at {address}, which runs on this machine; address='local' starts a new one"
    assert (told in done.stderr) is not named
