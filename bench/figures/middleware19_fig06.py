"""Middleware'19 Fig. 6: how history and satisfaction factor shorten the adaptation of 500 operators (C000-12).

Counted in periods of 5 s. The paper's variants run in the papers' engine, where switching a port takes its 10 s; ours
in that, in one whose ports switch at once, and in our engine.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

from bench.figures.figure import Claim, Figure, Kind, Row
from bench.figures.plants import converged, making, ours, plant, skewed
from bench.plant.constants import ENGINE, PAPER_ENGINE, XEON
from bench.plant.graph import pipeline
from bench.plant.play import Journal, play
from rayelastic.papers.multi_level import (
    PaperMultiLevelElasticity,
    PaperMultiLevelThresholds,
    Satisfaction,
)
from rayelastic.policy.element.decision import Controller

OPERATORS, PAYLOAD = 500, 1024
PATIENCE = 60  # periods without a change after which a run counts as settled
PERIODS = 300
PAPER = {"plain": 200, "history": 160, "history, sf 0.6": None, "history, sf 0": 80}
TOLERANCE = 0.25
NEARLY = 0.95  # of the final throughput


def _variant(name: str) -> Controller:
    thresholds = {
        "plain": PaperMultiLevelThresholds(history=False, satisfaction=Satisfaction.NEVER),
        "history": PaperMultiLevelThresholds(satisfaction=Satisfaction.NEVER),
        "history, sf 0.6": PaperMultiLevelThresholds(),
        "history, sf 0": PaperMultiLevelThresholds(satisfaction_factor=0.0),
    }
    return PaperMultiLevelElasticity(thresholds[name])


def figure(small: bool) -> Figure:
    seeds = range(1) if small else range(9)
    runs: dict[str, list[Journal]] = {}
    for seed in seeds:
        graph = pipeline(skewed(OPERATORS, XEON.flop, seed), payload=PAYLOAD, source_cost=making(PAYLOAD))
        for name in PAPER:
            on = plant(graph, XEON, seed, exact_profile=True)
            runs.setdefault(name, []).append(play(_variant(name), on, PERIODS))
        for name, engine in (
            ("ours", replace(PAPER_ENGINE, switch=0.0)),
            ("ours, ports switch in 10 s", PAPER_ENGINE),
            ("ours, our engine", ENGINE),
        ):
            runs.setdefault(name, []).append(play(ours(graph), plant(graph, XEON, seed, engine), 105 if small else 150))
    settling = {n: statistics.median(j.settling_periods(PATIENCE) for j in js) for n, js in runs.items()}
    nearly = {n: statistics.median(map(_nearly_there, js)) for n, js in runs.items()}
    final = {n: statistics.median(converged(j) for j in js) for n, js in runs.items()}
    rows: list[Row] = [
        {"variant": name, "seed": seed, "settling_periods": journal.settling_periods(PATIENCE), **row}
        for name, journals in runs.items()
        for seed, journal in enumerate(journals)
        for row in journal.rows()
    ]
    skipped = {n: sorted(_skipped(js[0])) for n, js in runs.items() if n.startswith("history, sf")}
    claims = [
        Claim(
            "C000-12",
            f"{name}: settles after {periods} periods, within 25 %",
            f"{settling[name]:.0f} periods (median of {len(seeds)})",
            abs(settling[name] / periods - 1) <= TOLERANCE,
            Kind.FITTED,
            "switching a port takes 10 s, its bound in the released runtime; costs are profiled exactly",
        )
        for name, periods in PAPER.items()
        if periods
    ]
    finals = [final[name] for name in PAPER]
    claims += [
        Claim(
            "C000-12",
            "same final throughput in all variants",
            f"{min(finals):.3g} to {max(finals):.3g} tuples/s",
            min(finals) > 0.9 * max(finals),
        ),
        Claim(
            "C000-12",
            "sf 0.6 skips the search of queues at 8 and 16 threads, sf 0 also at 32",
            "; ".join(f"{name}: no search at {', '.join(map(str, levels))}" for name, levels in skipped.items()),
            {8, 16} <= set(skipped["history, sf 0.6"]) and 32 in skipped["history, sf 0"],
            Kind.FITTED,
            "first seed",
        ),
        *(
            Claim(
                "C000-12",
                "ours: at most 40 periods, equal or better final throughput",
                f"{name}: {settling[name]:.0f} periods, at {NEARLY:.0%} of its throughput after {nearly[name]:.0f}; "
                f"{final[name] / max(finals):.0%} of the paper variants' best",
                settling[name] <= 40
                and (name == "ours, our engine" or final[name] >= 0.99 * statistics.median(finals)),
                remark=("Each change of queues waits two periods for ports. " if "10 s" in name else "")
                + "The last periods are trials of a few percent, up to six periods each, where the most "
                "expensive operator bounds the throughput",
            )
            for name in ("ours", "ours, ports switch in 10 s", "ours, our engine")
        ),
    ]

    return Figure("middleware19_fig06", rows, claims)


def _nearly_there(journal: Journal) -> int:
    """Periods until a configuration was in force that gave nearly what the last one gives."""
    enough = NEARLY * converged(journal)
    return next(number for number, one in enumerate(journal, start=1) if one.true_rate >= enough)


def _skipped(journal: Journal) -> set[int]:
    """Thread counts at which no other queues were tried before the next thread count."""
    queues: dict[int, set[int]] = {}
    for one in journal:
        queues.setdefault(one.threads, set()).add(one.queues)
    return {threads for threads, tried in queues.items() if len(tried) == 1 and threads <= 32}
