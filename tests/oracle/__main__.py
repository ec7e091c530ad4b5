"""Compares programs made at random, compiled and in plain Python: `./dev oracle [FUNCTIONS] [--seed S]`.

Ends with 0 where nothing differs but what is known, and prints a test to paste for everything else.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from pathlib import Path

from tests.oracle.compare import Difference
from tests.oracle.generate import OUTSIDE
from tests.oracle.known import KNOWN, known
from tests.oracle.plants import PLANTS, plant
from tests.oracle.pool import Pool
from tests.oracle.report import Progress, described, say
from tests.oracle.shrink import skeleton
from tests.oracle.worker import Options, Result, batch, compared, died, shrink

FOLDER = Path(__file__).parents[2] / "build" / "oracle"
STOPPED = 130  # what a shell gives for Ctrl-C
STINT = 1000  # functions that a process compares before another takes over


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev oracle", description=__doc__)
    parser.add_argument("functions", nargs="?", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--seed", type=int, default=1, help="other programs for each (1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first program (0)")
    parser.add_argument("--only", type=int, help="one program, by its number")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes (one for each core)")
    parser.add_argument("--optimise", type=int, default=1, help="level of LLVM's passes (1); a job has 3")
    parser.add_argument("--once", action="store_true", help="no second start in a new process")
    parser.add_argument("--shrink", type=int, default=25, help="how many differences are shrunk (25)")
    parser.add_argument("--outside", action="store_true", help="only programs about what stands outside a function")
    parser.add_argument("--plant", choices=PLANTS, default="", help="a fault, to see whether it is found")
    parser.add_argument("--reasons", action="store_true", help="say why functions aren't compiled")
    given = parser.parse_args(arguments)
    os.environ["NUMBA_OPT"] = str(given.optimise)
    plant(given.plant)
    warnings.simplefilter("ignore")
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell that starts it in the background ignores Ctrl-C for it
        signal.signal(number, signal.default_int_handler)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"found-{given.seed}.txt").unlink(missing_ok=True)
    options = Options(given.seed, FOLDER, not given.once)
    numbers = range(given.first, given.first + given.functions)
    if given.outside:
        numbers = range(OUTSIDE, OUTSIDE + 8 * given.functions, 8)
    if given.only is not None:
        numbers = range(given.only, given.only + 1)
    return Run(options, numbers, given.jobs, given.shrink, given.reasons).run()


class Run:
    """One run.

    Args:
        options: of the workers.
        numbers: of the programs.
        jobs: processes.
        most: how many differences are shrunk.
        reasons: whether to say why functions aren't compiled.
    """

    def __init__(self, options: Options, numbers: range, jobs: int, most: int, reasons: bool) -> None:
        self.options, self.numbers, self.most, self.reasons = options, numbers, most, reasons
        self.pool = Pool(jobs, options, batch, lambda number, said: died(number, options.seed, said), shrink)
        self.progress = Progress(len(numbers))
        self.jobs = jobs
        self.found: list[tuple[Result, Difference]] = []
        self.told = 0

    def run(self) -> int:
        stopped = False
        try:
            warm(self.options)
            size = max(1, min(STINT, -(-len(self.numbers) // self.jobs)))
            for result in self.pool.results(self.numbers, size):
                self.note(result)
                self.progress.tell()
            self.tell_shrunk()
        except KeyboardInterrupt:
            stopped = True
            self.pool.stop()
            say(f"stopped; all that was found is in {FOLDER.name}/found-{self.options.seed}.txt", to=sys.stderr)
            for result, found in self.found[self.told : self.told + self.most]:
                say(described(result.number, self.options.seed, result.program, found, shrunk=False))
        say(self.progress.line(), to=sys.stderr)
        for one in KNOWN:
            if self.progress.known[one.name]:
                say(f"known: {one.name}, {self.progress.known[one.name]} times: {one.meaning}", to=sys.stderr)
        if self.reasons:
            say("\n".join(f"{count:5} {reason}" for reason, count in self.progress.reasons.most_common(60)))
        return 1 if self.found else STOPPED if stopped else 0

    def note(self, result: Result) -> None:
        self.progress.add(result)
        for found in result.found:
            if name := known(result.program, found):
                self.progress.known[name] += 1
            else:
                self.progress.new += 1
                self.found.append((result, found))
                if result.program.repeated:
                    say(described(result.number, self.options.seed, result.program, found, shrunk=False))
                with (FOLDER / f"found-{self.options.seed}.txt").open("a") as file:
                    text = described(result.number, self.options.seed, result.program, found, shrunk=False)
                    file.write(text + "\n\n")

    def tell_shrunk(self) -> None:
        """Shrinks differences, short programs first; one that has all that a shrunk one needs counts as the same."""
        alone = [one for one in self.found if not one[0].program.repeated]
        rest = sorted(alone, key=lambda one: len(one[0].program.body))
        seen: list[tuple[str, frozenset[str], str]] = []

        def is_seen(result: Result, found: Difference) -> bool:
            parts = skeleton(result.program.body)
            return any(
                kind == found.kind and (text == found.ours if kind == "second start" else needed <= parts)
                for kind, needed, text in seen
            )

        def wanted() -> tuple[Result, Difference] | None:
            nonlocal rest
            rest = [one for one in rest if not is_seen(*one)]
            return rest.pop(0) if rest and len(seen) < self.most else None

        for number, program, found in self.pool.shrunk(wanted):
            if is_seen(Result(number, program, ""), found):
                continue
            seen.append((found.kind, skeleton(program.body), found.ours))
            say(described(number, self.options.seed, program, found, shrunk=True))


def warm(options: Options) -> None:
    """Compiles what most programs need, before processes are forked off."""
    from rayelastic.compile.cache.code_cache import CodeCache
    from tests.component.compile.harness import built_shim, opened_shim
    from tests.oracle.program import Program

    shim = opened_shim(built_shim(options.folder))
    for body in WARM:
        compared(Program("def f(t):\n    " + body), "oracle-warm", [], shim, CodeCache(None))


WARM = (
    "return t.i + 1, t.x * 2, t.s.lower(), t.s.strip(), t.s[1:], t.s.find(t.u), len(t.s), t.s + t.u, t.s == t.u",
    "return f'{t.x:.2f}|{t.i:05d}|{t.s:>5}', str(t.i), str(t.x), t.s.replace('a', 'b'), t.s.count('a'), t.i // 3",
    "return ','.join([w.upper() for w in t.s.split(',') if w in t.u]), len(t.s.split()), t.s.startswith('a')",
    "d = {}\n    for w in t.s.split():\n        d[w] = 1\n    return len(d), 'a' in d, d.get(t.u, 0)",
    "try:\n        return int(t.s)\n    except ValueError:\n        return t.i",
    "return t.at + t.span, t.at.year, t.day.isoformat(), t.span.total_seconds(), round(t.x, 2), float(t.s)",
    "return t.n or 0, t.m is None, t.b[1:], t.b + t.c, math.sqrt(t.x), PAIR.search(t.s) is None",
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
