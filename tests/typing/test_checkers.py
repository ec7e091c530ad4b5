"""mypy and pyright over programs as users write them: they find the marked errors, and no others; in examples none.

A line that a checker has to reject ends with `# mypy: CODE; pyright: RULE, RULE`; types are pinned by `assert_type`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SNIPPETS = Path(__file__).with_name("snippets")
FILES = sorted(SNIPPETS.glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
MARK = re.compile(r"# mypy: (?P<mypy>[a-z, -]+); pyright: (?P<pyright>[A-Za-z, ]+)$")
FOLLOWING = "reportUnknown"  # rules that pyright also names where another error made a type unknown

Errors = dict[str, set[str]]


def marked(checker: str) -> Errors:
    """The codes that a checker has to report, by line."""
    found: Errors = {}
    for file in FILES:
        for number, line in enumerate(file.read_text().splitlines(), 1):
            mark = MARK.search(line)
            if mark:
                found[f"{file.name}:{number}"] = set(mark[checker].split(", "))
    return found


def differences(expected: Mapping[str, set[str]], found: Mapping[str, set[str]]) -> str:
    """What was expected and what was reported, by line, where they differ."""
    places = sorted({*expected, *found})
    both = ((place, sorted(expected.get(place, ())), sorted(found.get(place, ()))) for place in places)
    return "\n".join(f"{place}: expected {wanted}, reported {got}" for place, wanted, got in both if wanted != got)


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=100)


def test_there_are_sixty_snippets() -> None:
    functions = [
        node for file in FILES for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    names = [node.name for node in functions]
    assert len(names) == len(set(names)) >= 60
    assert len(marked("mypy")) >= 30


def test_mypy_finds_the_marked_errors_and_no_others(tmp_path: Path) -> None:
    done = run(
        sys.executable, "-m", "mypy", f"--cache-dir={tmp_path}", "--no-error-summary", "--hide-error-context",
        "--no-warn-unreachable", *map(str, [*FILES, *EXAMPLES]),
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    found: defaultdict[str, set[str]] = defaultdict(set)
    for line in done.stdout.splitlines():
        error = re.match(r"(?:.*/)?([^/:]+:\d+): error: .*\[([a-z-]+)\]$", line)
        if error:
            found[error[1]].add(error[2])
    wrong = differences(marked("mypy"), found)
    assert not wrong, wrong


def _pyright() -> list[str]:
    """The command, once it has fetched its checker; skips the test where it can't."""
    if shutil.which("node") is None:
        pytest.skip("pyright needs Node.js: there is no node on the PATH")
    command = [sys.executable, "-m", "pyright"]
    asked = run(*command, "--version", PYRIGHT_PYTHON_IGNORE_WARNINGS="1")
    if asked.returncode:
        said = (asked.stderr or asked.stdout).strip().splitlines()
        pytest.skip(f"pyright can't run here: {said[-1] if said else 'no reason'}; ./dev setup installs it")
    return command


def test_pyright_finds_the_marked_errors_and_no_others() -> None:
    command = _pyright()
    project = SNIPPETS.parent / "pyrightconfig.json"
    done = run(*command, "--outputjson", "--pythonpath", sys.executable, "-p", str(project))
    assert done.returncode in (0, 1), done.stderr
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        place = f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}"
        found[place].add(one.get("rule", one["message"]))
    expected = marked("pyright")
    reported = {
        place: {rule for rule in rules if not (place in expected and rule.startswith(FOLLOWING))}
        for place, rules in found.items()
    }
    wrong = differences(expected, reported)
    assert not wrong, wrong
