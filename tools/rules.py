"""House rules that no general linter knows, checked over the files that git tracks: `python -m tools.rules`.

Each rule is a function from a path and its text to findings `(line, message)`.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

Finding = tuple[int, str]
Rule = Callable[[Path, str], Iterator[Finding]]

# Modules that read bytes from the data port, and so must never unpickle or evaluate (rule D5 of the data port).
WIRE = re.compile(r"rayelastic/(runtime/(port|ingest)|connectors/pushed)/[a-z_]+\.py$")
DESERIALISERS = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
EVALUATORS = {"eval", "exec", "compile", "__import__"}

MACHINE = re.compile(
    r"(?<![A-Za-z])/(?:root|home/[a-z]+|Users/[A-Za-z]+|work)/|(?:pypi|debian|pythonhosted)[.]org|npmjs"
)
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX)\b|raise NotImplementedError")
SLEEP = re.compile(r"\b(?:time\.|asyncio\.)sleep\(|(?<![\w.])sleep\(|sleep_for\(|\busleep\(")
CODE = {".py", ".pyi", ".h", ".hpp", ".cpp"}
SHIPPED = ("rayelastic/", "native_sched/", "papers/", "topologies/", "bench/")


def nothing_from_the_wire_is_unpickled(path: Path, text: str) -> Iterator[Finding]:
    if not WIRE.search(path.as_posix()):
        return
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if not isinstance(node, (ast.stmt, ast.expr, ast.keyword)):
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in EVALUATORS:
            yield node.lineno, f"{node.func.id}() in code that reads from the data port (D5)"
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            yield node.lineno, "allow_pickle in code that reads from the data port (D5)"
        for name in names:
            if name.split(".")[0] in DESERIALISERS:
                yield node.lineno, f"import of {name} in code that reads from the data port (D5)"


def no_machine_in_the_tree(path: Path, text: str) -> Iterator[Finding]:
    if path.as_posix() == "tools/rules.py":
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if found := MACHINE.search(line):
            yield number, f"a path of one machine or a registry's host: {found.group()}"


def nothing_unfinished(path: Path, text: str) -> Iterator[Finding]:
    if path.suffix in CODE and path.as_posix().startswith(SHIPPED):
        for number, line in enumerate(text.splitlines(), start=1):
            if found := UNFINISHED.search(line):
                yield number, f"unfinished: {found.group()}"


def tests_wait_for_events(path: Path, text: str) -> Iterator[Finding]:
    inside = path.as_posix().startswith(("tests/", "native_sched/tests/"))
    if inside and path.suffix in CODE and path.name != "conftest.py":
        for number, line in enumerate(text.splitlines(), start=1):
            if SLEEP.search(line):
                yield number, "a sleep in a test; wait on an event or a counter"


def notebooks_have_no_outputs(path: Path, text: str) -> Iterator[Finding]:
    if path.suffix != ".ipynb":
        return
    for number, cell in enumerate(json.loads(text)["cells"], start=1):
        if cell.get("outputs") or cell.get("execution_count") is not None:
            yield 1, f"cell {number} has outputs: clear them before a commit"


RULES: tuple[Rule, ...] = (
    nothing_from_the_wire_is_unpickled,
    no_machine_in_the_tree,
    nothing_unfinished,
    tests_wait_for_events,
    notebooks_have_no_outputs,
)


def main() -> int:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    files = {path: path.read_text(errors="replace") for name in listed if (path := Path(name)).is_file()}
    count = 0
    for rule in RULES:
        for path, text in files.items():
            for number, message in rule(path, text):
                print(f"{path}:{number}: {message}")
                count += 1
    print(f"{len(files)} files, {len(RULES)} rules, {count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
