"""PLDI'17 Fig. 10: ten pipelines of a hundred operators (C002-5)."""

from __future__ import annotations

from bench.figures.figure import Claim, Figure, Kind
from bench.figures.sweeps import Sweep, sweep
from bench.plant.constants import POWER8, XEON
from bench.plant.graph import mixed

PAYLOAD = 64  # bytes


def figure(small: bool) -> Figure:
    found: dict[tuple[str, int], Sweep] = {}
    for machine in (XEON, POWER8):
        for flops in (1, 1000) if small else (1, 100, 1000):
            graph = mixed([[flops * machine.flop] * 100] * 10, payload=PAYLOAD)
            found[machine.name, flops] = sweep(f"{machine.name}, {flops} FLOP", graph, machine)
    dear = found[XEON.name, 1000], found[POWER8.name, 1000]
    losses = [key for key, one in found.items() if one.best < max(one.manual, one.dedicated)]
    claims = (
        Claim(
            "C002-5",
            "at cost 1,000 all 184 threads on Power8, 80 of 176 on Xeon",
            f"best at {dear[1].best_threads} and {dear[0].best_threads}; elastic settles at {dear[1].elastic_threads} "
            f"and {dear[0].elastic_threads}",
            all(threads >= 160 for threads in (dear[1].best_threads, dear[1].elastic_threads))
            and all(72 <= threads <= 96 for threads in (dear[0].best_threads, dear[0].elastic_threads)),
            Kind.FITTED,
            "the best settings are there; the paper's rules settle at 128 threads on both machines",
        ),
        Claim(
            "C002-5",
            "dynamic is best everywhere",
            f"best in {len(found) - len(losses)} of {len(found)} cases",
            not losses,
            remark="the model knows no latency of 1,000 runnable threads: dedicated comes close at high cost",
        ),
    )
    sweeps = list(found.values())

    rows = [row for one in sweeps for row in one.rows()]
    return Figure("pldi17_fig10", rows, claims)
