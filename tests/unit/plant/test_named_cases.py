"""Runs of whole controllers on the plant: what the papers tell of, and defects of the originals to be beaten."""

from __future__ import annotations

import numpy as np
import pytest

from bench.plant.best_static import best_static
from bench.plant.constants import ENGINE, LAPTOP, PAPER_ENGINE, POWER8, XEON, Machine
from bench.plant.graph import PlantGraph, data_parallel, pipeline
from bench.plant.plant import Plant, PlantSettings
from bench.plant.play import Journal, play
from rayelastic.papers.multi_level import PaperMultiLevelElasticity, PaperMultiLevelThresholds
from rayelastic.papers.thread_count import ThreadCountElasticity
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity


def ours(graph: PlantGraph) -> GuidedMultiLevelElasticity:
    names = [operator.name for operator in graph.operators]
    upstream = {names[at]: [names[s.tail] for s in streams] for at, streams in enumerate(graph.incoming)}
    return GuidedMultiLevelElasticity(upstream)


def late_changes(journal: Journal) -> int:
    return sum(one.changed for one in journal.passes[len(journal.passes) // 2 :])


def test_the_papers_500_operators_settle_in_as_many_periods_as_the_paper_says() -> None:
    """C000-12 with history and satisfaction factor 0: "just over 400 s" in periods of 5 s, within 25 %."""
    costs = np.repeat([10_000.0, 100.0, 1.0], [50, 150, 300]) * XEON.flop
    np.random.default_rng(1).shuffle(costs)
    graph = pipeline(list(costs), payload=1024)
    plant = Plant(graph, XEON, PAPER_ENGINE, settings=PlantSettings(noise=0.01, seed=1, exact_profile=True))
    controller = PaperMultiLevelElasticity(PaperMultiLevelThresholds(satisfaction_factor=0.0))
    journal = play(controller, plant, 120)
    assert 60 <= journal.settling_periods(patience=40) <= 100
    searched = {
        one.threads for one, after in zip(journal, journal.passes[1:], strict=False) if one.queues != after.queues
    }
    assert not searched & {4, 8, 16, 32}


def test_the_oscillation_of_the_data_parallel_graph() -> None:
    """C002-6: with 8 % noise the paper's controller oscillates near the collapse of the sink's lock; ours must not."""
    graph = data_parallel([1e5 * POWER8.flop] * 200, payload=64)

    def run(controller: ThreadCountElasticity | GuidedMultiLevelElasticity) -> Journal:
        plant = Plant(graph, POWER8, PAPER_ENGINE, settings=PlantSettings(10.0, noise=0.08, seed=3))
        return play(controller, plant, 100)

    theirs = run(ThreadCountElasticity("paper"))
    assert late_changes(theirs) >= 10
    assert theirs.most_threads >= 128
    assert late_changes(run(ours(graph))) <= 1


@pytest.mark.parametrize("cores", [2, 3, 4])
def test_few_cores_are_used_and_not_left_at_the_minimum(cores: int) -> None:
    """The released elasticity never leaves 2 threads where the most are 4 (findings, section 3)."""
    machine = Machine("few", cores=cores)
    graph = pipeline([1000.0] * 24, record=128)
    plant = Plant(graph, machine, ENGINE, settings=PlantSettings(noise=0.02, seed=5, minimum_threads=1))
    best = best_static(plant)
    journal = play(ours(graph), plant, 80)
    assert journal.last.true_rate >= 0.95 * best.rate


@pytest.mark.parametrize("seed", range(4))
def test_a_plateau_is_not_answered_with_more_threads_than_it_needs(seed: int) -> None:
    """One operator bounds the throughput from about 9 threads on; what is left are a few percent, up to 48 threads.

    From 49 threads to 55 it is 0.3 %, which 2 % noise doesn't show: a third more than enough is what may be kept.
    """
    graph = pipeline([100.0] * 40 + [2000.0] + [400.0] * 40, record=128)
    plant = Plant(graph, XEON, ENGINE, settings=PlantSettings(noise=0.02, seed=seed))
    journal = play(ours(graph), plant, 80)
    most = plant.steady_rate(plant.machine.cpus, plant.models)
    enough = next(n for n in range(2, plant.machine.cpus) if plant.steady_rate(n, plant.models) >= 0.99 * most)
    assert journal.last.threads <= 1.35 * enough
    assert journal.most_threads <= 2.5 * enough
    assert journal.last.true_rate >= 0.97 * most
    assert late_changes(journal) == 0


def test_two_cores_and_cheap_operators_stay_quiet_under_noise() -> None:
    """R14 in small: 5 % noise, no change in the last 100 of 200 periods, in 19 of 20 runs."""
    graph = pipeline([1.0] * 20, record=128)
    quiet = 0
    for seed in range(20):
        plant = Plant(graph, LAPTOP, ENGINE, settings=PlantSettings(noise=0.05, seed=seed, minimum_threads=1))
        quiet += late_changes(play(ours(graph), plant, 200)) == 0
    assert quiet >= 19
