"""Middleware'19 Fig. 10: data-parallel graphs with a counting sink (C000-9)."""

from __future__ import annotations

from bench.figures.figure import Claim, Figure
from bench.figures.plants import making, skewed
from bench.figures.throughputs import outcome
from bench.plant.constants import POWER8, XEON
from bench.plant.graph import data_parallel


def figure(small: bool) -> Figure:
    outcomes = []
    for machine in (XEON,) if small else (XEON, POWER8):
        for spread in ("balanced", "skewed"):
            for width in (50, 100):
                for payload in (128, 16384) if small else (128, 1024, 16384):
                    costs = [100 * machine.flop] * width if spread == "balanced" else skewed(width, machine.flop, 1)
                    case = f"{machine.name} {spread}\nwidth {width} {payload} B"
                    outcomes.append(
                        outcome(case, data_parallel(costs, payload=payload, source_cost=making(payload)), machine)
                    )
    worst = min(one.thread_count / one.manual for one in outcomes)
    least = min(one.ours / one.manual for one in outcomes)
    printed = min(one.paper / one.manual for one in outcomes)
    claim = Claim(
        "C000-9",
        "thread-count elasticity sometimes below manual, multi-level never",
        f"at worst {worst:.2f} of manual; multi-level at worst {least:.2f} (paper variant {printed:.2f})",
        worst < 1 and least >= 0.97,
    )

    rows = [one.row() for one in outcomes]
    return Figure("middleware19_fig10", rows, (claim,))
