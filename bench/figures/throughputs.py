"""Bars of manual, thread-count elastic and multi-level elastic throughput: Middleware'19 Figs 9 to 12 and 15."""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.figure import Row
from bench.figures.plants import manual, ours, paper, plant, settled, thread_count
from bench.plant.constants import Machine
from bench.plant.graph import PlantGraph
from rayelastic.policy.element.decision import Controller

PERIODS = 120  # of an elastic run; paper variants that need longer are still at their last level


@dataclass(frozen=True, slots=True)
class Outcome:
    """Converged tuples/s of a case under each controller, with threads and queues."""

    case: str
    operators: int
    manual: float
    thread_count: float
    paper: float
    ours: float
    thread_count_threads: int
    paper_threads: int
    ours_threads: int
    paper_queues: int
    ours_queues: int

    @property
    def over_thread_count(self) -> float:
        """Speed-up of ours over thread-count elasticity, the number on the papers' bars."""
        return self.ours / self.thread_count

    def row(self) -> Row:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def outcome(case: str, graph: PlantGraph, machine: Machine, cores: int | None = None, seed: int = 0) -> Outcome:
    """Run all controllers on a case."""

    def run(controller: Controller, periods: int = PERIODS) -> tuple[float, int, int]:
        rate, journal = settled(controller, plant(graph, machine, seed, cores=cores), periods)
        return rate, journal.last.threads, journal.last.queues

    single, elastic = run(manual(), 12), run(thread_count())
    printed, default = run(paper()), run(ours(graph))
    count = len(graph.operators)
    return Outcome(
        case, count, single[0], elastic[0], printed[0], default[0],
        elastic[1], printed[1], default[1], printed[2], default[2],
    )  # fmt: skip
