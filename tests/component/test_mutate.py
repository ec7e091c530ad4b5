"""A mutant is killed by the test that notices it, survives where there is none, and no file changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """def largest(a, b):
    return a if a > b else b


def untested(a, b):
    return a is b


def most():
    return 1


MOST = most()
"""
TEST = """from bench.tiny import MOST, largest, most


def test_largest():
    assert largest(1, 2) == 2


def test_most():
    assert MOST == 1
    assert most()
"""
PROGRAM = """
import ast
from pathlib import Path
from tools import mutate
from tools.covered import Covered
from tools.mutants import changes
from tools.mutate import Mutant, Mutation, warm_up

root, place = Path.cwd(), Path("bench/tiny.py")
(root / "made").mkdir()
warm_up([])
found = [
    Mutant(place, number, one.line, one.function, one.before, one.after)
    for number, one in enumerate(changes(ast.parse((root / place).read_text())))
]
covered = Covered(root, root / "covered")
for mutation in (Mutation(root, root / "made"), Mutation(root, root / "made", covered=covered)):
    for mutant in found:
        print(mutant.after, mutation.outcome(mutant).value, sep=": ")
print(covered.tests(place, 2), covered.tests(place, 6))
apart = mutate.run
mutate.run = lambda *_, **__: print("apart") or mutate.Outcome.STUCK
mutation.collect(found)
for mutant in found:
    print(mutant.after, mutation.outcome(mutant).value, sep=": ")
mutation.close()
mutate.run = apart
(root / "tests/unit/test_tiny.py").write_text("def test_fails():\\n    assert not 1\\n")
print(mutation.outcome(found[2]).value)
"""
EACH = """\
a >= b: survived
a < b: killed
a is not b: survived
2: killed
"""
EXPECTED = f"""\
{EACH}{EACH}['tests/unit/test_tiny.py::test_largest'] []
a >= b: survived
a < b: killed
a is not b: survived
apart
2: stuck
tests/unit/test_tiny.py is left out, as it fails without a mutant
survived
"""
COVERAGE = """
import json
from pathlib import Path
from tools.covered import find_out

print(find_out(Path.cwd(), Path.cwd() / "covered", ["tests"], ["bench"]))
"""


def test_mutants_of_a_tiny_module(tmp_path: Path) -> None:
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__init__.py").touch()
    (tmp_path / "bench" / "tiny.py").write_text(SOURCE)
    (tmp_path / "tests" / "unit" / "test_tiny.py").write_text(TEST)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}

    def said(program: str) -> str:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stdout or done.stderr

    assert said(COVERAGE).splitlines()[-1] == "0"
    assert said(PROGRAM) == EXPECTED
    assert (tmp_path / "bench" / "tiny.py").read_text() == SOURCE
