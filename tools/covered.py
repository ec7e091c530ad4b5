"""Which tests run which lines, and how much of each layer they run: `python -m tools.covered`, as ./dev coverage.

The tests of one process run under coverage.py, except those marked alone or untraced. The map in build/coverage keeps
the source that it was measured on, so it stays valid for a file that has changed since: a line is looked up where it
was. `./dev test --changed` and `./dev mutate` use it. Python doesn't trace what Numba compiles: the map has the tests
that had it compiled. Code in threads that C++ started, or in other processes, isn't covered.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import coverage

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "coverage"
PACKAGE = "rayelastic"
TESTS = ("tests/unit", "tests/component", "tests/guesses", PACKAGE, "bench/plant")
CHOSEN = "not nightly and not bench and not alone and not untraced"
REPORT = "REL_COVERED_SECONDS"  # an environment variable: where the plugin writes
DATA, SECONDS, SOURCES = "data", "seconds.json", "sources.json"  # files in the folder
COMPILED = "compiled-*.json"  # one for each process that ran tests


class Covered:
    """The map that the last measurement wrote.

    Args:
        root: of the source tree.
        folder: of the map.

    Raises:
        FileNotFoundError: Nothing has been measured.
    """

    def __init__(self, root: Path = ROOT, folder: Path = FOLDER) -> None:
        self._root = root
        self.seconds: dict[str, float] = json.loads((folder / SECONDS).read_text())  # of each test that passed
        self._sources: dict[str, str] = json.loads((folder / SOURCES).read_text())
        self._data = coverage.CoverageData(basename=str(folder / DATA))
        self._data.read()

    def is_unchanged(self, path: Path) -> bool:
        """Return whether a file, path from the root, is as it was."""
        return (self._root / path).exists() and self._sources.get(path.as_posix()) == (self._root / path).read_text()

    def tests_of_line(self, path: Path, line: int) -> list[str]:
        """Return who runs a line: else its statement, else a function around it. The fastest test comes first."""
        before = self._sources.get(path.as_posix(), "")
        for was in lines_before(before, (self._root / path).read_text(), line):
            for span in spans(ast.parse(before), was):
                if tests := self._running(path, span):
                    return tests
        return []

    def tests_of_change(self, path: Path) -> list[str]:
        """Return who runs the functions that differ from the measured source; all tests of the file if others do."""
        before = self._sources.get(path.as_posix())
        if before is None:
            return []
        now = (self._root / path).read_text() if (self._root / path).exists() else ""
        tree, tests = ast.parse(before), set[str]()
        for line in changed_lines(before, now):
            functions = [lines_of(node) for node in around(tree, line) if isinstance(node, FUNCTIONS)]
            found = self._running(path, functions[0]) if functions else []
            tests.update(found or self._running(path, range(1, before.count("\n") + 2)))
        return sorted(tests, key=lambda test: (self.seconds[test], test))

    def _running(self, path: Path, lines: Iterable[int]) -> list[str]:
        contexts = self._data.contexts_by_lineno(str(self._root / path))
        tests = {context.rpartition("|")[0] for line in lines for context in contexts.get(line, ())}
        return sorted(tests & self.seconds.keys(), key=lambda test: (self.seconds[test], test))


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def changed_lines(before: str, now: str) -> list[int]:
    """Return the lines of the old text that were replaced, or that new ones follow.

    >>> changed_lines("a\\nb\\nc\\n", "a\\nB\\nc\\nd\\n")
    [2, 3]
    """
    found: dict[int, None] = {}
    for tag, first, last, _, _ in _matcher(before, now).get_opcodes():
        if tag != "equal":
            found.update(dict.fromkeys(range(first + 1, last + 1) if last > first else [max(1, first)]))
    return list(found)


def lines_before(before: str, now: str, line: int) -> list[int]:
    """Return where a line of the new text was; nothing if it is new."""
    blocks = _matcher(before, now).get_matching_blocks()
    return [block.a + line - block.b for block in blocks if block.b < line <= block.b + block.size]


def _matcher(before: str, now: str) -> difflib.SequenceMatcher[str]:
    return difflib.SequenceMatcher(None, before.splitlines(), now.splitlines(), autojunk=False)


def spans(tree: ast.AST, line: int) -> Iterator[range]:
    """Yield the line itself, its statement up to the body of that, the functions around it, the inner ones first."""
    yield range(line, line + 1)
    statements = around(tree, line)
    for node in statements[:1]:
        body = getattr(node, "body", None)
        yield range(node.lineno, body[0].lineno) if body and line < body[0].lineno else lines_of(node)
    for node in statements:
        if isinstance(node, FUNCTIONS):
            yield range(node.body[0].lineno, lines_of(node).stop)


def around(tree: ast.AST, line: int) -> list[ast.stmt]:
    """Return the statements that contain a line, the inner ones first."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and line in lines_of(node)]
    return sorted(found, key=lambda node: len(lines_of(node)))


def lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


# --- measuring ------------------------------------------------------------------------------------------------------


class Timed:
    """A pytest plugin that writes the seconds of each test that passes.

    Args:
        report: the file.
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
    """A pytest plugin that writes which functions of the project each test has Numba compile.

    Args:
        report: the file; a `*` in its name stands for the number of the process.
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


def pytest_configure(config: Any) -> None:
    """Register the plugins in the run that `measure` starts."""
    if REPORT in os.environ:
        report = Path(os.environ[REPORT])
        config.pluginmanager.register(Timed(report))
        config.pluginmanager.register(Compiled(report.with_name(COMPILED)))


def add_compiled(folder: Path) -> None:
    """Add the functions that Numba compiled to the lines that ran."""
    data = coverage.CoverageData(basename=str(folder / DATA))
    data.read()
    for report in folder.glob(COMPILED):
        for test, functions in json.loads(report.read_text()).items():
            data.set_context(f"{test}|run")
            for path, first, last in functions:
                data.add_lines({path: range(first, last + 1)})
        report.unlink()
    data.write()


def sources(root: Path, package: str) -> list[Path]:
    return [path for name in (package, "tests") for path in (root / name).rglob("*.py")]


def measure(root: Path, folder: Path, tests: Sequence[str] = TESTS, package: str = PACKAGE) -> int:
    """Run tests, write which lines of a package they run, and return pytest's status.

    Args:
        root: of the source tree.
        folder: of the map.
        tests: arguments of pytest; the map has these tests alone.
        package: the folder that is measured.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in sources(root, package)}
    beside = ["-n", str(os.cpu_count() or 2), "--dist=loadfile", "-p", "tools.covered", "-q", "-m", CHOSEN]
    options = [f"--cov={package}", "--cov-context=test", "--cov-report="]
    status = subprocess.run(
        [sys.executable, "-m", "pytest", *beside, *options, *tests],
        cwd=root,
        env={
            **os.environ,
            "COVERAGE_FILE": str(folder / DATA),
            REPORT: str(folder / SECONDS),
            "XDG_CACHE_HOME": str(folder / "cache"),  # code from a cache isn't compiled
        },
        check=False,
    ).returncode
    add_compiled(folder)
    (folder / SOURCES).write_text(json.dumps(texts))
    return status


# --- the figure -----------------------------------------------------------------------------------------------------


def figures(root: Path, folder: Path) -> dict[str, tuple[int, int]]:
    """Return the number of lines that ran, and of all lines, for each layer."""
    measured = coverage.Coverage(data_file=str(folder / DATA))
    measured.load()
    found: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for path in sorted((root / PACKAGE).rglob("*.py")):
        _, statements, _, missing, _ = measured.analysis2(str(path))
        layer = path.relative_to(root / PACKAGE).parts[0] if path.parent != root / PACKAGE else "(top)"
        run, total = found[layer]
        found[layer] = run + len(statements) - len(missing), total + len(statements)
    return dict(found)


def table(found: Mapping[str, tuple[int, int]]) -> str:
    """Return one line for each layer, and the sum.

    >>> print(table({"plan": (1, 2), "graph": (3, 4)}))
    graph             3 of      4 lines   75.0 %
    plan              1 of      2 lines   50.0 %
    all               4 of      6 lines   66.7 %
    """
    total = sum(run for run, _ in found.values()), sum(every for _, every in found.values())
    return "\n".join(
        f"{layer:12}{run:7} of {every:6} lines  {run / every if every else 1.0:5.1%}".replace("%", " %")
        for layer, (run, every) in [*sorted(found.items()), ("all", total)]
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev coverage", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--show", action="store_true", help="only the figures of the last measurement")
    options, rest = parser.parse_known_args(arguments)
    status = 0 if options.show else measure(ROOT, FOLDER, rest or TESTS)
    if not (FOLDER / DATA).exists():
        return status or 1
    print(table(figures(ROOT, FOLDER)))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
