"""IPDPS'09 Fig. 4: light and medium work on both machines (C004-1, C004-2)."""

from __future__ import annotations

import statistics

from bench.figures.elastic_operator import WORKLOADS, elastic, static_curve
from bench.figures.figure import Claim, Figure, Row
from bench.plant.constants import OPTERON, POWER5
from bench.plant.play import Journal


def figure(_small: bool) -> Figure:
    panels, claims = panels_of(("light", "medium"))
    claims.append(
        Claim(
            "C004-2",
            "light and medium work: the overhead is detected, and the level backs off",
            ", ".join(f"{name}: {journal.last.threads} threads" for name, (_, journal, _) in panels.items()),
            all(journal.last.threads <= best + 2 for _, journal, best in panels.values()),
        )
    )
    return figure_of("ipdps09_fig04", panels, claims)


Panels = dict[str, tuple[dict[int, float], Journal, int]]


def panels_of(workloads: tuple[str, ...]) -> tuple[Panels, list[Claim]]:
    """Run both machines."""
    panels: Panels = {}
    claims = []
    for machine in (OPTERON, POWER5):
        for name in workloads:
            rates = static_curve(machine, WORKLOADS[name])
            journal = elastic(machine, WORKLOADS[name])
            best = max(rates, key=rates.__getitem__)
            panels[f"{machine.name}, {name}"] = rates, journal, best
            reached = statistics.fmean(one.true_rate for one in journal.passes[-30:]) / rates[best]
            claims.append(
                Claim(
                    "C004-1",
                    f"{machine.name}, {name}: settles at or very near the best static level",
                    f"{reached:.0%} of the best, {journal.last.threads} threads, best {best}",
                    reached >= 0.9,
                )
            )
    return panels, claims


def figure_of(name: str, panels: Panels, claims: list[Claim]) -> Figure:
    """Static curves with the elastic result."""
    rows: list[Row] = [
        {
            "case": case,
            "threads": threads,
            "rate": rate,
            "elastic": journal.last.true_rate,
            "level": journal.last.threads,
        }
        for case, (rates, journal, _) in panels.items()
        for threads, rate in rates.items()
    ]

    return Figure(name, rows, claims)
