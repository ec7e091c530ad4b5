"""The papers' figures, simulated on the papers' machines: a CSV and a picture each, and one table of claims.

    python -m bench.figures --all [--small] [-o FOLDER]
    python -m bench.figures NAME ...

`noise` is the stability figure R14. `measured` and `validate_plant` run real processing elements and want a quiet
machine; they are run by name only.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from bench.figures.figure import Claim, Figure, write_table

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = (
    "middleware19_fig01",
    "middleware19_fig06",
    "middleware19_fig09",
    "middleware19_fig10",
    "middleware19_fig11",
    "middleware19_fig12",
    "middleware19_fig13",
    "middleware19_fig15a",
    "pldi17_fig09",
    "pldi17_fig10",
    "pldi17_fig11",
    "ipdps09_fig04",
    "ipdps09_fig05",
    "ipdps09_fig06",
    "elastic_load_balance",
    "noise",
    "plant_speed",
)
ON_THIS_MACHINE = ("measured", "settled_job", "validate_plant")  # real engine, quiet machine: not among --all


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES + ON_THIS_MACHINE))
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--small", action="store_true", help="fewer cases and seeds")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "bench" / "results" / "figures", metavar="FOLDER")
    options = parser.parse_args()
    names = NAMES if options.all else tuple(options.names)
    if not names or set(names) - {*NAMES, *ON_THIS_MACHINE}:
        parser.error(f"give --all or some of: {', '.join(NAMES + ON_THIS_MACHINE)}")
    claims: list[Claim] = []
    for name in names:
        started = time.perf_counter()
        made: Figure = importlib.import_module(f"bench.figures.{name}").figure(options.small)
        made.save(options.output)
        claims += made.claims
        print(f"{name} ({made.kind.value}, {time.perf_counter() - started:.0f} s)", flush=True)
        for claim in made.claims:
            print(f"  {'yes' if claim.holds else 'NO ':3} {claim.id:8} {claim.claim}: {claim.ours}", flush=True)
    write_table(claims, options.output)
    missed = sum(not claim.holds for claim in claims)
    print(f"{len(claims)} claims, {missed} not reproduced; in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
