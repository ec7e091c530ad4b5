"""A mutant is killed by the test that notices it and survives without one; a map stays valid when lines move."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = """def largest(a, b):
    return a if a > b else b


def untested(a, b):
    return a is b
"""
TEST = """from bench.tiny import largest


def test_largest():
    assert largest(1, 2) == 2
"""
PROGRAM = """
from pathlib import Path
from tools.covered import Covered, measure
from tools.mutate import mutants, outcome

root, place = Path.cwd(), Path("bench/tiny.py")
print(measure(root, root / "covered", ["tests"], "bench"))
covered = Covered(root, root / "covered")
every = mutants(root, root / "bench")
for mutant in every[1:3]:
    print(mutant.after, outcome(root, mutant, covered).value, sep=": ")
(root / "tests/unit/test_tiny.py").write_text("def test_largest():\\n    assert not 1\\n")
print(outcome(root, every[1], covered).value)
print(covered.tests_of_line(place, 2), covered.tests_of_line(place, 6))
place.write_text("# one line more\\n" + place.read_text().replace("a is b", "b is a"))
print(covered.tests_of_line(place, 3), covered.tests_of_line(place, 7))
place.write_text(place.read_text().replace("b is a", "a is b").replace("if a > b", "if a >= b")[16:])
print([test.partition("::")[2] for test in covered.tests_of_change(place)])
"""
EXPECTED = """\
a < b: killed
a is not b: survived
tests/unit/test_tiny.py::test_largest is left out, as it fails without a mutant
survived
['tests/unit/test_tiny.py::test_largest'] []
['tests/unit/test_tiny.py::test_largest'] []
['test_largest']
"""


def test_mutants_of_a_tiny_module(tmp_path: Path) -> None:
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__init__.py").touch()
    (tmp_path / "bench" / "tiny.py").write_text(SOURCE)
    (tmp_path / "tests" / "unit" / "test_tiny.py").write_text(TEST)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.partition("\n0\n")[2] == EXPECTED, done.stdout + done.stderr
