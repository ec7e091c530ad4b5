"""A settled job of the real engine: what its elasticity costs, and how it makes room for another process.

The cost is found by turning the adaptation loop off and on in one run (goal: at most 1 %). The other process keeps
one CPU busy for a while (C004-3: threads follow within 3 periods each way). On two CPUs one scheduler thread beside the
source's own may be all that there is to have: then a decision to leave it so counts, if throughput is back. For a quiet
machine.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import rayelastic as rel
from bench.elastic.graphs import shaped
from bench.elastic.live import Live
from bench.figures.figure import Claim, Figure, Kind, Row
from bench.figures.measured import SHAPES
from rayelastic.reasons import Code
from rayelastic.runtime.values.adaptation import Adaptation

FLOPS = 1000  # multiplications per tuple of each operator: two threads pay
PAYLOAD = 128  # bytes
PERIOD = 1.0  # s
SETTLING = 20.0  # s
WINDOW = 2.0  # s with the loop, and without
COST = 0.01  # of the throughput
WITHIN = 3  # periods
BACK = 0.95  # of the throughput before
LOAD_TIME = 15.0  # s that the other process works, and that it is then gone


def job() -> rel.Topology:
    return shaped(SHAPES["pipeline"], FLOPS, PAYLOAD)


class InForce(NamedTuple):
    """A configuration."""

    threads: int
    queues: int

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.queues} queues"


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a change of the other process's load led to.

    Args:
        noticed: periods until it was decided anew; None: it wasn't.
        changed: periods until threads or queues changed; None: they didn't.
        before: what was in force.
        after: what was in force in the end.
        throughput: the median of the last half, tuples/s.
    """

    noticed: int | None
    changed: int | None
    before: InForce
    after: InForce
    throughput: float

    def __str__(self) -> str:
        what = f"still {self.before}" if self.changed is None else f"{self.before} to {self.after} in {self.changed}"
        return f"noticed in {self.noticed} periods, {what}, {self.throughput:,.0f} tuples/s"


def cost(settling: float, rounds: int) -> list[float]:
    """Throughput with elasticity by that without, per round."""
    with Live(job(), PERIOD) as live:
        live.adapts(settling)
        ratios = []
        for _ in range(rounds):
            live.adapts(0.0)
            with_elasticity = live.rate(None, WINDOW)
            live.stop_adapting()
            ratios.append(with_elasticity / live.rate(None, WINDOW))
    return ratios


def external_load(settling: float, seconds: float) -> tuple[list[Reaction], list[Adaptation]]:
    """What happens when another process takes a CPU and when it gives it back; and all passes."""
    with Live(job(), PERIOD) as live:
        marks = [len(live.adapts(settling))]
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            marks.append(len(live.adapts(seconds)))
        finally:
            other.kill()
            other.wait()
        passes = live.adapts(seconds)
    return [_reaction(passes, start, end) for start, end in itertools.pairwise([*marks, len(passes)])], passes


def _reaction(passes: list[Adaptation], start: int, end: int) -> Reaction:
    before = _in_force(passes[start])
    changed = next((at - start for at in range(start, end) if _in_force(passes[at]) != before), None)
    others = [any(one.code is Code.OTHER_PROCESSES for one in done.decision.reasons) for done in passes]
    told = (at - start for at in range(start, end) if others[at])
    last = passes[(start + end) // 2 : end]
    rate = statistics.median(one.observation.throughput for one in last)
    return Reaction(next(told, changed), changed, before, _in_force(passes[end - 1]), rate)


def _in_force(one: Adaptation) -> InForce:
    return InForce(one.observation.thread_count, len(one.observation.queued))


def figure(small: bool) -> Figure:
    settling, rounds, seconds = (6.0, 2, 5.0) if small else (SETTLING, 10, LOAD_TIME)
    ratios = cost(settling, rounds)
    lost = 1 - statistics.median(ratios)
    (comes, goes), passes = external_load(settling, seconds)
    alone = statistics.median(one.observation.throughput for one in passes[len(passes) // 10 : int(settling / PERIOD)])
    claims = [
        Claim(
            "ours-2",
            f"elasticity costs a settled job at most {COST:.0%} of its throughput",
            f"{lost:+.1%} (median of {rounds} alternations, {min(ratios):.3f} to {max(ratios):.3f})",
            lost <= COST,
            Kind.MEASURED,
        ),
        Claim(
            "C004-3",
            f"another process uses a CPU and ends: threads follow within {WITHIN} periods each way",
            f"When it comes: {comes}. When it goes: {goes}. Alone before: {alone:,.0f} tuples/s",
            all(one.noticed is not None and one.noticed <= WITHIN for one in (comes, goes))
            and comes.changed is not None
            and (goes.changed is not None or goes.throughput >= BACK * alone),
            Kind.MEASURED,
            "threads or queues; the source has its own thread, which with one more fills two CPUs",
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

    return Figure("settled_job", rows, claims, Kind.MEASURED)
