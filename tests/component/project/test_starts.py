"""Examples of README, guide and topologies started three times in new processes: the same results.

The second and third start take machine code from the cache and never import Numba. The gate starts a few examples,
nightly all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rayelastic import topologies
from tests.component.project.starts import ROOT, TOPOLOGIES, examples

PROGRAM = Path(__file__).parent / "starts.py"
CORE = ["README", "reference/what_is_compiled", "how_to/keep_state", "login_failures"]
# What they give depends on the clock: a source goes on for as long as changes of the plan take, windows say when they
# were.
VARIES = frozenset({"concepts/regions", "how_to/idle_sources"})


def start(names: list[str], folder: Path, number: int) -> dict[str, Any]:
    result = folder / f"start_{number}.json"
    environment = dict(os.environ) | {"XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(result), *names],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1000, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"start {number}: {done.stderr[-3000:]}"
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def check(names: list[str], folder: Path) -> None:
    first, second, third = (start(names, folder, number) for number in (1, 2, 3))
    assert first["compiled"]
    assert (second["compiled"], third["compiled"]) == ("", "")
    differ = [name for name in names if not first["left"][name] == second["left"][name] == third["left"][name]]
    assert not set(differ) - VARIES
    assert any(first["left"].values())


@pytest.mark.timeout(400)  # three starts, one of which compiles, on a slow machine
def test_the_core_gives_the_same_at_each_start(tmp_path: Path) -> None:
    check(CORE, tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_all_give_the_same_at_each_start(tmp_path: Path) -> None:
    check(examples(), tmp_path)


def test_all_applications_are_examples() -> None:
    folder = Path(topologies.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if "def build(" in path.read_text()}
    assert modules - {"load_step"} == set(TOPOLOGIES)  # it has no end: test_demo.py runs it
