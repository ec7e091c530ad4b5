"""A mutant is killed by the test that notices it, survives where there is none, and no file changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "def largest(a, b):\n    return a if a > b else b\n\n\ndef untested(a, b):\n    return a is b\n"
TEST = "from tests.tiny import largest\n\n\ndef test_largest():\n    assert largest(1, 2) == 2\n"
PROGRAM = """
import ast, os, sys
from pathlib import Path
from tools.mutants import changes
from tools.mutate import Mutant, Mutation

root, place = Path.cwd(), Path("tests/tiny.py")
(root / "made").mkdir()
mutation = Mutation(root, root / "made")
assert mutation.baseline([Path("tests/unit/test_tiny.py")]) == ""
for number, one in enumerate(changes(ast.parse((root / place).read_text()))):
    mutant = Mutant(place, number, one.line, one.function, one.before, one.after)
    print(one.after, mutation.outcome(mutant).value, sep=": ")
(root / "tests/unit/test_tiny.py").write_text("def test_fails():\\n    assert not 1\\n")
print("1 failed" in mutation.baseline([Path("tests/unit/test_tiny.py")]))
"""


def test_mutants_of_a_tiny_module(tmp_path: Path) -> None:
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "tests" / "tiny.py").write_text(SOURCE)
    (tmp_path / "tests" / "unit" / "test_tiny.py").write_text(TEST)
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "a >= b: survived",
        "a < b: killed",
        "a is not b: survived",
        "True",
    ], done.stderr
    assert (tmp_path / "tests" / "tiny.py").read_text() == SOURCE
