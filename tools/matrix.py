"""Runs the tests that a dependency can break with other releases of it: `./dev matrix`; prints a table.

A cell is a folder of releases that precede those of `.venv` on Python's path, for the tests and their processes. So a
cell contains only its own releases, and all others are as locked. Nightly.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tools.environment import PIP_OPTIONS, PYTHON, ROOT, SetupError, say

FOLDER = ROOT / "build" / "matrix"
TIMEOUT = 900  # seconds for the tests of a cell
NATIVE = (
    "tests/component/runtime/test_run.py",
    "tests/component/connectors/test_ingest.py",
    "tests/component/state/test_schema_layout.py",
)
RAY = ("tests/cluster/test_ray_private.py", "tests/cluster/test_actors.py", "tests/cluster/test_submit.py")
COMPILED = ("tests/component/compile", "tests/component/runtime/test_run.py")


@dataclass(frozen=True, slots=True)
class Cell:
    """Some releases and the tests that have to pass with them.

    Args:
        releases: as pip takes them; with all that they need differently.
        tests: files and folders.
        nightly: whether the tests are nightly ones, instead of the gate's.
    """

    releases: tuple[str, ...]
    tests: tuple[str, ...]
    nightly: bool = False


CELLS = {
    "as locked": Cell((), (*NATIVE, *RAY)),
    "ray 2.59": Cell(("ray==2.59.0",), RAY),
    "ray 2.58": Cell(("ray==2.58.1",), RAY),
    "pyarrow 18": Cell(("pyarrow==18.1.0",), NATIVE),
    "pyarrow 22": Cell(("pyarrow==22.0.0",), NATIVE),
    "numba 0.65": Cell(("numba==0.65.1", "llvmlite==0.47.0", "numpy==2.3.5"), COMPILED),
    "numpy 2.0": Cell(("numba==0.65.1", "llvmlite==0.47.0", "numpy==2.0.2"), COMPILED),
    "spark 4": Cell(("pyspark==4.0.1", "py4j==0.10.9.9"), ("tests/cluster/test_spark_alone.py",), nightly=True),
}


def installed(name: str, cell: Cell) -> str:
    """Install the releases of a cell, unless they are there, and return what goes in front of Python's path."""
    if not cell.releases:
        return ""
    folder = FOLDER / name.replace(" ", "-")
    stamp = folder / ".releases"
    if not stamp.exists() or stamp.read_text() != "\n".join(cell.releases):
        shutil.rmtree(folder, ignore_errors=True)
        install = [str(PYTHON), "-m", "pip", "install", "-q", *PIP_OPTIONS, "--no-deps", "--target", str(folder)]
        done = subprocess.run([*install, *cell.releases], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SetupError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
        stamp.write_text("\n".join(cell.releases))
    return str(folder)


def outcome(name: str, cell: Cell) -> tuple[bool, str]:
    """Run the tests of a cell: whether all passed, and what pytest said last."""
    try:
        front = installed(name, cell)
    except SetupError as error:
        return False, str(error)
    path = os.pathsep.join(part for part in (front, os.environ.get("PYTHONPATH", "")) if part)
    command = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", *cell.tests]
    command += ["-m", "nightly"] if cell.nightly else []
    log = FOLDER / f"{name.replace(' ', '-')}.log"
    with log.open("w") as output:
        try:
            status = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": path, "RAY_AUTH_MODE": "token"},  # the newest Ray's default
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return False, f"no end after {TIMEOUT} s; see {log}"
    said = re.findall(r"(?:\d+ (?:passed|failed|skipped|errors?|deselected)(?:, )?)+", log.read_text())
    return status == 0, said[-1] if said else f"no test ran; see {log}"


def main(arguments: Sequence[str]) -> int:
    """Run some cells, or all of them."""
    parser = argparse.ArgumentParser(prog="./dev matrix", description="Tests with other releases of what we need.")
    parser.add_argument("cells", nargs="*", metavar="CELL", help=f"of {', '.join(map(repr, CELLS))}; default: all")
    chosen = parser.parse_args(arguments).cells or list(CELLS)
    if unknown := set(chosen) - set(CELLS):
        parser.error(f"no cell {', '.join(sorted(unknown))}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = []
    for name in chosen:
        started = time.monotonic()
        good, said = outcome(name, CELLS[name])
        results.append(good)
        releases = ", ".join(CELLS[name].releases) or "requirements.lock"
        say(f"{name:12} {'passed' if good else 'FAILED':7} {time.monotonic() - started:5.0f} s  {said:34} {releases}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
