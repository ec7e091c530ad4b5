"""What checkpoints cost and how soon a job goes on after a loss, beside the goals; small tables.

    python -m bench.survival [cost] [recovery] [--python] [--megabytes 100] [--every 1] [--seconds 10] [--rounds 3]
                             [--losses 3]

`cost`: rows/s and latency in this process with a checkpoint a second and with none, in turn, while a tenth of the keys
is touched again each second; `still` is how long the operator with the state took nothing: latency doesn't show that:
a source that waits sends no marks. With `--python` a key has a Python value, some 4,000 of them a megabyte.
`recovery`: seconds from SIGKILL of the element that has the state until rows come out again, on Ray.
"""

from __future__ import annotations

import statistics
import sys

from bench.harness import arguments_of
from bench.survival.cost import compare
from bench.survival.load import keys_of
from bench.survival.recovery import first_output

MOST_COST = 0.03  # of throughput
MOST_LATENCY = 0.005  # seconds more, p99
MOST_PAUSE = 0.001  # seconds
AGAIN_BASE, AGAIN_A_GB = 1.5556, 4.4444  # seconds until output: 2 with 100 MB, 6 with 1 GB


def verdict(met: bool) -> str:
    return "met" if met else "NOT MET"


def cost(megabytes: int, every: float, seconds: float, rounds: int, *, python: bool) -> None:
    without, with_them = compare(megabytes, every, seconds, rounds, python=python)
    kept = f"{keys_of(megabytes):,} Python values by key" if python else f"{megabytes} MB of keyed state"
    print(f"{kept}, a tenth of it touched again each second, {seconds:g} s each")
    titles = ("checkpoints", "rows/s", "p50", "p99", "taken", "given up", "last took", "still")
    print("{:<12} {:>12} {:>9} {:>9} {:>6} {:>9} {:>10} {:>9}".format(*titles))
    for off, on in zip(without, with_them, strict=True):
        for name, one in (("none", off), (f"each {every:g} s", on)):
            print(
                f"{name:<12} {one.rate:>12,.0f} {one.p50 * 1e3:>6.2f} ms {one.p99 * 1e3:>6.2f} ms {one.taken:>6} "
                f"{one.abandoned:>9} {one.seconds:>8.2f} s {one.still * 1e3:>6.1f} ms"
            )
    lost = 1 - statistics.median(on.rate / off.rate for off, on in zip(without, with_them, strict=True))
    later = statistics.median(on.p99 - off.p99 for off, on in zip(without, with_them, strict=True))
    still = max(one.still for one in with_them) - max(one.still for one in without)
    print(f"  throughput: {lost:.1%} less, at most {MOST_COST:.0%}: {verdict(lost <= MOST_COST)}")
    print(f"  p99 latency: {later * 1e3:+.1f} ms, at most {MOST_LATENCY * 1e3:g} ms: {verdict(later <= MOST_LATENCY)}")
    print(f"  operator still: {still * 1e3:+.1f} ms, at most {MOST_PAUSE * 1e3:g} ms: {verdict(still <= MOST_PAUSE)}")


def recovery(megabytes: int, losses: int) -> None:
    found = first_output(megabytes, losses)
    most = AGAIN_BASE + AGAIN_A_GB * megabytes / 1000
    shown = ", ".join(f"{seconds:.2f}" for seconds in found)
    middle = statistics.median(found)
    print(f"{megabytes} MB: rows again {shown} s after SIGKILL")
    print(f"  median: {middle:.2f} s, at most {most:.1f} s: {verdict(middle <= most)}")


def main() -> int:
    parser = arguments_of("survival", __doc__)
    parser.add_argument("parts", nargs="*", choices=("cost", "recovery", []), metavar="PART")
    parser.add_argument("--python", action="store_true", help="cost: Python values in place of records")
    parser.add_argument("--megabytes", type=int, default=100, help="of state (default: 100)")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two checkpoints (default: 1)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a round (default: 10)")
    parser.add_argument("--rounds", type=int, default=3, help="with and without, in turn (default: 3)")
    parser.add_argument("--losses", type=int, default=3, help="elements that are killed (default: 3)")
    options = parser.parse_args()
    parts = options.parts or ["cost", "recovery"]
    if "cost" in parts:
        cost(options.megabytes, options.every, options.seconds, options.rounds, python=options.python)
    if "recovery" in parts:
        recovery(options.megabytes, options.losses)
    return 0


if __name__ == "__main__":
    sys.exit(main())
