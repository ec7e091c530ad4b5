"""Middleware'19 Fig. 12: a bushy graph of 82 operators by cores, cost and payload (C000-11)."""

from __future__ import annotations

from bench.figures.figure import Claim, Figure
from bench.figures.plants import making
from bench.figures.throughputs import outcome
from bench.plant.constants import XEON
from bench.plant.graph import bushy


def figure(small: bool) -> Figure:
    found = {}
    for cores in (16,) if small else (16, 48, 88):
        for flops in (1, 10_000) if small else (1, 100, 10_000):
            for payload in (128, 16384) if small else (128, 1024, 16384):
                graph = bushy(5, flops * XEON.flop, payload=payload, source_cost=making(payload))
                case = f"{cores} cores\n{flops} FLOP {payload} B"
                found[cores, flops, payload] = outcome(case, graph, XEON, cores=cores)
    corner = [one for key, one in found.items() if key[1:] == (1, 16384)]
    dear = [one for key, one in found.items() if key[1:] == (10_000, 128)]
    claims = (
        Claim(
            "C000-11",
            "16 KiB, 1 FLOP: more than 50 % better, threads from 4 to 2",
            f"{min(one.over_thread_count for one in corner):.1f}x and more, threads "
            f"{corner[0].thread_count_threads} to {corner[0].ours_threads}",
            min(one.over_thread_count for one in corner) > 1.5
            and 3 <= corner[0].thread_count_threads <= 5
            and corner[0].ours_threads <= 3,
            remark="thread-count elasticity goes to 16 threads on the simulated machine, the paper's stopped at 4",
        ),
        Claim(
            "C000-11",
            "the benefit is high when tuples are cheap",
            f"{min(one.over_thread_count for one in corner):.1f}x at 1 FLOP, "
            f"{max(one.over_thread_count for one in dear):.2f}x at 10,000",
            min(one.over_thread_count for one in corner) > max(one.over_thread_count for one in dear),
        ),
    )
    outcomes = list(found.values())

    rows = [one.row() for one in outcomes]
    return Figure("middleware19_fig12", rows, claims)
