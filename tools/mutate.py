"""Do tests notice a single wrong decision? `python -m tools.mutate [LAYER] [COUNT] [--seed S]`, as ./dev mutate.

Draws small faults (mutants.py). A pytest run of its own takes each against the tests that run its line, which
`./dev coverage` measured, the fastest first. A fault that no test notices survives. known_mutants.toml has the reasons
for survivors, and the faults that change nothing observable, which are not drawn.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tools.covered import Covered
from tools.mutants import MUTANT, changes

ROOT = Path(__file__).resolve().parent.parent
KNOWN = Path(__file__).with_name("known_mutants.toml")
LAYERS = ("policy", "plan", "runtime", "graph", "compile")
COUNT = 120  # mutants of a layer
BUDGET = 30.0  # seconds of tests for each mutant, by their times without it
PATIENCE = 4.0  # times those seconds until a mutant counts as stuck
SPARE = 60.0  # seconds on top, for imports and a busy machine
OPTIONS = ("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tools.mutants", "-W", "ignore")

Identity = tuple[str, str, str, str]  # file, function, before, after


class Outcome(Enum):
    """What became of a mutant."""

    SURVIVED = "survived"
    KILLED = "killed"
    STUCK = "stuck"  # killed, too: the tests would never end


@dataclass(frozen=True, slots=True)
class Mutant:
    """One drawn fault.

    Args:
        path: of its file, from the root.
        number: of the change in its file.
        line: of the change.
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
        """Return the entry of a list."""
        return f"{self.path}:{self.line} {self.function}: `{self.before}` -> `{self.after or 'nothing'}`"

    @property
    def identity(self) -> Identity:
        """Return what stays when lines move."""
        return self.path.as_posix(), self.function, self.before, self.after

    @property
    def key(self) -> str:
        """Return the identity, with what tells the mutant from others that look the same."""
        return json.dumps([*self.identity, self.again])


# --- drawing --------------------------------------------------------------------------------------------------------


def mutants(root: Path, folder: Path) -> list[Mutant]:
    """Return all mutants of the files below a folder."""
    found: list[Mutant] = []
    for path in sorted(folder.rglob("*.py")):
        same: Counter[tuple[str, str, str]] = Counter()
        for number, one in enumerate(changes(ast.parse(path.read_text()))):
            again = same[one.function, one.before, one.after]
            same[one.function, one.before, one.after] += 1
            place = path.relative_to(root)
            found.append(Mutant(place, number, one.line, one.function, one.before, one.after, again))
    return found


def drawn(root: Path, layer: str, seed: int, equivalent: frozenset[Identity]) -> list[Mutant]:
    """Return the mutants of a layer in the order of a seed, in which changes elsewhere move none."""
    left = [one for one in mutants(root, root / "rayelastic" / layer) if one.identity not in equivalent]
    return sorted(left, key=lambda one: hashlib.sha256(f"{seed} {one.key}".encode()).digest())


def listed(path: Path, kind: str) -> dict[Identity, str]:
    """Return the mutants that a file lists, with the reason of each."""
    found = tomllib.loads(path.read_text()).get(kind, []) if path.exists() else []
    return {(one["file"], one["function"], one["before"], one["after"]): one["reason"] for one in found}


# --- running --------------------------------------------------------------------------------------------------------


def outcome(root: Path, mutant: Mutant, covered: Covered, budget: float = BUDGET) -> Outcome:
    """Return whether tests notice a mutant; a test that also fails without it doesn't count."""
    tests = within_budget(covered.tests_of_line(mutant.path, mutant.line), covered.seconds, budget)
    while tests:
        limit = SPARE + PATIENCE * sum(covered.seconds[test] for test in tests)
        status, failed = run(root, tests, limit, mutant)
        if status is None:
            return Outcome.STUCK
        if status == 0:
            return Outcome.SURVIVED
        if not failed or run(root, [failed], SPARE + PATIENCE * budget)[0] == 0:
            return Outcome.KILLED
        print(f"{failed} is left out, as it fails without a mutant", flush=True)
        tests = [test for test in tests if test != failed]
    return Outcome.SURVIVED


def run(root: Path, tests: Sequence[str], limit: float, mutant: Mutant | None = None) -> tuple[int | None, str]:
    """Run tests up to the first that fails, within seconds; return pytest's status and the name of that test.

    Code that the mutant has compiled is in a cache that nobody else uses. The status is None if time ran out.
    """
    environment = dict(os.environ)
    if mutant is not None:
        module = ".".join(mutant.path.with_suffix("").parts).removesuffix(".__init__")
        environment[MUTANT] = f"{module}:{root / mutant.path}:{mutant.number}"
    with tempfile.TemporaryDirectory(prefix="mutant-") as cache:
        environment["XDG_CACHE_HOME"] = cache
        command = [sys.executable, "-m", "pytest", *OPTIONS, f"--basetemp={cache}/tests", *tests]
        process = subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return process.returncode, failed[1] if failed and failed[1] in tests else ""


def within_budget(tests: Sequence[str], seconds: Mapping[str, float], budget: float) -> list[str]:
    """Return as many tests as fit, and at least one."""
    spent = 0.0
    for count, test in enumerate(tests):
        spent += seconds[test]
        if count and spent > budget:
            return list(tests[:count])
    return list(tests)


def outcomes(found: Sequence[Mutant], covered: Covered, budget: float) -> Iterator[tuple[Mutant, Outcome]]:
    for number, mutant in enumerate(found, start=1):
        started = time.monotonic()
        result = outcome(ROOT, mutant, covered, budget)
        seconds = time.monotonic() - started
        word = result.value.upper() if result is Outcome.SURVIVED else result.value
        print(f"[{number}/{len(found)}] {word:8} {seconds:5.1f} s  {mutant.text}", flush=True)
        yield mutant, result


def summary(results: Sequence[tuple[str, Mutant, Outcome]], reasons: Mapping[Identity, str]) -> str:
    """Return the killed and drawn mutants of each layer, and the survivors; those without a reason come last."""
    lines = []
    for layer in dict.fromkeys(layer for layer, _, _ in results):
        of_layer = [outcome for its, _, outcome in results if its == layer]
        killed = sum(outcome is not Outcome.SURVIVED for outcome in of_layer)
        lines.append(f"{layer:8} {killed}/{len(of_layer)} killed ({killed / len(of_layer):.0%})")
    survivors = [mutant for _, mutant, outcome in results if outcome is Outcome.SURVIVED]
    expected = [one for one in survivors if one.identity in reasons]
    if expected:
        lines += [f"{len(expected)} survived for a reason:"]
        lines += [f"{one.text}\n    {reasons[one.identity]}" for one in expected]
    if others := [one.text for one in survivors if one.identity not in reasons]:
        lines += [f"{len(others)} survived:", *others]
    if gone := [one.text for _, one, outcome in results if outcome is not Outcome.SURVIVED and one.identity in reasons]:
        lines += ["killed, though listed as survivors:", *gone]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev mutate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("layer", nargs="?", choices=[*LAYERS, "all"], default="all", help="the layer; all by default")
    parser.add_argument("count", nargs="?", type=int, default=COUNT, help=f"mutants of each layer, {COUNT} by default")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="begin with the Nth of those drawn")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, help=f"seconds of tests for each, {BUDGET:g} by default"
    )
    parser.add_argument("--only", default="", help="only mutants whose file has this in its path")
    options = parser.parse_args(arguments)
    try:
        covered = Covered(ROOT)
    except FileNotFoundError:
        print("run ./dev coverage first: it measures which tests run which lines", file=sys.stderr)
        return 2
    results: list[tuple[str, Mutant, Outcome]] = []
    try:
        for layer in LAYERS if options.layer == "all" else (options.layer,):
            every = drawn(ROOT, layer, options.seed, frozenset(listed(KNOWN, "equivalent")))
            chosen = [one for one in every if options.only in one.path.as_posix()][options.first - 1 : options.count]
            results += ((layer, mutant, result) for mutant, result in outcomes(chosen, covered, options.budget))
    except KeyboardInterrupt:
        print("stopped", flush=True)
    print(summary(results, listed(KNOWN, "survivor")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
