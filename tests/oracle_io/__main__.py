"""Compares what readers and writers make of files and frames with what their formats say: `./dev oracle-io [PROGRAMS] [--seed S]`.

Ends with 0 where nothing differs, and says for everything else what was read, how, and what is wrong with it.
"""

# ruff: noqa: E501  (tables of values, and times without a zone)

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.oracle.alone import limited
from tests.oracle.pool import Pool
from tests.oracle.report import say
from tests.oracle_io.compare import Difference, differences
from tests.oracle_io.generate import program
from tests.oracle_io.plants import PLANTS

STOPPED = 130  # what a shell gives for Ctrl-C
STINT = 1000  # programs that a process compares before another takes over
LIMIT = 60  # seconds of a processor for one program, after which it counts as hung
SHOWN = 40  # differences


@dataclass(frozen=True)
class Options:
    """Of a run."""

    seed: int
    plant: str | None


@dataclass(frozen=True)
class Result:
    """What came of one program."""

    number: int
    reader: str
    found: tuple[Difference, ...] = ()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev oracle-io", description=__doc__)
    parser.add_argument("programs", nargs="?", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--seed", type=int, default=1, help="other programs for each (1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first program (0)")
    parser.add_argument("--only", type=int, help="one program, by its number; shows its files")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes (one for each core)")
    parser.add_argument("--plant", choices=sorted(PLANTS), help="a fault that is planted, and has to be found")
    given = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell that starts it in the background ignores Ctrl-C for it
        signal.signal(number, signal.default_int_handler)
    options = Options(given.seed, given.plant)
    if given.only is not None:
        return only(given.only, options)
    return run(options, range(given.first, given.first + given.programs), given.jobs)


def run(options: Options, numbers: range, jobs: int) -> int:
    """Runs programs in processes of their own."""
    counts: Counter[str] = Counter()
    pool = Pool(jobs, options, batch, lambda number, said: Result(number, "", (Difference("died", said),)))
    started, stopped, wrong = time.monotonic(), False, 0
    try:
        for result in pool.results(numbers, max(1, min(STINT, -(-len(numbers) // jobs)))):
            counts[result.reader or "died"] += 1
            for found in result.found:
                wrong += 1
                if wrong <= SHOWN:
                    say(
                        f"{found.kind}: ./dev oracle-io --seed {options.seed} --only {result.number}\n    {found.text[:400]}"
                    )
    except KeyboardInterrupt:
        pool.stop()
        stopped = True
    rate = sum(counts.values()) / max(1e-9, time.monotonic() - started)
    by_reader = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    say(
        f"{sum(counts.values())} of {len(numbers)} programs ({by_reader}), {rate:.1f}/s, {wrong} differences",
        to=sys.stderr,
    )
    return 1 if wrong else STOPPED if stopped else 0


def only(number: int, options: Options) -> int:
    """Runs one program here, and shows all of it."""
    made, engine, block = program(options.seed, number)
    say(f"{made.reader} {made.options}, by a job: {engine}, blocks: {block or 'as users have them'}")
    for content in made.files:
        say(repr(content))
    if made.table is not None:
        say(str(made.table))
    found = compared(number, options)
    for one in found:
        say(f"{one.kind}: {one.text}")
    return 1 if found else 0


def compared(number: int, options: Options) -> tuple[Difference, ...]:
    """What is wrong with what comes of a program."""
    made, engine, block = program(options.seed, number)
    with PLANTS[options.plant]() if options.plant else contextlib.nullcontext():
        return tuple(differences(made, engine=engine, block=block))


def batch(numbers: range, options: Options, conn: Any) -> None:
    """Compares the programs of these numbers; sends what it starts and what came of it."""
    for number in numbers:
        conn.send(number)
        limited(LIMIT)
        try:
            found = compared(number, options)
        except Exception as error:
            found = (Difference("oracle", f"{type(error).__name__}: {error}"),)
        conn.send(Result(number, program(options.seed, number)[0].reader, found))
    conn.send(None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
