"""A settled job of the real engine: what its elasticity costs, and how it makes room for another process.

The cost is found by turning the adaptation loop off and on in one run (issue 4: at most 1 %). The other process keeps
one CPU busy for a while (C004-3: threads follow within 3 periods each way). For a quiet machine.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.figures.figure import Claim, Figure, Kind, Row
from bench.figures.measured import graph_of, shapes
from bench.figures.plants import ours
from bench.figures.real import RealGraph, RealRun, elastic_loop
from rayelastic.plan.config import Elasticity
from rayelastic.policy.decision import Controller
from rayelastic.runtime.adaptation import Adaptation
from rayelastic.runtime.adaptation_loop import AdaptationLoop

FLOPS = 1000  # multiplications per tuple of each operator: two threads pay
PAYLOAD = 128  # bytes
PERIOD = 1.0  # s
SETTLING = 20.0  # s
WINDOW = 2.0  # s with the loop, and without
COST = 0.01  # of the throughput
WITHIN = 3  # periods
LOAD_TIME = 15.0  # s that the other process works, and that it is then gone


class InForce(NamedTuple):
    """A configuration."""

    threads: int
    queues: int

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.queues} queues"


@dataclass(frozen=True, slots=True)
class Reaction:
    """Periods until threads or queues changed after the load did (None: they didn't), and what was in force."""

    periods: int | None
    before: InForce
    after: InForce

    def __str__(self) -> str:
        return (
            f"still {self.before}"
            if self.periods is None
            else f"{self.before} to {self.after}, from period {self.periods} on"
        )


def cost(real: RealGraph, settling: float, rounds: int) -> list[float]:
    """Throughput with the loop by that without, per round."""
    controller: Controller = ours(real.graph)
    with RealRun(real, threads=1) as run:
        loop = _started(real, run, controller)
        time.sleep(settling)
        ratios = []
        for _ in range(rounds):
            with_loop = run.rate(WINDOW, fill=0.0)
            loop.stop()
            without = run.rate(WINDOW, fill=0.0)
            loop = _started(real, run, controller)
            ratios.append(with_loop / without)
        loop.stop()
    return ratios


def _started(real: RealGraph, run: RealRun, controller: Controller) -> AdaptationLoop:
    loop = elastic_loop(real, run, controller, PERIOD)
    loop.start()
    return loop


def external_load(real: RealGraph, settling: float, seconds: float) -> tuple[list[Reaction], list[Adaptation]]:
    """What happens when another process takes a CPU and when it gives it back; and all passes."""
    with RealRun(real, threads=1) as run:
        loop = _started(real, run, ours(real.graph))
        time.sleep(settling)
        marks = [len(loop.journal.since(0))]
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            time.sleep(seconds)
        finally:
            other.kill()
            other.wait()
        marks.append(len(loop.journal.since(0)))
        time.sleep(seconds)
        loop.stop()
        passes = list(loop.journal.since(0))
    return [_reaction(passes, start, end) for start, end in itertools.pairwise([*marks, len(passes)])], passes


def _reaction(passes: list[Adaptation], start: int, end: int) -> Reaction:
    before = _in_force(passes[start])
    first = next((at for at in range(start, end) if _in_force(passes[at]) != before), None)
    return Reaction(None if first is None else first - start, before, _in_force(passes[end - 1]))


def _in_force(one: Adaptation) -> InForce:
    return InForce(one.observation.thread_count, len(one.observation.queued))


def figure(small: bool) -> Figure:
    settling, rounds, seconds = (6.0, 2, 5.0) if small else (SETTLING, 10, LOAD_TIME)
    graph = graph_of(shapes()["pipeline"], PAYLOAD)
    real = RealGraph(graph, dict.fromkeys(range(1, len(graph.operators) - 1), FLOPS), PAYLOAD)
    ratios = cost(real, settling, rounds)
    lost = 1 - statistics.median(ratios)
    (comes, goes), passes = external_load(real, settling, seconds)
    claims = [
        Claim(
            "issue 4",
            f"elasticity costs a settled job at most {COST:.0%} of its throughput",
            f"{lost:+.1%} (median of {rounds} alternations, {min(ratios):.3f} to {max(ratios):.3f})",
            lost <= COST,
            Kind.MEASURED,
        ),
        Claim(
            "C004-3",
            f"another process takes a CPU and gives it back: threads follow within {WITHIN} periods each way",
            f"when it comes {comes}; when it goes {goes}",
            all(one.periods is not None and one.periods <= WITHIN for one in (comes, goes)),
            Kind.MEASURED,
            "threads or queues: the source has its own thread beside the scheduler's",
        ),
    ]
    rows: list[Row] = [
        {
            "seconds": one.observation.time,
            "throughput": one.observation.throughput,
            "threads": one.thread_count,
            "reason": one.decision.reason,
        }
        for one in passes
    ]

    def draw(canvas: Any) -> None:
        above, below = canvas.subplots(2, 1, sharex=True)
        seconds_of = [one.observation.time for one in passes]
        above.plot(seconds_of, [one.observation.throughput for one in passes])
        above.set_ylabel("tuples/s")
        below.step(seconds_of, [one.thread_count for one in passes], where="post")
        below.set_ylabel("threads")
        below.set_xlabel("s")

    return Figure(
        "settled_job",
        f"Elasticity '{Elasticity.GUIDED.value}' beside another process",
        rows,
        claims,
        draw,
        Kind.MEASURED,
    )
