"""Random topologies against a naive interpreter: `./dev topologies [PROGRAMS] [--seed S]`.

Ends with 0 where nothing differs but what is known, and prints a program to run for everything else.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tests.oracle.report import say
from tests.random_topologies.compare import Result, checked
from tests.random_topologies.known import KNOWN
from tests.random_topologies.plants import PLANTS, plant

FOLDER = Path(__file__).parents[2] / "build" / "topologies"
CHUNK = 25  # programs that a process runs in one go


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev topologies", description=__doc__)
    parser.add_argument("programs", nargs="?", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--seed", type=int, default=1, help="other programs for each (1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first program (0)")
    parser.add_argument("--only", type=int, help="one program, by its number")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes (one for each core)")
    parser.add_argument("--shrink", type=int, default=12, help="how many differences are shrunk (12)")
    parser.add_argument("--plant", choices=PLANTS, default="", help="a fault, to see whether it is found")
    given = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(FOLDER / "cache")
    numbers = range(given.first, given.first + given.programs) if given.only is None else [given.only]
    chunks = [list(numbers[i : i + CHUNK]) for i in range(0, len(numbers), CHUNK)]
    return Run(given.seed, given.shrink, given.plant).run(chunks, given.jobs, len(numbers))


def batch(seed: int, numbers: list[int], shrink: int) -> list[Result]:
    """What a process does."""
    return [checked(seed, number, shrink=shrink > 0) for number in numbers]


class Run:
    """One run.

    Args:
        seed: of all programs.
        shrink: how many differences are shrunk.
        fault: that is planted; empty: none.
    """

    def __init__(self, seed: int, shrink: int, fault: str) -> None:
        self.seed, self.shrink, self.fault = seed, shrink, fault
        self.outputs = self.done = self.new = 0
        self.known: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.started = self.told = time.monotonic()

    def run(self, chunks: list[list[int]], jobs: int, total: int) -> int:
        with ProcessPoolExecutor(jobs, initializer=plant, initargs=(self.fault,)) as pool:
            waiting = {pool.submit(batch, self.seed, chunk, self.shrink): chunk for chunk in chunks}
            for future in as_completed(waiting):
                try:
                    for result in future.result():
                        self.note(result)
                except BrokenProcessPool:
                    say(f"# a process died; programs of seed {self.seed}: {waiting[future]}")
                    self.new += 1
                    break
                if time.monotonic() - self.told > 10:
                    self.told = time.monotonic()
                    say(self.line(total), to=sys.stderr)
        say(self.line(total), to=sys.stderr)
        for name, meaning in KNOWN.items():
            if any(name in found.split(", ") for found in self.known):
                say(f"known: {name}: {meaning}", to=sys.stderr)
        return 1 if self.new else 0

    def note(self, result: Result) -> None:
        self.done += 1
        self.outputs += result.outputs
        self.kinds.update(result.kinds)
        for difference in result.found:
            if difference.known:
                self.known[difference.known] += 1
                continue
            self.new += 1
            say(f"# ./dev topologies --seed {self.seed} --only {result.number}\n{difference.text}")

    def line(self, total: int) -> str:
        rate = self.done / max(1e-9, time.monotonic() - self.started)
        known = ", ".join(f"{name} {count}" for name, count in self.known.most_common())
        return f"{self.done} of {total} programs, {self.outputs} outputs, {rate:.1f}/s, {self.new} differences" + (
            f"; known: {known}" if known else ""
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
