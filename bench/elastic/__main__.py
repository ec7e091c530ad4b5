"""Elasticity with default settings against the best static setting, on random graphs of the real engine.

    ./dev bench elastic --graphs 20 --seed 1 [--cold 30] [--steady 20] [--period 1] [--looks 40]

Each graph: elasticity from cold; then how often it changes something while the load stays as it is; then a search for
the best static setting in the same job; then what elasticity found and that best take turns, one after the other, until
the median of their ratios is known to 1 %, if 40 turns do. Prints a line for each graph, and the table's figures;
writes them to bench/results, those of some graphs of a seed beside those of all. For a quiet machine; the same seed
gives the same graphs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.elastic.graphs import Drawn, drawn
from bench.elastic.live import Live, Setting
from bench.elastic.search import best_static
from bench.elastic.turns import share_of
from bench.harness import arguments_of
from bench.provenance import machine_of

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
NEAR, MEDIAN, WORST, GRAPHS_NEAR = 0.95, 0.98, 0.90, 0.90  # the aims: 95 % of the best in 90 % of graphs, ...
GRAPHS = 20  # of a seed
QUIET = 0.95  # of graphs change nothing at constant load


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found on one graph.

    Args:
        number: of the graph.
        name: of its kind.
        share: rate of what elasticity found by that of the best, the median of the turns.
        manual: the same of no queue and one thread.
        found: what elasticity found.
        best: of the search.
        settled: seconds to the last change.
        changes: in the periods after `cold`.
        looked: settings that the search looked at.
        error: relative standard error of `share`.
    """

    number: int
    name: str
    share: float
    manual: float
    found: str
    best: str
    settled: float
    changes: int
    looked: int
    error: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.number:>3} {self.name:<18} {self.share:6.3f} ±{self.error:5.3f} of the best "
            f"(no queues {self.manual:5.3f}); found {self.found}; best {self.best}; last change after "
            f"{self.settled:.1f} s, then {self.changes}; {self.looked} looks"
        )


def outcome(number: int, graph: Drawn, options: argparse.Namespace) -> Outcome:
    """Run one graph."""
    draw = random.Random(options.seed * 7 + number)
    with Live(graph.build(), options.period) as live:
        live.adapts(options.cold)
        settled = live.settled_at()
        changes = live.changes(options.steady)
        found = live.stop_adapting()
        best, looked = best_static(live, found, options.looks, options.look, draw)
        few, turn = options.turns, options.turn
        share = share_of(
            lambda: live.rate(found, turn), lambda: live.rate(best, turn), few, max(few, options.most), options.error
        )
        manual = Setting(1, frozenset())
        least = share_of(lambda: live.rate(manual, turn), lambda: live.rate(best, turn), few, few, options.error)
    return Outcome(
        number,
        graph.name,
        share.share,
        least.share,
        str(found),
        str(best),
        settled,
        changes,
        looked,
        share.error,
    )


def summary(found: Sequence[Outcome]) -> str:
    """Return the figures of all graphs in words.

    >>> one = Outcome(0, "pipeline plain", 0.97, 0.6, "1 threads, 1 queues", "1 threads, 2 queues", 4.0, 0, 40)
    >>> print(summary([one]))
    1 graphs: 100 % within 5 % of the best (aim 90 %), median 0.970 (0.98), worst 0.970 (0.90), 10th percentile 0.970;
    last change after 4.0 s (median), 4.0 s (latest); nothing changed afterwards in 100 % (95 %)
    """
    shares = sorted(one.share for one in found)
    near = sum(share >= NEAR for share in shares) / len(shares)
    settled = [one.settled for one in found]
    quiet = sum(one.changes == 0 for one in found) / len(found)
    return (
        f"{len(found)} graphs: {near:.0%} within 5% of the best (aim {GRAPHS_NEAR:.0%}), median "
        f"{statistics.median(shares):.3f} ({MEDIAN}), worst {shares[0]:.3f} ({WORST:.2f}), 10th percentile "
        f"{shares[len(shares) // 10]:.3f};\nlast change after {statistics.median(settled):.1f} s (median), "
        f"{max(settled):.1f} s (latest); nothing changed afterwards in {quiet:.0%} ({QUIET:.0%})"
    ).replace("%", " %")


def meets(found: Sequence[Outcome]) -> bool:
    """Return whether the aims are met."""
    shares = [one.share for one in found]
    near = sum(share >= NEAR for share in shares) / len(shares)
    quiet = sum(one.changes == 0 for one in found) / len(found)
    return near >= GRAPHS_NEAR and statistics.median(shares) >= MEDIAN and min(shares) >= WORST and quiet >= QUIET


def results_name(seed: int, first: int, graphs: int) -> str:
    """Return the file of these graphs: a few of a seed don't take the place of all.

    >>> results_name(3, first=0, graphs=20), results_name(3, first=14, graphs=1)
    ('elastic-3.json', 'some-elastic-3-14-1.json')
    """
    return f"elastic-{seed}.json" if first == 0 and graphs >= GRAPHS else f"some-elastic-{seed}-{first}-{graphs}.json"


def main() -> int:
    parser = arguments_of("elastic", __doc__)
    parser.add_argument("--graphs", type=int, default=GRAPHS, help="how many (20)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (0)")
    parser.add_argument("--seed", type=int, default=1, help="of the graphs (1)")
    parser.add_argument("--cold", type=float, default=30.0, help="seconds that elasticity gets (30)")
    parser.add_argument("--steady", type=int, default=20, help="periods afterwards in which changes are counted (20)")
    parser.add_argument(
        "--period", type=float, default=1.0, help="seconds between two decisions (1, the default of jobs)"
    )
    parser.add_argument("--looks", type=int, default=40, help="static settings that are tried (40)")
    parser.add_argument("--look", type=float, default=0.2, help="seconds for each of them (0.2)")
    parser.add_argument("--turns", type=int, default=7, help="turns of what was found and the best, at least (7)")
    parser.add_argument("--most", type=int, default=40, help="turns, at most (40)")
    parser.add_argument("--error", type=float, default=0.01, help="standard error that takes no more turns (0.01)")
    parser.add_argument("--turn", type=float, default=0.5, help="seconds for each turn (0.5)")
    options = parser.parse_args()
    if options.turns < 2:
        parser.error("--turns: at least 2, as one turn says nothing of its error")
    found: list[Outcome] = []
    started = time.monotonic()
    for number in range(options.first, options.first + options.graphs):
        found.append(outcome(number, drawn(number, options.seed), options))
        print(f"{time.monotonic() - started:5.0f} s {found[-1]}", flush=True)
    print(summary(found))
    told: dict[str, Any] = {"machine": machine_of(), "cpus": os.cpu_count(), "options": vars(options)}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / results_name(options.seed, options.first, options.graphs)).write_text(
        json.dumps(told | {"graphs": [asdict(one) for one in found]}, indent=1), encoding="utf-8"
    )
    return 0 if meets(found) else 1


if __name__ == "__main__":
    sys.exit(main())
