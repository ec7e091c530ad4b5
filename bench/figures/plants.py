"""Simulated runs that several figures share: cost distributions, controllers by name, and converged throughput."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from bench.plant.constants import PAPER_ENGINE, Machine, PerformanceConstants
from bench.plant.fixed_configuration import FixedConfiguration
from bench.plant.graph import PlantGraph
from bench.plant.load_script import STEADY, LoadScript
from bench.plant.plant import Plant, PlantSettings
from bench.plant.play import Journal, play
from rayelastic.papers.multi_level import PaperMultiLevelElasticity
from rayelastic.papers.thread_count import ThreadCountElasticity
from rayelastic.policy.element.decision import Controller
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity

NOISE = 0.02  # of a period's throughput; the error bars of the papers' figures
PERIOD = 5.0  # s; M08
CONVERGED = 10  # last periods that count
HEAVY, MEDIUM, LIGHT = 10_000, 100, 1  # FLOPs per tuple (Middleware'19 4.1)


def skewed(count: int, flop: float, seed: int, heavy: float = 0.1, medium: float = 0.3) -> list[float]:
    """Costs in ns: 10 % heavy, 30 % medium, the rest light, placed at random (Middleware'19 4.1)."""
    many, some = round(heavy * count), round(medium * count)
    costs = np.array([HEAVY] * many + [MEDIUM] * some + [LIGHT] * (count - many - some)) * flop
    np.random.default_rng(seed).shuffle(costs)
    return [float(cost) for cost in costs]


def making(payload: int, constants: PerformanceConstants = PAPER_ENGINE) -> float:
    """Ns in which a source fills the payload of a tuple: as long as a copy takes."""
    return payload * constants.copy_per_byte


def plant(
    graph: PlantGraph,
    machine: Machine,
    seed: int = 0,
    constants: PerformanceConstants = PAPER_ENGINE,
    script: LoadScript = STEADY,
    cores: int | None = None,
    noise: float = NOISE,
    period: float = PERIOD,
    **settings: bool | int,
) -> Plant:
    """Return a plant with the figures' usual noise and period; `cores` bounds the threads."""
    chosen = PlantSettings(period=period, noise=noise, seed=seed, maximum_threads=cores, **settings)  # type: ignore[arg-type]
    return Plant(graph, machine, constants, script, chosen)


def manual() -> Controller:
    return FixedConfiguration.manual()


def thread_count() -> Controller:
    """PLDI'17: every operator has a queue; the thread count is elastic."""
    return ThreadCountElasticity("released")


def paper() -> Controller:
    """Middleware'19 as it is printed."""
    return PaperMultiLevelElasticity()


def ours(graph: PlantGraph) -> Controller:
    """Return the default of this package."""
    return GuidedMultiLevelElasticity(graph.upstream)


def converged(journal: Journal) -> float:
    """Tuples/s of the sources in the last periods, without noise."""
    return statistics.fmean(one.true_rate for one in journal.passes[-CONVERGED:])


def settled(controller: Controller, on: Plant, periods: int) -> tuple[float, Journal]:
    """Play, and tell the converged throughput too."""
    journal = play(controller, on, periods)
    return converged(journal), journal


def only(values: Sequence[float]) -> str:
    """Return a range in words."""
    return f"{min(values):.3g} to {max(values):.3g}"
