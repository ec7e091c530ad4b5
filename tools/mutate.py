"""Do tests notice a single wrong decision? `python -m tools.mutate [LAYER] [COUNT] [--seed S]`.

Draws small faults (mutants.py), and runs each against the tests that run its line, as `./dev coverage` found them
(covered.py), the fastest first; where that says nothing, against those nearest to its file. Most run in forks of one
process that has collected the tests (mutant_session.py), others in a process of their own (mutant_runs.py).
A fault that no test notices survives. known_mutants.toml has the reasons for survivors, and faults that change nothing
that anybody could see, which are not drawn. What became of each is kept in build/mutants, so that a run can go on.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.covered import DATA, FOLDER, Covered
from tools.imports import dotted
from tools.mutant_runs import Chosen, Outcome, Planted, run, within_budget
from tools.mutant_session import Collected, Wanted
from tools.mutants import changes, planted
from tools.nearest import DIRECT, Nearest

ROOT = Path(__file__).resolve().parent.parent
KNOWN = Path(__file__).with_name("known_mutants.toml")
RESULTS = ROOT / "build" / "mutants"
LAYERS = ("policy", "plan", "runtime", "graph", "compile")
COUNT = 120  # mutants of a layer
BUDGET = 30.0  # seconds of tests that a mutant is run against, by their times without it, the fastest tests first
PATIENCE = 3.0  # times the time without it until a mutant counts as stuck
LONGEST = 3600.0  # seconds of a file of tests without a mutant
FILES = 4  # of tests that a process of its own runs a mutant against at first; of those nobody has timed, twice as many
ANYWHERE = 99  # imports from a test to what it tests: the nearest first, as many as the budget lets run
SPARE = 30.0  # seconds on top, for imports and for a machine that is busy
WARM = ("pytest", "_pytest.doctest", "hypothesis", "hypothesis.strategies", "numpy", "psutil", "pytest_timeout")
WARM_IN = {
    "runtime": ("pyarrow", "cloudpickle", "numba"),
    "compile": ("numba",),
    "graph": ("numba",),
    "plan": ("numba",),
}


Identity = tuple[str, str, str, str]  # file, function, before, after


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
        again: how many mutants of the file came before that look the same.
    """

    path: Path
    number: int
    line: int
    function: str
    before: str
    after: str
    again: int = 0

    @property
    def text(self) -> str:
        """For a line of a list."""
        return f"{self.path}:{self.line} {self.function}: `{self.before}` -> `{self.after or 'nothing'}`"

    @property
    def identity(self) -> Identity:
        """What stays when lines move."""
        return self.path.as_posix(), self.function, self.before, self.after

    @property
    def key(self) -> str:
        """The identity, with what tells it from others that look the same."""
        return json.dumps([*self.identity, self.again])


# --- drawing --------------------------------------------------------------------------------------------------------


def mutants(root: Path, layer: str) -> list[Mutant]:
    """Return all mutants of a layer."""
    found: list[Mutant] = []
    for path in sorted((root / "rayelastic" / layer).rglob("*.py")):
        same: Counter[tuple[str, str, str]] = Counter()
        for number, one in enumerate(changes(ast.parse(path.read_text()))):
            again = same[one.function, one.before, one.after]
            same[one.function, one.before, one.after] += 1
            place = path.relative_to(root)
            found.append(Mutant(place, number, one.line, one.function, one.before, one.after, again))
    return found


def drawn(root: Path, layer: str, count: int, seed: int, equivalent: frozenset[Identity]) -> list[Mutant]:
    """Some of them. The same for the same seed: one is drawn by what it is, whatever changes elsewhere."""
    left = [one for one in mutants(root, layer) if one.identity not in equivalent]
    return sorted(left, key=lambda one: hashlib.sha256(f"{seed} {one.key}".encode()).digest())[:count]


def equivalents(path: Path) -> frozenset[Identity]:
    """Return the mutants that change nothing."""
    return frozenset(listed(path, "equivalent"))


def listed(path: Path, kind: str) -> dict[Identity, str]:
    """What a file says of mutants, and why."""
    found = tomllib.loads(path.read_text()).get(kind, []) if path.exists() else []
    return {(one["file"], one["function"], one["before"], one["after"]): one["reason"] for one in found}


# --- running --------------------------------------------------------------------------------------------------------


class Mutation:
    """Runs mutants against their tests. Whoever makes one must not have imported what is to be mutated.

    Args:
        root: of the source tree.
        folder: for what is written meanwhile.
        budget: seconds of tests for each.
        covered: which tests run which lines, if that is known.
    """

    def __init__(self, root: Path, folder: Path, budget: float = BUDGET, covered: Covered | None = None) -> None:
        self._root, self._folder, self._budget, self._covered = root, folder, budget, covered
        self._nearest = Nearest(root)
        self._seconds = covered.seconds if covered is not None else {}
        self._passing: dict[Path, bool] = {}
        self._collected: Collected | None = None

    def collect(self, found: Sequence[Mutant]) -> None:
        """Collect the tests of mutants of one layer, against which they then run in less time."""
        self.close()
        files: dict[str, None] = {}
        for tests, whole in map(self.tests, found):
            files.update(dict.fromkeys([*(test.partition("::")[0] for test in tests), *map(Path.as_posix, whole)]))
        if files:
            self._collected = Collected(list(files), self._folder, caches=all(map(may_use_caches, found)))

    def close(self) -> None:
        """End what it has collected."""
        if self._collected is not None:
            self._collected.close()
            self._collected = None

    def outcome(self, mutant: Mutant) -> Outcome:
        """Return whether its tests notice a mutant; without any nobody does.

        Raises:
            RuntimeError: the module has been imported here, so that nobody would import it with the mutant.
        """
        module, path = dotted(mutant.path), self._root / mutant.path
        if module in sys.modules:
            raise RuntimeError(f"{module} has been imported before its mutants")
        tests, whole = self.tests(mutant)
        if not tests and not whole:
            return Outcome.SURVIVED
        chosen = Chosen(tests, list(map(Path.as_posix, whole)), self._seconds, self._budget)
        if self._collected is not None:
            outcome = self._collected.outcome(Wanted(module, path, mutant.number, chosen))
            if outcome is not None:
                return outcome
        return self._apart(mutant, tests, whole)

    def _apart(self, mutant: Mutant, tests: Sequence[str], whole: Sequence[Path]) -> Outcome:
        """What becomes of a mutant in a process of its own: first against the tests of few files, then all."""
        path = self._root / mutant.path
        plant = Planted(dotted(mutant.path), path, planted(path.read_text(), str(path), mutant.number))
        outcome = Outcome.SURVIVED
        for some, files in rounds(tests, [path.as_posix() for path in whole if self._passes(path)]):
            costs = [self._seconds[test] for test in some]
            chosen = within_budget(some, costs, self._budget)
            limit = SPARE + PATIENCE * (self._budget if files else sum(costs[: len(chosen)]))
            every = dict.fromkeys([*files, *(test.partition("::")[0] for test in chosen)])
            plugin = Chosen(chosen, files, self._seconds, self._budget)
            outcome = run(list(every), plugin, self._folder, limit, plant, caches=may_use_caches(mutant))
            if outcome is not Outcome.SURVIVED:
                break
        return outcome

    def tests(self, mutant: Mutant) -> tuple[list[str], list[Path]]:
        """What a mutant is run against: tests known to pass, the fastest first; files of others, the nearest first.

        Behind tests that run a line of the compiler those of their files.
        """
        covering = self._covered.tests(mutant.path, mutant.line) if self._covered is not None else []
        near = self._nearest.of_files([mutant.path], DIRECT if covering else ANYWHERE)
        known = {path.as_posix() for path in near if self._is_known(path)}
        whole = [path for path in near if path.as_posix() not in known][: 2 * FILES]
        tests = covering or [test for test in self._seconds if test.partition("::")[0] in known]
        tests.sort(key=lambda test: self._seconds[test])
        if covering and not may_use_caches(mutant):  # Numba has compiled for the first test what others use, too
            files = {test.partition("::")[0] for test in covering}
            beside = (test for test in self._seconds.keys() - tests if test.partition("::")[0] in files)
            tests += sorted(beside, key=lambda test: self._seconds[test])
        return tests, whole

    def _is_known(self, test: Path) -> bool:
        return self._covered is not None and self._covered.is_known(test)

    def _passes(self, test: Path) -> bool:
        """Return whether a file of tests passes without a mutant: it is run once to find out."""
        if test not in self._passing:
            plugin = Chosen([], [test.as_posix()], {}, sys.maxsize)
            outcome = run([test.as_posix()], plugin, self._folder, LONGEST, None, caches=True)
            self._passing[test] = outcome is Outcome.SURVIVED
            if outcome is not Outcome.SURVIVED:
                print(f"{test} is left out, as it fails without a mutant", flush=True)
        return self._passing[test]


def rounds(tests: Sequence[str], whole: Sequence[str]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Some of the tests and files in few files, then the rest: most mutants are killed by the first."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))[:FILES]
    first = [test for test in tests if test.partition("::")[0] in files]
    if first:
        yield first, []
    later = [test for test in tests if test.partition("::")[0] not in files]
    if not first and whole:
        yield [], whole[:FILES]
    whole = whole if first else whole[FILES:]
    if later or whole:
        yield later, whole


def may_use_caches(mutant: Mutant) -> bool:
    """What is different in the compiler, the names of compiled code don't say."""
    return mutant.path.parts[1] != "compile"


class Results:
    """What became of the mutants of a layer, kept in a file.

    Args:
        file: where.
        killed: whether those that were killed before needn't be run again.
    """

    def __init__(self, file: Path, *, killed: bool) -> None:
        self._file = file
        known = json.loads(file.read_text()) if killed and file.exists() else {}
        self._known = {key: Outcome(value) for key, value in known.items()}

    def killed(self, mutant: Mutant) -> Outcome | None:
        """How it was killed before; None if it wasn't."""
        known = self._known.get(mutant.key)
        return None if known is Outcome.SURVIVED else known

    def add(self, mutant: Mutant, outcome: Outcome) -> None:
        self._known[mutant.key] = outcome
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({key: one.value for key, one in self._known.items()}, indent=0))


def tested(mutation: Mutation, found: Sequence[Mutant], results: Results) -> Iterator[tuple[Mutant, Outcome]]:
    mutation.collect([one for one in found if not results.killed(one)])
    for number, mutant in enumerate(found, start=1):
        if known := results.killed(mutant):
            yield mutant, known
            continue
        started = time.monotonic()
        outcome = mutation.outcome(mutant)
        seconds = time.monotonic() - started
        print(f"[{number}/{len(found)}] {outcome.mark:8} {seconds:5.1f} s  {mutant.text}", flush=True)
        results.add(mutant, outcome)
        yield mutant, outcome


def summary(results: Sequence[tuple[str, Mutant, Outcome]], reasons: Mapping[Identity, str]) -> str:
    """Killed and drawn by layer, and who survived, with the reason; those without one come last."""
    lines = []
    for layer in dict.fromkeys(layer for layer, _, _ in results):
        outcomes = [outcome for its, _, outcome in results if its == layer]
        killed = sum(outcome is not Outcome.SURVIVED for outcome in outcomes)
        lines.append(f"{layer:8} {killed}/{len(outcomes)} killed ({killed / len(outcomes):.0%})")
    survivors = [mutant for _, mutant, outcome in results if outcome is Outcome.SURVIVED]
    told = [one for one in survivors if one.identity in reasons]
    if told:
        lines += [f"{len(told)} survived for a reason:", *(f"{one.text}\n    {reasons[one.identity]}" for one in told)]
    if untold := [one.text for one in survivors if one.identity not in reasons]:
        lines += [f"{len(untold)} survived:", *untold]
    if gone := [one.text for _, one, outcome in results if outcome is not Outcome.SURVIVED and one.identity in reasons]:
        lines += ["killed, though listed as survivors:", *gone]
    return "\n".join(lines)


def warm_up(layers: Sequence[str]) -> None:
    """Import what all forked processes need; nothing of ours."""
    for name in [*WARM, *(name for layer in layers for name in WARM_IN.get(layer, ()))]:
        importlib.import_module(name)


def stop(*_: object) -> None:
    """As at Ctrl-C."""
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev mutate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("layer", nargs="?", choices=[*LAYERS, "all"], default="all", help="the layer; all by default")
    parser.add_argument("count", nargs="?", type=int, default=COUNT, help=f"mutants of each layer, {COUNT} by default")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="begin with the Nth of those drawn")
    parser.add_argument("--go-on", action="store_true", help="don't run again what was killed before")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, help=f"seconds of tests for each, {BUDGET:g} by default"
    )
    parser.add_argument("--only", default="", help="only mutants whose file has this in its path")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, stop)
    os.chdir(ROOT)
    layers = LAYERS if options.layer == "all" else (options.layer,)
    warm_up(layers)
    covered = Covered() if (FOLDER / DATA).exists() else None
    if covered is None:
        print("./dev coverage would tell which tests run which lines; by the nearest files meanwhile", flush=True)
    done: list[tuple[str, Mutant, Outcome]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        mutation = Mutation(ROOT, Path(folder), options.budget, covered)
        try:
            for layer in layers:
                every = drawn(ROOT, layer, sys.maxsize, options.seed, equivalents(KNOWN))
                found = [one for one in every if options.only in one.path.as_posix()][options.first - 1 : options.count]
                results = Results(RESULTS / f"{layer}.json", killed=options.go_on)
                for mutant, outcome in tested(mutation, found, results):
                    done.append((layer, mutant, outcome))
        except KeyboardInterrupt:
            print("stopped; --go-on goes on", flush=True)
        finally:
            mutation.close()
    print(summary(done, listed(KNOWN, "survivor")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
