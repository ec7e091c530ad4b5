"""Middleware'19 Fig. 1: throughput of a pipeline by share of operators with a queue, payload and cores (C000-1)."""

from __future__ import annotations

from bench.figures.figure import Claim, Figure, Row
from bench.figures.plants import making, ours, plant, settled
from bench.plant.constants import XEON
from bench.plant.fixed_configuration import FixedConfiguration
from bench.plant.graph import pipeline
from bench.plant.play import play

OPERATORS = 100
LEAST = 0.95  # of the best share; what is near it
SHARES = tuple(range(0, 101, 5))  # % of operators with a queue


def figure(small: bool) -> Figure:
    rows: list[Row] = []
    panels = []
    for cores in (16, 88) if small else (16, 32, 64, 88):
        for payload in (1, 1024) if small else (1, 128, 1024):
            graph = pipeline([100 * XEON.flop] * (OPERATORS - 1), payload=payload, source_cost=making(payload))
            rates = []
            for share in SHARES:
                fixed = FixedConfiguration.queued(cores, share * OPERATORS // 100)
                rates.append(play(fixed, plant(graph, XEON, cores=cores, noise=0.0), 3).last.true_rate)
            elastic, _ = settled(ours(graph), plant(graph, XEON, cores=cores), 80)
            best = SHARES[rates.index(max(rates))]
            panels.append((elastic / max(rates), best))
            rows += [
                {"cores": cores, "payload": payload, "dynamic": share, "rate": rate, "elastic": elastic}
                for share, rate in zip(SHARES, rates, strict=True)
            ]
    optima = [best for _, best in panels]
    near = min(share for share, _ in panels)
    claim = Claim(
        "C000-1",
        "the best is never at 100 % dynamic; the optimum moves; multi-level lands near it",
        f"best at {min(optima)} to {max(optima)} %; elastic at least {near:.1%} of the best",
        100 not in optima and len(set(optima)) > 1 and near >= LEAST,
    )

    return Figure("middleware19_fig01", rows, (claim,))
