"""What a change of regions costs and brings, on real PEs: small tables, and JSON in bench/results.

    python -m bench.rescale [pauses] [dips] [--megabytes 100] [--rate 20000] [--changes 8] [--in-process]

`pauses`: how long a change takes as a whole, and how long tuples of moving keys and of others wait meanwhile. `dips`:
how throughput goes when the source makes what it can. On a Ray of this machine, or with `--in-process` without.
Targets: R13 and C003-8, which `./dev bench page` puts on the page of results.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.figures.figure import Claim, Kind, write_claims
from bench.harness import arguments_of
from bench.rescale import pauses

RESULTS = Path(__file__).resolve().parents[1] / "results"
MOST_SECONDS, MOST_OTHERS, MOST_MOVING = 1.0, 20.0, 250.0  # s, ms, ms: C003-8, R13
MOST_DIP, MOST_BACK = 0.3, 3.0  # share, s: C003-8, R13


def verdict(met: bool) -> str:
    return "met" if met else "NOT MET"


def cost_of_changes(changes: Sequence[pauses.Change], dips: Sequence[pauses.Dip], megabytes: int) -> Claim:
    """What the page of results says of Fig. 16: how long a rebalance took, how deep throughput fell, and how long."""
    seconds, deepest = max(c.seconds for c in changes), max(1 - d.deepest / d.before for d in dips)
    back = max(d.back for d in dips)
    holds = deepest <= MOST_DIP and back <= MOST_BACK
    ours = f"{megabytes} MB of state: {seconds:.2f} s and {deepest:.0%} down at most, back after {back:.1f} s"
    remark = "" if holds else "the state is copied on the cores that the tuples need: two here"
    return Claim("C003-8", "a rebalance: more than 30 % down, for 3 s (Fig. 16)", ours, holds, Kind.MEASURED, remark)


def main() -> int:
    parser = arguments_of("rescale", __doc__)
    parser.add_argument("parts", nargs="*", choices=("pauses", "dips", []), metavar="PART")
    parser.add_argument("--megabytes", type=int, default=100, help="of state (default: 100)")
    parser.add_argument("--rate", type=float, default=20_000.0, help="tuples/s of the paced source (default: 20000)")
    parser.add_argument("--changes", type=int, default=8, help="of each kind, for dips (default: 8)")
    parser.add_argument("--in-process", action="store_true", help="without Ray")
    parser.add_argument("--json", type=Path, default=RESULTS / "rescale.json", metavar="FILE")
    options = parser.parse_args()
    parts = options.parts or ["pauses", "dips"]
    told: dict[str, Any] = {"cpus": os.cpu_count(), "on": "process" if options.in_process else "ray"}
    if "pauses" in parts:
        changes = pauses.pauses(options.megabytes, options.rate, on_ray=not options.in_process)
        told["pauses"] = [asdict(change) for change in changes]
        print(f"{'change':<28} {'whole':>8} {'others wait':>12} {'moving wait':>12} {'before':>8}")
        for c in changes:
            print(f"{c.what:<28} {c.seconds:6.2f} s {c.others:9.1f} ms {c.moving:9.1f} ms {c.usual:5.1f} ms")
        for what, most, worst in (
            ("a change, s", MOST_SECONDS, max(c.seconds for c in changes)),
            ("wait of other keys, ms", MOST_OTHERS, max(c.others for c in changes)),
            ("wait of moving keys, ms", MOST_MOVING, max(c.moving for c in changes)),
        ):
            print(f"  {what}: {worst:.2f} of at most {most:g}: {verdict(worst <= most)}")
    if "dips" in parts:
        found = pauses.dips(options.megabytes, options.changes, on_ray=not options.in_process)
        told["dips"] = [asdict(dip) for dip in found]
        mean = f"mean of {options.changes} changes"
        print(f"{mean:<28} {'before':>12} {'usual':>12} {'least':>12} {'after':>12} {'dip':>6} {'back after':>11}")
        for d in found:
            dip = 1 - d.deepest / d.before
            rates = "".join(f" {rate / 1e6:8.3f} M/s" for rate in (d.before, d.usual, d.deepest, d.after))
            print(f"{d.what:<28}{rates} {dip:6.0%} {d.back:9.2f} s")
            met = dip <= MOST_DIP and d.back <= MOST_BACK
            print(f"  at most {MOST_DIP:.0%}, back in {MOST_BACK:g} s: {verdict(met)}")
    if "pauses" in parts and "dips" in parts and not options.in_process:
        (RESULTS / "figures").mkdir(parents=True, exist_ok=True)
        write_claims([cost_of_changes(changes, found, options.megabytes)], RESULTS / "figures" / "rescale.claims.csv")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(told, indent=1) + "\n")
    print(options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
