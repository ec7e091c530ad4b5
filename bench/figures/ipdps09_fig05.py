"""IPDPS'09 Fig. 5: heavy and extra heavy work on both machines (C004-1)."""

from __future__ import annotations

from bench.figures.figure import Claim, Figure
from bench.figures.ipdps09_fig04 import figure_of, panels_of


def figure(_small: bool) -> Figure:
    panels, claims = panels_of(("heavy", "extra heavy"))
    levels = {name: (journal.last.threads, best) for name, (_, journal, best) in panels.items()}
    claims.append(
        Claim(
            "C004-1",
            "about 4 threads on 4 cores, 16 and not 32 on 16 cores with SMT",
            ", ".join(f"{name}: {level} (best {best})" for name, (level, best) in levels.items()),
            all(
                (3 <= level <= 5) if name.startswith("Opteron") else (13 <= level <= 19)
                for name, (level, _) in levels.items()
            ),
        )
    )
    return figure_of("ipdps09_fig05", panels, claims)
