"""PLDI'17 Fig. 9: 1,000 operators in a pipeline and side by side (C002-1, C002-2, C002-4)."""

from __future__ import annotations

from bench.figures.figure import Claim, Figure, Kind
from bench.figures.sweeps import Sweep, sweep
from bench.plant.constants import POWER8, XEON
from bench.plant.graph import data_parallel, pipeline

PAYLOAD = 64  # bytes; the paper's tuples carry next to nothing


def figure(small: bool) -> Figure:
    pipes: dict[tuple[str, int], Sweep] = {}
    wide: dict[tuple[str, int], Sweep] = {}
    for machine in (XEON, POWER8):
        for flops in (1, 1000) if small else (1, 100, 1000):
            graph = pipeline([flops * machine.flop] * 1000, payload=PAYLOAD)
            pipes[machine.name, flops] = sweep(f"{machine.name}, pipeline, {flops} FLOP", graph, machine)
        for flops in (1, 10_000) if small else (1, 10_000, 100_000):
            graph = data_parallel([flops * machine.flop] * 1000, payload=PAYLOAD)
            wide[machine.name, flops] = sweep(f"{machine.name}, data parallel, {flops} FLOP", graph, machine)
    gaps = {key: 1 - one.best / one.dedicated for key, one in pipes.items()}
    cheap = [one for (_, flops), one in wide.items() if flops == 1]
    xeon, power8 = wide[XEON.name, 10_000], wide[POWER8.name, 10_000]
    every = [*pipes.values(), *(one for key, one in wide.items() if key[1] != 1)]
    claims = (
        Claim(
            "C002-1",
            "the scheduler scales to more than 100 threads",
            f"best at {', '.join(str(one.best_threads) for one in pipes.values())} threads",
            all(max(o.best_threads for (on, _), o in pipes.items() if on == m.name) > 100 for m in (XEON, POWER8)),
            remark="on the simulated Xeon, of 88 cores with two hardware threads each, 96 threads are best",
        ),
        Claim(
            "C002-2",
            "dedicated > dynamic > manual; the gap shrinks from 60-40 % to about 25 % with cost",
            "gaps " + ", ".join(f"{name} {flops} FLOP: {gap:.0%}" for (name, flops), gap in gaps.items()),
            all(one.dedicated > one.best > one.manual for one in pipes.values())
            and all(0.4 <= gaps[m.name, 1] <= 0.6 and 0.15 <= gaps[m.name, 1000] <= 0.35 for m in (XEON, POWER8)),
            Kind.FITTED,
            "on Xeon it does; on the simulated Power8 the gap is smaller from the start",
        ),
        Claim(
            "C002-4",
            "data parallel, cost 1: sequential is best; cost 10,000: 8-10 threads on Xeon, 16-24 on Power8",
            f"manual {cheap[0].manual / cheap[0].best:.0f}x the best dynamic; elastic settles at "
            f"{xeon.elastic_threads} and {power8.elastic_threads}, best {xeon.best_threads} and {power8.best_threads}",
            all(one.manual > one.best for one in cheap)
            and 8 <= xeon.elastic_threads <= 10
            and 16 <= power8.elastic_threads <= 24,
            Kind.FITTED,
            "what a lock's handover costs is fitted to these thread counts",
        ),
        Claim(
            "C002-2",
            "elasticity finds the throughput of the best static thread count",
            f"at least {min(one.elastic / one.best for one in every):.0%} of it",
            min(one.elastic / one.best for one in every) > 0.85,
            remark="the paper's controller",
        ),
    )
    sweeps = [*pipes.values(), *wide.values()]

    rows = [row for one in sweeps for row in one.rows()]
    return Figure("pldi17_fig09", rows, claims)
