"""Trials that don't pay are withheld: while a backlog is worked off, and once trials have cost too much."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity, GuidedThresholds, Phase
from rayelastic.policy.element.guided.measurement import Series
from rayelastic.policy.element.guided.trial_costs import TrialCosts, TrialCostThresholds
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Code
from tests.unit.policy.plants import GraphPlant, chain, play, with_costs

STEP = 10  # times the load
LAG = 0.1  # s that the source is late, from which on it is behind


def stepped(thresholds: GuidedThresholds, seed: int) -> tuple[list[str], list[bool], GuidedMultiLevelElasticity]:
    """Return the rules of what was changed while a backlog stood, after a step of the load, and whether it stood."""
    costs, upstream = chain([1e-6] * 40)
    plant = GraphPlant(costs, upstream, cpus=8, hop=2e-6, contention=0.05, noise=0.05, seed=seed, minimum=1, period=1.0)
    controller = GuidedMultiLevelElasticity(plant.upstream, thresholds)
    one = 1 / sum(plant.costs.values())  # tuples/s of one thread
    load, backlog = 0.35 * one, 0.0
    rules, behind = [], []
    for period in range(100):
        if period == 20:
            load *= STEP
        plant.demand = load + backlog / plant.period
        seen = plant.observe()
        carried = plant.history[-1][2]
        backlog = max(0.0, backlog + (load - carried) * plant.period)
        decision = controller.step(seen)
        plant.apply(decision)
        behind.append(backlog > LAG * load)
        if behind[-1] and decision.changes(seen):
            rules.append(decision.rule)
    return rules, behind, controller


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_explored_while_a_backlog_is_worked_off(seed: int) -> None:
    rules, behind, controller = stepped(GuidedThresholds(), seed)
    explored, _, _ = stepped(GuidedThresholds(backlog=0), seed)
    assert "trial of exploration" in explored  # without the rule
    assert "trial of exploration" not in rules
    assert len(rules) <= 6 < len(explored)
    assert any(behind)
    assert not any(behind[-40:])
    assert controller.phase in (Phase.HOLDING, Phase.BACKING_OFF)


def test_a_load_that_no_backlog_explains_is_explored_after_all() -> None:
    plant = GraphPlant(*chain([1e-6] * 40), cpus=8, noise=0.05, seed=1, minimum=1, period=1.0, demand=2e3)
    controller = GuidedMultiLevelElasticity(plant.upstream)
    play(plant, controller, 10)
    plant.demand = math.inf
    rules = [decision.rule for decision in play(plant, controller, 90)]
    assert "trial of exploration" not in rules[: GuidedThresholds().backlog]
    assert "no trial that doesn't pay" in rules
    assert "trial of exploration" in rules
    assert controller.phase is Phase.HOLDING


def test_trials_cost_what_is_lost_beside_the_best() -> None:
    costs = TrialCosts(TrialCostThresholds(window=100))
    best, seen = Series([math.log(100.0)]), Observation(time=1, period=1, throughput=40.0, thread_count=1)
    costs.add(seen, best)
    costs.add(replace(seen, time=2, throughput=150.0), best)  # what is better costs nothing
    assert (costs.lost, costs.share(replace(seen, time=3))) == pytest.approx((0.6, 0.006))
    assert costs.share(replace(seen, time=150)) == 0.0  # long ago
    assert costs.lost == pytest.approx(0.6)


def restless(thresholds: GuidedThresholds, seed: int = 1) -> tuple[float, set[Code]]:
    """Return what trials cost a job whose load becomes another one again and again, and all reasons."""
    dice = random.Random(seed)
    plant = GraphPlant(*chain([1e-6] * 12), cpus=4, noise=0.05, seed=seed, minimum=1, period=1.0, hop=1e-6)
    controller, codes = GuidedMultiLevelElasticity(plant.upstream, thresholds), set()
    for _ in range(16):
        with_costs(plant, [1e-6 * 10 ** dice.uniform(-2, 1) for _ in range(12)])
        for decision in play(plant, controller, 25):
            codes |= {reason.code for reason in decision.reasons}
    return controller.trial_seconds, codes


def test_what_trials_cost_is_bounded() -> None:
    free, without = restless(GuidedThresholds(costs=TrialCostThresholds(most=1.0)))
    lost, reasons = restless(GuidedThresholds())
    assert Code.TRIALS_COST not in without
    assert Code.TRIALS_COST in reasons
    assert lost <= 6.5 < free  # 1 % of 600 periods, and what the last trial cost
