"""R14: stability, overshoot and accuracy of the default controller in many simulated runs with 5 % noise.

Graphs, costs, machines and seeds differ from run to run; each starts cold. Constants of the controller were chosen with
these seeds in sight; `noise_held_out` has others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.figures.figure import Claim, Figure, Row
from bench.figures.plants import ours, plant, skewed
from bench.plant.best_static import best_static, fewest_threads
from bench.plant.constants import ENGINE, LAPTOP, SERVER16, XEON, Machine
from bench.plant.graph import PlantGraph, data_parallel, mixed, pipeline
from bench.plant.play import Journal, play

NOISE = 0.05
NEARLY = 0.95  # of the best throughput
RUNS, SMALL_RUNS = 1000, 12
SETTLED = 10  # periods without a change after which a run counts as settled
QUIET = 100  # periods that are watched from then on
LONGEST = 150  # periods until then
DEAR, CHEAP = 2000.0, 100.0  # ns per tuple


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    graph: PlantGraph
    machine: Machine
    best: float
    enough: int  # the fewest threads that can give nearly that


def figure(small: bool) -> Figure:
    return noisy_runs("noise", 0, small)


def noisy_runs(name: str, first: int, small: bool) -> Figure:
    """Return the figure of so many runs with seeds from `first` on, which the graphs of random costs depend on too."""
    cases = _cases((LAPTOP, SERVER16) if small else (LAPTOP, SERVER16, XEON), first)
    rows = [_row(case, first + seed) for seed, case in _spread(cases, SMALL_RUNS if small else RUNS)]
    quiet = sum(int(row["quiet"]) for row in rows) / len(rows)
    beyond = sum(float(row["beyond"]) <= 1 for row in rows) / len(rows)
    overshoot = sum(float(row["overshoot"]) <= 1 for row in rows) / len(rows)
    accuracy = sorted(float(row["accuracy"]) for row in rows)
    settling = sorted(int(row["settling"]) for row in rows)
    at_least = sum(value >= 0.95 for value in accuracy) / len(rows)
    seeds = f"seeds {first} to {first + len(rows) - 1}"
    claims = (
        Claim(
            "R14",
            "no change in 100 periods after settling, in at least 95 % of runs",
            f"{quiet:.1%} of {len(rows)} ({seeds})",
            quiet >= 0.95,
        ),
        Claim(
            "R14",
            "overshoot at most one level",
            f"in {overshoot:.1%} of runs; most {max(float(row['overshoot']) for row in rows):.1f} levels ({seeds})",
            overshoot >= 0.95,
            remark="levels are doublings of the thread count in the end, of which the search stays within one by rule; "
            f"of the fewest threads that can give {NEARLY:.0%} of the best it is at most one in {beyond:.1%} of runs",
        ),
        Claim(
            "R14",
            "final throughput at least 95 % of the exhaustive best, median 98 %",
            f"median {_share(accuracy, 0.5):.1%}, {at_least:.1%} of runs reach 95 %, worst {accuracy[0]:.1%} ({seeds})",
            _share(accuracy, 0.5) >= 0.98 and at_least >= 0.95,
        ),
        Claim(
            "R14",
            "settles in at most 80 periods",
            f"median {_share(settling, 0.5):.0f}, 99 % within {_share(settling, 0.99):.0f} ({seeds})",
            _share(settling, 0.99) <= 80,
        ),
    )

    return Figure(name, rows, claims)


def _cases(machines: Sequence[Machine], first: int) -> list[_Case]:
    found = []
    for machine in machines:
        random = np.random.default_rng(first + machine.cpus)
        graphs = {
            "pipeline, cheap": pipeline([CHEAP] * 40, record=128),
            "pipeline, dear": pipeline([DEAR] * 40, record=128),
            "pipeline, skewed": pipeline(skewed(40, machine.flop, first + machine.cpus), record=128),
            "pipeline, random": pipeline(list(random.lognormal(6, 1.5, 30)), record=128),
            "data parallel": data_parallel([DEAR] * 24, record=128),
            "mixed": mixed([[CHEAP, DEAR, CHEAP, DEAR]] * 6, record=128),
        }
        for name, graph in graphs.items():
            on = plant(graph, machine, constants=ENGINE, noise=0.0)
            best = best_static(on).rate
            found.append(_Case(f"{machine.name}, {name}", graph, machine, best, fewest_threads(on, NEARLY * best)))
    return found


def _spread(cases: Sequence[_Case], runs: int) -> list[tuple[int, _Case]]:
    return [(seed, cases[seed % len(cases)]) for seed in range(runs)]


def _row(case: _Case, seed: int) -> Row:
    on = plant(case.graph, case.machine, seed, ENGINE, noise=NOISE)
    journal = play(ours(case.graph), on, LONGEST + QUIET)
    settling = journal.settling_periods(SETTLED)
    after = Journal(journal.passes[settling:]) if settling < len(journal.passes) else journal
    final = after.passes[0]
    return {
        "case": case.name,
        "seed": seed,
        "settling": settling,
        "quiet": int(settling <= LONGEST and journal.quiet_after(settling, QUIET)),
        "overshoot": math.log2(max(1.0, journal.most_threads / final.threads)),
        "beyond": math.log2(max(1.0, journal.most_threads / case.enough)),
        "accuracy": final.true_rate / case.best,
        "threads": final.threads,
        "queues": final.queues,
    }


def _share(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]
