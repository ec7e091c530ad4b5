"""Do tests notice a single wrong decision? `python -m tools.mutate [LAYER] [COUNT] [--seed S]`.

Draws small faults (mutants.py), and runs each against the tests nearest to its file (nearest.py), in a process forked
from this one, where the module is made of the faulty code: no file changes. A fault that no test notices survives.
Faults that change nothing that anybody could see are listed in equivalent_mutants.toml and are not drawn.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.util
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from tools.imports import dotted
from tools.mutants import changes, planted
from tools.nearest import NEAR, Nearest

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
LAYERS = ("policy", "plan", "runtime", "graph", "compile")
COUNT = 40  # mutants of a layer
BUDGET = 30.0  # seconds of tests that a mutant is run against, by their times without it, the fastest tests first
PATIENCE = 2.0  # times the baseline's time until a mutant counts as stuck
SPARE = 10.0  # seconds on top, for imports and for a machine that is busy
LOOK = 0.02  # seconds between two looks at a running process
WARM = ("pytest", "_pytest.doctest", "hypothesis", "hypothesis.strategies", "numpy", "psutil", "pytest_timeout")
WARM_IN = {"runtime": ("pyarrow", "cloudpickle", "numba"), "compile": ("numba",), "graph": ("numba",)}


class Outcome(Enum):
    """What became of a mutant, or of a run without one."""

    SURVIVED = "survived"
    KILLED = "killed"
    STUCK = "stuck"  # killed, too: the tests would never end

    @property
    def mark(self) -> str:
        """As progress shows it."""
        word: str = self.value
        return word.upper() if self is Outcome.SURVIVED else word


@dataclass(frozen=True, slots=True)
class Mutant:
    """One drawn fault.

    Args:
        path: of its file, from the root.
        number: of the change in its file.
        line: where it is.
        function: around it.
        before: the source that was replaced.
        after: what replaced it.
    """

    path: Path
    number: int
    line: int
    function: str
    before: str
    after: str

    @property
    def text(self) -> str:
        """For a line of a list."""
        return f"{self.path}:{self.line} {self.function}: `{self.before}` -> `{self.after or 'nothing'}`"

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What stays when lines move."""
        return self.path.as_posix(), self.function, self.before, self.after


# --- drawing --------------------------------------------------------------------------------------------------------


def mutants(root: Path, layer: str) -> list[Mutant]:
    """All mutants of a layer."""
    found = []
    for path in sorted((root / "rayelastic" / layer).rglob("*.py")):
        for number, one in enumerate(changes(ast.parse(path.read_text()))):
            place = path.relative_to(root)
            found.append(Mutant(place, number, one.line, one.function, one.before, one.after))
    return found


def drawn(root: Path, layer: str, count: int, seed: int, equivalent: frozenset[tuple[str, ...]]) -> list[Mutant]:
    """Some of them, the same for the same seed and source."""
    everything = mutants(root, layer)
    random.Random(f"{seed} {layer}").shuffle(everything)
    return [one for one in everything if one.identity not in equivalent][:count]


def equivalents(path: Path) -> frozenset[tuple[str, ...]]:
    """The mutants that change nothing, each with its reason."""
    listed = tomllib.loads(path.read_text()).get("mutant", []) if path.exists() else []
    return frozenset((one["file"], one["function"], one["before"], one["after"]) for one in listed)


# --- running --------------------------------------------------------------------------------------------------------


class Planted:
    """Finds one module, made of faulty code, before Python finds it where it is."""

    def __init__(self, module: str, path: Path, code: Any) -> None:
        self._module, self._path, self._code = module, path, code

    def load(self) -> None:
        """Imports it here and now: pytest finds the files that it is given by itself, where they are."""
        sys.meta_path.insert(0, self)
        importlib.import_module(self._module)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        inside = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(
            name,
            self._path,
            loader=self,  # type: ignore[arg-type]
            submodule_search_locations=inside,
        )

    def create_module(self, spec: ModuleSpec) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: Any) -> None:
        exec(self._code, module.__dict__)


class Timed:
    """A plugin of pytest: the fastest tests first, within a budget; and how long each takes.

    Args:
        seconds: of each test, from the run without a mutant; empty: this is that run, and nothing is left out.
        report: where to write them.
        budget: seconds of tests.
    """

    def __init__(self, seconds: Mapping[str, float], report: Path, budget: float = BUDGET) -> None:
        self._known, self._report, self._budget = seconds, report, budget
        self._seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self._known:
            items.sort(key=lambda item: self._known.get(item.nodeid, 0.0))
            costs = [self._known.get(item.nodeid, 0.0) for item in items]
            items[:] = within_budget(items, costs, self._budget)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        self._report.write_text(json.dumps(self._seconds))


def within_budget(items: Sequence[Any], seconds: Sequence[float], budget: float) -> list[Any]:
    """As many as fit, and one in any case."""
    taken: list[Any] = []
    spent = 0.0
    for item, cost in zip(items, seconds, strict=True):
        spent += cost
        if taken and spent > budget:
            break
        taken.append(item)
    return taken


def run(tests: Sequence[Path], plugin: Timed, log: Path, limit: float, plant: Planted | None = None) -> Outcome:
    """Runs tests in a process of their own.

    Args:
        tests: files.
        plugin: of pytest.
        log: what they print.
        limit: seconds.
        plant: the module with the mutant.
    """
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        child(tests, plugin, log, plant)
    until = time.monotonic() + limit
    try:
        while True:
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                return Outcome.SURVIVED if os.waitstatus_to_exitcode(status) == 0 else Outcome.KILLED
            if time.monotonic() > until:
                return Outcome.STUCK
            time.sleep(LOOK)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)


def child(tests: Sequence[Path], plugin: Timed, log: Path, plant: Planted | None) -> None:
    """What the forked process does; it never returns."""
    status = 70
    try:
        os.setpgid(0, 0)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ["XDG_CACHE_HOME"] = str(log.parent / "cache")  # compiled code of mutants is nobody else's
        shutil.rmtree(log.parent / "cache", ignore_errors=True)
        if plant is not None:
            plant.load()
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
        status = int(pytest.main([*options, *map(str, tests)], plugins=[plugin]))
    finally:
        sys.stdout.flush()
        os._exit(status)


# --- the whole ------------------------------------------------------------------------------------------------------


class Mutation:
    """Runs mutants against their tests.

    Args:
        root: of the source tree.
        folder: for what is written meanwhile.
        budget: seconds of tests for each.
    """

    def __init__(self, root: Path, folder: Path, budget: float = BUDGET) -> None:
        self._root, self._folder, self._budget = root, folder, budget
        self._nearest = Nearest(root)
        self._seconds: dict[str, float] = {}

    def tests(self, mutant: Mutant) -> list[Path]:
        """What a mutant is run against, paths from the root."""
        return self._nearest.of_files([mutant.path], NEAR)

    def baseline(self, tests: Sequence[Path]) -> str:
        """Runs the tests as they are, and keeps their times; says what is wrong if they fail."""
        log, report = self._folder / "baseline.log", self._folder / "seconds.json"
        if run(tests, Timed({}, report), log, limit=3600) is not Outcome.SURVIVED:
            return log.read_text()
        self._seconds = json.loads(report.read_text())
        return ""

    def outcome(self, mutant: Mutant) -> Outcome:
        """Whether its tests notice a mutant."""
        tests = self.tests(mutant)
        names = {path.as_posix() for path in tests}
        seconds = sum(cost for test, cost in self._seconds.items() if test.partition("::")[0] in names)
        path = self._root / mutant.path
        plant = Planted(dotted(mutant.path), path, planted(path.read_text(), str(path), mutant.number))
        limit = SPARE + PATIENCE * min(seconds, self._budget)
        plugin = Timed(self._seconds, self._folder / "seconds.json", self._budget)
        return run(tests, plugin, self._folder / "log", limit, plant)


def tested(mutation: Mutation, found: Sequence[Mutant]) -> Iterator[tuple[Mutant, Outcome]]:
    for number, mutant in enumerate(found, start=1):
        started = time.monotonic()
        outcome = mutation.outcome(mutant)
        seconds = time.monotonic() - started
        print(f"[{number}/{len(found)}] {outcome.mark:8} {seconds:5.1f} s  {mutant.text}", flush=True)
        yield mutant, outcome


def summary(results: Sequence[tuple[str, Mutant, Outcome]]) -> str:
    """Killed and drawn by layer, and who survived."""
    lines = []
    for layer in dict.fromkeys(layer for layer, _, _ in results):
        outcomes = [outcome for its, _, outcome in results if its == layer]
        killed = sum(outcome is not Outcome.SURVIVED for outcome in outcomes)
        lines.append(f"{layer:8} {killed}/{len(outcomes)} killed ({killed / len(outcomes):.0%})")
    survivors = [mutant.text for _, mutant, outcome in results if outcome is Outcome.SURVIVED]
    return "\n".join([*lines, *([f"{len(survivors)} survived:", *survivors] if survivors else [])])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev mutate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("layer", nargs="?", choices=[*LAYERS, "all"], default="all", help="the layer; all by default")
    parser.add_argument("count", nargs="?", type=int, default=COUNT, help=f"mutants of each layer, {COUNT} by default")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, help=f"seconds of tests for each, {BUDGET:g} by default"
    )
    parser.add_argument("--only", default="", help="only mutants whose file has this in its path")
    options = parser.parse_args(arguments)
    layers = LAYERS if options.layer == "all" else (options.layer,)
    equivalent = equivalents(EQUIVALENT)
    found = {
        layer: [
            one
            for one in drawn(ROOT, layer, sys.maxsize, options.seed, equivalent)
            if options.only in one.path.as_posix()
        ][: options.count]
        for layer in layers
    }
    os.chdir(ROOT)
    for name in [*WARM, *(name for layer in layers for name in WARM_IN.get(layer, ()))]:
        importlib.import_module(name)
    results: list[tuple[str, Mutant, Outcome]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        mutation = Mutation(ROOT, Path(folder), options.budget)
        try:
            for layer in layers:
                tests = list(dict.fromkeys(path for one in found[layer] for path in mutation.tests(one)))
                print(
                    f"{layer}: {len(found[layer])} mutants, {len(tests)} test files, first without a mutant", flush=True
                )
                if failure := mutation.baseline(tests):
                    print(f"{failure}\nthe tests fail without a mutant", flush=True)
                    return 1
                for result in tested(mutation, found[layer]):
                    results.append((layer, *result))  # noqa: PERF401  (Ctrl-C keeps what there is)
        except KeyboardInterrupt:
            print("stopped", flush=True)
            print(summary(results), flush=True)
            return 130
    print(summary(results), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
