"""IPDPS'09 Fig. 6: the level follows other processes' load, on 16 cores with SMT (C004-3)."""

from __future__ import annotations

import statistics

import numpy as np

from bench.figures.elastic_operator import WORKLOADS, elastic, operator
from bench.figures.figure import Claim, Figure, Row
from bench.figures.plants import ours
from bench.plant.constants import POWER5
from bench.plant.load_script import LoadPhase, LoadScript
from bench.plant.play import Journal

SPIKES = ((100.0, 8.0), (160.0, 0.0), (220.0, 16.0), (280.0, 0.0), (340.0, 24.0), (400.0, 0.0))  # s, CPUs pegged
PERIODS = 460
SCRIPT = LoadScript((LoadPhase(), *(LoadPhase(start, others=cpus) for start, cpus in SPIKES)))
WITHIN = 3  # periods in which threads are to follow


def figure(_small: bool) -> Figure:
    flops = WORKLOADS["heavy"]
    runs = {
        "peak rates": elastic(POWER5, flops, PERIODS, SCRIPT),
        "ours": elastic(POWER5, flops, PERIODS, SCRIPT, ours(operator(POWER5, flops))),
    }
    paper, default = runs["peak rates"], runs["ours"]
    claims = (
        Claim(
            "C004-3",
            "throughput dips with spikes of other load, threads track them in periods of 1 s",
            f"correlation with the load: throughput {_with_load(paper, 'rate'):.2f}, threads "
            f"{_with_load(paper, 'threads'):.2f}",
            _with_load(paper, "rate") < -0.7 and _with_load(paper, "threads") < -0.7,
            remark="throughput does; the paper's rules return slowly to the thread count of a level",
        ),
        Claim(
            "C004-3",
            f"ours: threads follow within {WITHIN} periods, each way",
            f"first move after {_first_moves(default)} periods; correlation {_with_load(default, 'threads'):.2f}",
            all(0 < delay <= WITHIN for delay in _first_moves(default)),
        ),
    )
    rows: list[Row] = [{"variant": name, **row} for name, journal in runs.items() for row in journal.rows()]

    return Figure("ipdps09_fig06", rows, claims)


def _with_load(journal: Journal, what: str) -> float:
    settled = journal.between(60.0, PERIODS)
    values = [float(getattr(one, what)) for one in settled]
    if statistics.pstdev(values) == 0:
        return 0.0
    return float(np.corrcoef([one.others for one in settled], values)[0, 1])


def _first_moves(journal: Journal) -> list[int]:
    """Periods from each spike's begin or end to the first change of threads towards it; 0: none before the next."""
    found = []
    ends = [start for start, _ in SPIKES[1:]] + [float(PERIODS)]
    before = 0.0
    for (start, cpus), end in zip(SPIKES, ends, strict=True):
        part = journal.between(start, end)
        at = journal.between(0.0, start).last.threads
        sign = 1 if cpus < before else -1
        before = cpus
        moved = (number for number, one in enumerate(part) if sign * (one.threads - at) > 0)
        found.append(next(moved, 0))
    return found
