"""Measures a work on several systems and prints one table; every measurement goes to bench/results as well."""

from __future__ import annotations

import argparse
import csv
import json
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.harness import arguments_of
from bench.peers.systems import ROOT, SYSTEMS, NotInstallableError, System
from bench.peers.work import Work, works
from bench.provenance import stamp

RESULTS = ROOT / "bench" / "results"
SMALL = 10  # items of the input that warms up and that measures start-up
TIMEOUT = 600  # seconds for one run of one program


@dataclass(slots=True)
class Measured:
    """What was seen of one system."""

    system: System
    python: Path | None = None
    absent: str = ""
    start_up: float = 0.0
    runs: list[dict[str, float | int | str]] = field(default_factory=list)

    def median(self, what: str) -> float:
        """Return the median of a measured value over the rounds."""
        return statistics.median(float(run[what]) for run in self.runs)


def main() -> int:
    known = works()
    parser = arguments_of("peers", __doc__)
    parser.add_argument("--work", choices=known, default="word_count")
    parser.add_argument(
        "--systems",
        nargs="+",
        choices=SYSTEMS,
        metavar="SYSTEM",
        help="by default all that have a program for the work",
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all systems (default: %(default)s)")
    parser.add_argument("--items", type=int, help="a smaller input, to try things out")
    options = parser.parse_args()
    return compare(known[options.work], options)


def compare(work: Work, options: argparse.Namespace) -> int:
    """Measure one work, and reports; 1 if results differ or a system is absent."""
    items = options.items or work.items
    wanted = options.systems or [name for name in SYSTEMS if work.program(name).exists()]
    measured = [prepare(work, SYSTEMS[name]) for name in wanted]
    present = [one for one in measured if not one.absent]
    full, small = work.input(RESULTS / "input", items), work.input(RESULTS / "input", SMALL)

    for one in present:
        run_once(work, one, small)  # the first one fills caches of compiled code
        started = time.perf_counter()
        if run_once(work, one, small):
            one.start_up = time.perf_counter() - started
    for number in range(options.rounds):
        for one in present:
            if one.absent:
                continue
            if sys.stderr.isatty():
                print(
                    f"\rround {number + 1}/{options.rounds}: {one.system.name:<16}\r",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
            found = run_once(work, one, full, small)
            if found:
                one.runs.append(found)

    agree = check_equal(measured)
    report(work, items, measured)
    save(work, items, measured)
    return 0 if agree and not any(one.absent for one in measured) else 1


def prepare(work: Work, system: System) -> Measured:
    """Find the program and the environment of a system."""
    one = Measured(system)
    program = work.program(system.name)
    if not program.exists():
        one.absent = f"has no program for {work.name}"
        return one
    try:
        one.python = system.python()
    except NotInstallableError as error:
        one.absent = f"can't be installed: {error}"
    return one


def run_once(work: Work, one: Measured, *inputs: Path) -> dict[str, float | int | str] | None:
    """One run in a fresh process; a failure is noted and ends the measuring of that system."""
    command = [str(one.python), str(Path(__file__).with_name("measure.py")), str(work.program(one.system.name))]
    try:
        done = subprocess.run(
            [*command, *map(str, inputs)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=one.system.variables(),
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        one.absent = f"took longer than {TIMEOUT} s"
        return None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        one.absent = "failed: " + next((line.strip() for line in lines if "Error: " in line), lines[-1])
        return None
    found: dict[str, float | int | str] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def check_equal(measured: list[Measured]) -> bool:
    """Return whether all systems found the same result in every round."""
    digests = {one.system.name: {run["digest"] for run in one.runs} for one in measured if one.runs}
    agree = len(set().union(*digests.values())) <= 1
    if not agree:
        print("RESULTS DIFFER: " + "; ".join(f"{name}: {len(found)} different" for name, found in digests.items()))
    return agree


def report(work: Work, items: int, measured: list[Measured]) -> None:
    """Print the table."""
    tuples = work.tuples * items / work.items
    medians = {one.system.name: one.median("seconds") for one in measured if one.runs and not one.absent}
    print(f"{work.name}: {work.description}; {items:,} {work.item}s, {tuples:,.0f} {work.tuple_name}")
    print(f"{platform.machine()}, Python {platform.python_version()}, medians, rounds alternated\n")
    head = (
        f"M {work.tuple_name}/s",
        f"ns/{work.item}",
        "x bytewax",
        "x cpython",
        "cores",
        "start-up",
        "peak MiB",
    )
    print(f"{'system':<12}" + "".join(f"{title:>14}" for title in head))
    for one in measured:
        name = one.system.name
        if one.absent:
            print(f"{name:<12}  {one.absent}")
            continue
        seconds = medians[name]
        cells = [
            f"{tuples / seconds / 1e6:.2f}",
            f"{seconds / items * 1e9:,.0f}",
            *(f"{medians[other] / seconds:.2f}" if other in medians else "-" for other in ("bytewax", "cpython")),
            f"{one.median('cpu_seconds') / seconds:.2f}",
            f"{one.start_up:.2f} s",
            f"{one.median('peak_bytes') / 2**20:.0f}",
        ]
        print(f"{name:<12}" + "".join(f"{cell:>14}" for cell in cells))
    rows = {run["rows"] for one in measured for run in one.runs}
    print(f"\nrows in the result: {', '.join(str(count) for count in sorted(rows, key=str))}")


def save(work: Work, items: int, measured: list[Measured]) -> None:
    """Write every measurement as CSV."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    made: dict[str, float | int | str] = {**stamp()}
    rows = [
        made
        | {
            "work": work.name,
            "items": items,
            "system": one.system.name,
            "round": number,
            "start_up": one.start_up,
            **run,
        }
        for one in measured
        for number, run in enumerate(one.runs)
    ]
    rows += [
        made | {"work": work.name, "items": items, "system": one.system.name, "absent": one.absent}
        for one in measured
        if one.absent
    ]
    if rows:
        with (RESULTS / f"peers-{work.name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
            writer.writeheader()
            writer.writerows(rows)
    print(f"every measurement: {(RESULTS / f'peers-{work.name}.csv').relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
