"""A region of four operators with state by key, with all defaults, beside WindFlow in its best form.

    ./dev bench windflow WINDFLOW FASTFLOW [--multiplications 1 64 256] [--rounds 3] [--seconds 4] [--after 8]

`WINDFLOW` and `FASTFLOW`: their source folders (github.com/ParaGroup/WindFlow, github.com/fastflow/fastflow), which
nothing else here needs. They take turns: WindFlow in one thread, with a queue between two, and replicated by key, of
which the best counts; ours from `after` seconds after the start on.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.micro.keyed_cores import DEFAULTS, ENDLESS, rate
from rayelastic.topologies import joker_regions

SOURCE = Path(__file__).with_name("region.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-w", "-DFF_BOUNDED_BUFFER", "-DNO_DEFAULT_MAPPING", "-pthread")
FORMS = ("fused", "queued", "replicated")
KEYS = 10_000
FIRST, LONGEST = 1_000_000, 1 << 28  # tuples of a run that says how many fill the time, and of any


def compiled(windflow: Path, fastflow: Path, folder: Path) -> Path:
    """Return the program that runs the region in WindFlow."""
    program = folder / "region"
    includes = [f"-I{windflow / 'wf'}", f"-I{fastflow}"]
    subprocess.run(["g++", *FLAGS, *includes, str(SOURCE), "-o", str(program)], check=True)
    return program


def of_windflow(program: Path, form: str, multiplications: int, tuples: int) -> float:
    """Tuples a second."""
    given = [str(program), form, str(multiplications), str(KEYS), str(tuples)]
    return float(subprocess.run(given, check=True, capture_output=True, text=True).stdout.split()[-1])


def ours(multiplications: int, after: float, seconds: float) -> float:
    """Tuples a second behind the last of the four, with all defaults."""
    made = joker_regions.build("flow", multiplications, KEYS, ENDLESS)
    return rate(made, DEFAULTS, after, seconds, "multiply3")


def compare(program: Path, multiplications: int, options: argparse.Namespace) -> None:
    """Print one line."""
    first = of_windflow(program, FORMS[0], multiplications, FIRST)
    tuples = min(LONGEST, int(first * options.seconds))
    found: dict[str, list[float]] = {form: [] for form in ("ours", *FORMS)}
    for _ in range(options.rounds):
        for form in FORMS:
            found[form].append(of_windflow(program, form, multiplications, tuples))
        found["ours"].append(ours(multiplications, options.after, options.seconds))
    medians = {form: statistics.median(rates) for form, rates in found.items()}
    best = max(FORMS, key=medians.__getitem__)
    told = ", ".join(f"{form} {value / 1e6:.2f}" for form, value in medians.items())
    ratio = medians["ours"] / medians[best]
    sys.stdout.write(
        f"{multiplications:>4} multiplications each, {KEYS:,} keys: {told} M tuples/s: {ratio:.2f} of WindFlow's best\n"
    )
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("windflow", type=Path)
    parser.add_argument("fastflow", type=Path)
    parser.add_argument("--multiplications", type=int, nargs="+", default=[1, 64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--after", type=float, default=8.0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(options.windflow, options.fastflow, Path(folder))
        for multiplications in options.multiplications:
            compare(program, multiplications, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
