"""Two jobs on this host, each in a process of its own with default settings: whether each gets its fair share.

    ./dev bench elastic/neighbours --apart 0 40 [--graphs 0 3] [--seed 1] [--cold 60] [--steady 20]

The second begins `--apart` seconds after the first. When both have had `--cold` seconds, their rates and what they
change are taken over `--steady` periods. The fair share is what each gets with half of the CPUs to itself, while the
other runs on the other half: no queues there with one CPU each, defaults with more. Both take turns, twice. For a quiet
machine; graphs are those of `bench/elastic`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from bench.elastic.graphs import drawn
from bench.elastic.live import Live, Setting
from bench.harness import arguments_of

FAIR = 0.8  # of a job's share


def tenant(options: argparse.Namespace) -> None:
    """One job, in this process; prints what it came to as JSON."""
    if options.cpus:
        os.sched_setaffinity(0, options.cpus)
    time.sleep(options.wait)
    with Live(drawn(options.graph, options.seed).build(), 1.0) as live:
        if len(options.cpus) == 1:
            live.stop_adapting()
            time.sleep(3.0)
            rate, changes = live.rate(Setting(1, frozenset()), options.steady), 0
        else:
            live.adapts(options.cold)
            before, began = live.counted(), time.perf_counter()
            changes = live.changes(options.steady)
            rate = (live.counted() - before) / (time.perf_counter() - began)
        print(json.dumps({"rate": rate, "changes": changes}))
        sys.stdout.flush()
        time.sleep(options.after)


def together(
    options: argparse.Namespace, graph: int, apart: float, cpus: Sequence[Sequence[int]]
) -> list[dict[str, float]]:
    """Two tenants at once; those with CPUs of their own begin together."""
    running = []
    for place in range(2):
        # both are measured at the same time, and both go on until both have been
        cold = options.cold + (apart if place == 0 else 0.0)
        wait = apart if place == 1 else 0.0
        command = [sys.executable, "-m", __spec__.name, "--tenant", "--graph", str(graph), "--seed", str(options.seed)]
        command += ["--wait", str(wait), "--cold", str(cold), "--steady", str(options.steady), "--after", "5"]
        command += ["--cpus", *map(str, cpus[place])] if cpus else []
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    found = []
    for one in running:
        out, _ = one.communicate()
        if one.returncode != 0:
            raise RuntimeError(f"a job ended with {one.returncode}: {out}")
        found.append(json.loads(out.splitlines()[-1]))
    return found


def main() -> int:
    parser = arguments_of("elastic/neighbours", __doc__)
    parser.add_argument("--apart", type=float, nargs="+", default=[0.0, 40.0], help="seconds between the starts (0 40)")
    parser.add_argument("--graphs", type=int, nargs="+", default=[0], help="numbers of graphs (0)")
    parser.add_argument("--seed", type=int, default=1, help="of the graphs (1)")
    parser.add_argument("--cold", type=float, default=60.0, help="seconds before anything is measured (60)")
    parser.add_argument("--steady", type=int, default=20, help="periods, of 1 s, that are measured (20)")
    for hidden in ("--wait", "--after"):
        parser.add_argument(hidden, type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--tenant", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--graph", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--cpus", type=int, nargs="+", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tenant:
        tenant(options)
        return 0
    every = sorted(os.sched_getaffinity(0))
    halves = every[: len(every) // 2], every[len(every) // 2 :]
    if not halves[0]:
        raise SystemExit("two jobs have no fair shares of one CPU that could be measured apart")
    missed = False
    for graph in options.graphs:
        for apart in options.apart:
            fair: list[float] = []
            shares: list[list[float]] = [[], []]
            changes = 0.0
            for _ in range(2):
                fair += [one["rate"] for one in together(options, graph, 0.0, halves)]
                for share, one in zip(shares, together(options, graph, apart, ()), strict=True):
                    share.append(one["rate"])
                    changes += one["changes"]
            first, second = (statistics.mean(share) / statistics.mean(fair) for share in shares)
            missed = missed or min(first, second) < FAIR
            print(
                f"{drawn(graph, options.seed).name}, {apart:.0f} s apart: {first:.2f} and {second:.2f} of the fair "
                f"share ({FAIR}); {changes:.0f} changes in {4 * options.steady} periods",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
