"""How much of each layer the tests run, and which tests run which lines: `python -m tools.covered`, as ./dev coverage.

It runs the tests of one process, except those marked alone or untraced, under coverage.py, which records for each line
the tests that ran it. `./dev mutate` uses the results in build/coverage. For code that Numba compiles, it records the
tests that had it compiled, the first of a process. Code in threads that C++ started or in other processes isn't
covered. Lines of a file that has changed since aren't trusted.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import coverage

from tools.imports import modules

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "coverage"
PACKAGE = "rayelastic"
TESTS = ("tests/unit", "tests/component", "tests/guesses", PACKAGE, "bench/plant")
CHOSEN = "not nightly and not bench and not alone and not untraced"
REPORT = "REL_COVERED_SECONDS"  # a variable: where the plugin writes
DATA, SECONDS, DIGESTS = "data", "seconds.json", "digests.json"  # files in the folder
COMPILED = "compiled-*.json"  # as well, of each process that ran tests


class Covered:
    """What was found the last time.

    Args:
        root: of the source tree.
        folder: where it is kept.
    """

    def __init__(self, root: Path = ROOT, folder: Path = FOLDER) -> None:
        self._root = root
        self.seconds: dict[str, float] = json.loads((folder / SECONDS).read_text())  # of each test that passed
        self._digests: dict[str, str] = json.loads((folder / DIGESTS).read_text())
        self._data = coverage.CoverageData(basename=str(folder / DATA))
        self._data.read()
        self._lines: dict[Path, Mapping[int, Sequence[str]]] = {}

    def is_known(self, path: Path) -> bool:
        """Return whether a file, path from the root, is as it was."""
        return self._digests.get(path.as_posix()) == digest(self._root / path)

    def tests(self, path: Path, line: int) -> list[str]:
        """Who runs a line: else its statement, else its function. The fastest first; nobody if the file has changed."""
        if not self.is_known(path):
            return []
        found = self._contexts(path)
        for span in spans(ast.parse((self._root / path).read_text()), line):
            tests = {context.rpartition("|")[0] for at in span for context in found.get(at, ()) if context}
            if known := tests & self.seconds.keys():
                return sorted(known, key=lambda test: (self.seconds[test], test))
        return []

    def _contexts(self, path: Path) -> Mapping[int, Sequence[str]]:
        if path not in self._lines:
            self._lines[path] = self._data.contexts_by_lineno(str(self._root / path))
        return self._lines[path]


def spans(tree: ast.AST, line: int) -> Iterator[range]:
    """Yield the line itself, its statement up to the body of that, the functions around it, the inner ones first."""
    yield range(line, line + 1)
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and line in lines_of(node)]
    around.sort(key=lambda node: len(lines_of(node)))
    for node in around[:1]:
        body = getattr(node, "body", None)
        inside = lines_of(node)
        yield range(inside.start, body[0].lineno) if body and line < body[0].lineno else inside
    for node in around:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield range(node.body[0].lineno, lines_of(node).stop)


def lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


# --- finding out ----------------------------------------------------------------------------------------------------


class Timed:
    """A plugin of pytest: how long each test takes that passes.

    Args:
        report: where to write it.
    """

    def __init__(self, report: Path) -> None:
        self._report = report
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self, session: Any) -> None:
        if not hasattr(session.config, "workerinput"):
            passed = {test: cost for test, cost in self._seconds.items() if test not in self._failed}
            self._report.write_text(json.dumps(passed))


class Compiled:
    """A plugin of pytest: which functions of ours each test has Numba compile.

    Args:
        report: where to write them, a `*` in its name being the number of the process.
    """

    def __init__(self, report: Path) -> None:
        event: Any = importlib.import_module("numba.core.event")
        self._report = report
        self._listener = event.RecordingListener()
        self._lines: dict[str, list[tuple[str, int, int]]] = {}
        event.register("numba:compile", self._listener)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        codes = {about.data["dispatcher"].py_func.__code__ for _, about in self._listener.buffer}
        ours = [code for code in codes if Path(code.co_filename).is_relative_to(ROOT)]
        lines = {code: [line for _, _, line in code.co_lines() if line] for code in ours}
        self._lines[nodeid] = [(code.co_filename, min(lines[code]), max(lines[code])) for code in ours]
        self._listener.buffer.clear()

    def pytest_sessionfinish(self) -> None:
        self._report.with_name(self._report.name.replace("*", str(os.getpid()))).write_text(json.dumps(self._lines))


def add_compiled(folder: Path) -> None:
    """Add what was compiled to the lines that were run."""
    data = coverage.CoverageData(basename=str(folder / DATA))
    data.read()
    for report in folder.glob(COMPILED):
        for test, functions in json.loads(report.read_text()).items():
            data.set_context(f"{test}|run")
            for path, first, last in functions:
                data.add_lines({path: range(first, last + 1)})
        report.unlink()
    data.write()


def find_out(
    root: Path,
    folder: Path,
    tests: Sequence[str] = TESTS,
    packages: Sequence[str] = (PACKAGE,),
    *,
    append: bool = False,
) -> int:
    """Run tests, and keep which lines of packages they run; pytest's status.

    Args:
        root: of the source tree.
        folder: where it is kept.
        tests: arguments of pytest.
        packages: folders that are measured.
        append: keep what is known of other tests.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seconds, digests = (json.loads((folder / name).read_text()) if append else {} for name in (SECONDS, DIGESTS))
    sources = [path for name in {*packages, "tests"} for path in (root / name).rglob("*.py")]
    now = {path.relative_to(root).as_posix(): digest(path) for path in sources}
    beside = ["-n", str(os.cpu_count() or 2), "--dist=loadfile", "-p", "tools.covered", "-q", "-m", CHOSEN]
    measure = [*(f"--cov={name}" for name in packages), "--cov-context=test", "--cov-report="]
    command = [sys.executable, "-m", "pytest", *beside, *measure, *(["--cov-append"] if append else []), *tests]
    environment = {**os.environ, "COVERAGE_FILE": str(folder / DATA), REPORT: str(folder / SECONDS)}
    status = subprocess.run(command, cwd=root, env=environment, check=False).returncode
    add_compiled(folder)
    ran = json.loads((folder / SECONDS).read_text())
    files = {test.partition("::")[0] for test in ran}
    (folder / SECONDS).write_text(json.dumps(seconds | ran))
    found = {file: now[file] for file in files if file.startswith("tests/")} if append else now
    (folder / DIGESTS).write_text(json.dumps(digests | found))
    return status


def pytest_configure(config: Any) -> None:
    """As a plugin of the run that `find_out` starts."""
    if REPORT in os.environ:
        report = Path(os.environ[REPORT])
        config.pluginmanager.register(Timed(report))
        config.pluginmanager.register(Compiled(report.with_name(COMPILED)))


# --- the figure -----------------------------------------------------------------------------------------------------


def figures(root: Path, folder: Path) -> dict[str, tuple[int, int]]:
    """Lines that were run and all lines, of each layer."""
    measured = coverage.Coverage(data_file=str(folder / DATA))
    measured.load()
    found: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for module, path in modules(root, [PACKAGE]).items():
        if path.suffix == ".py":
            _, statements, _, missing, _ = measured.analysis2(str(path))
            layer = module.split(".")[1] if path.parent != root / PACKAGE else "(top)"
            run, all_of_it = found[layer]
            found[layer] = run + len(statements) - len(missing), all_of_it + len(statements)
    return dict(found)


def table(found: Mapping[str, tuple[int, int]]) -> str:
    """One line for each layer, and the sum.

    >>> print(table({"plan": (1, 2), "graph": (3, 4)}))
    graph             3 of      4 lines   75.0 %
    plan              1 of      2 lines   50.0 %
    all               4 of      6 lines   66.7 %
    """
    total = summed(found.values())
    return "\n".join(
        f"{layer:12}{run:7} of {every:6} lines  {run / every if every else 1.0:5.1%}".replace("%", " %")
        for layer, (run, every) in [*sorted(found.items()), ("all", total)]
    )


def summed(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the sums of the first and of the second numbers."""
    first, second = zip(*pairs, strict=True)
    return sum(first), sum(second)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev coverage", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--show", action="store_true", help="only what was found the last time")
    parser.add_argument("--append", action="store_true", help="run some tests alone, and keep what is known of others")
    options, rest = parser.parse_known_args(arguments)
    append = options.append and (FOLDER / DATA).exists()
    status = 0 if options.show else find_out(ROOT, FOLDER, rest or TESTS, append=append)
    if not (FOLDER / DATA).exists():
        return status or 1
    print(table(figures(ROOT, FOLDER)))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
