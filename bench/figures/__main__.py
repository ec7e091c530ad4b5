"""The papers' figures, simulated on the papers' machines: a CSV each, and one table of claims.

    python -m bench.figures --all [--small] [-o FOLDER]
    python -m bench.figures NAME ...

The table has a line for each claim, by its id; one that isn't reproduced says why, or the exit status is 1. `noise` is
the stability figure R14, `noise_held_out` the same on seeds that nobody has tuned on. `applications`, `measured`,
`settled_job` and `validate_plant` run real PEs and want a quiet machine; they are run by name only.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.figures.figure import Claim, Figure, Kind, unexplained, write_table
from bench.harness import arguments_of

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
    "joker",
    "noise",
    "noise_held_out",
)
ASKED_FOR = (
    *(f"C000-{number}" for number in (3, 6, 7, 9, 12, 13)),
    *("C002-4", "C002-6", "C004-1", "C004-3", "C001-1", "C001-2"),
    *(f"C003-{number}" for number in range(1, 12)),
)
ON_THIS_MACHINE = ("applications", "measured", "settled_job", "validate_plant")  # real engine: not among --all


def _make(name: str, small: bool, output: Path) -> tuple[Kind, list[Claim], float]:
    started = time.perf_counter()
    made: Figure = importlib.import_module(f"bench.figures.{name}").figure(small)
    made.save(output)
    return made.kind, list(made.claims), time.perf_counter() - started


def main(arguments: Sequence[str]) -> int:
    parser = arguments_of("figures", __doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES + ON_THIS_MACHINE))
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--small", action="store_true", help="fewer cases and seeds")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "bench" / "results" / "figures", metavar="FOLDER")
    options = parser.parse_args(arguments)
    names = NAMES if options.all else tuple(options.names)
    if not names or set(names) - {*NAMES, *ON_THIS_MACHINE}:
        parser.error(f"give --all or some of: {', '.join(NAMES + ON_THIS_MACHINE)}")
    claims: list[Claim] = []
    with ProcessPoolExecutor(min(len(names), os.cpu_count() or 1)) as processes:
        for name, made in [(n, processes.submit(_make, n, options.small, options.output)) for n in names]:
            kind, found, seconds = made.result()
            claims += found
            print(f"{name} ({kind.value}, {seconds:.0f} s)", flush=True)
            for claim in found:
                print(f"  {'yes' if claim.holds else 'NO ':3} {claim.id:8} {claim.claim}: {claim.ours}", flush=True)
    claims.sort(key=lambda claim: [int(part) if part.isdigit() else 0 for part in claim.id.strip("CR").split("-")])
    write_table(claims, options.output)
    print("\n| claim | | class | of the paper | here | why |\n|---|---|---|---|---|---|")
    for claim in claims:
        verdict = "reproduced" if claim.holds else "differs"
        print(f"| {claim.id} | {verdict} | {claim.kind.value} | {claim.claim} | {claim.ours} | {claim.remark} |")
    open_claims = unexplained(claims)
    missing = sorted(set(ASKED_FOR) - {claim.id for claim in claims}) if options.all else []
    differ = sum(not claim.holds for claim in claims)
    print(f"{len(claims)} claims, {differ} differ, unexplained: {open_claims}, missing: {missing}; in {options.output}")
    return 1 if open_claims or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
