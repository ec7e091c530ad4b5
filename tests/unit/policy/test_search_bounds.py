"""What a search knows of what it has tried, and which queues it tries next."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rayelastic.policy.element.guided.estimate import Configuration, Estimate, Profile
from rayelastic.policy.element.guided.explanation import Explanation
from rayelastic.policy.element.guided.levels import Purpose
from rayelastic.policy.element.guided.measurement import Series
from rayelastic.policy.element.guided.proposals import Known, _Proposal
from rayelastic.policy.element.guided.trial import Bounds, SearchThresholds, Trial
from rayelastic.policy.element.pieces import OperatorGraph

QUEUED = frozenset({"a"})


def known(start: int, throughput: dict[tuple[int, frozenset[str]], float]) -> Known:
    measured = {Configuration(*key): Series([math.log(value)]) for key, value in throughput.items()}
    best = max(measured, key=lambda one: measured[one].throughput)
    return Known(best, start, best, measured, (), (), True, 0, 0, False, 0.01)


@pytest.mark.parametrize(("start", "most", "below"), [(2, 8, 4), (2, 7, 4), (2, 3, 2), (8, 8, 0), (2, 2, 0)])
def test_one_level_below_is_half_of_the_most_threads_if_there_were_more_than_at_the_start(
    start: int, most: int, below: int
) -> None:
    tried = known(start, {(start, QUEUED): 10.0, (most, QUEUED): 20.0})
    assert tried.one_level_below == below


def test_a_level_is_as_good_as_its_best_placement() -> None:
    tried = known(1, {(1, frozenset()): 10.0, (1, QUEUED): 12.0, (2, QUEUED): 11.0})
    assert tried.levels() == pytest.approx({1: 12.0, 2: 11.0})


CHEAP, DEAR = Explanation(0.001, 0.0), Explanation(5.0, 0.0)  # of a queue
OPERATORS = frozenset(f"op{at}" for at in range(4))


@pytest.mark.parametrize(("measured", "usual"), [((CHEAP,), DEAR), ((), CHEAP), ((DEAR, CHEAP), DEAR)])
def test_a_placement_goes_by_what_explains_the_measurements_and_by_what_is_usual_where_nothing_does(
    measured: tuple[Explanation, ...], usual: Explanation
) -> None:
    trial = placement(measured, usual)
    assert trial is not None
    assert trial.purpose is Purpose.PLACEMENT
    assert len(trial.configuration.queued) >= 3


@pytest.mark.parametrize(("measured", "usual"), [((DEAR,), CHEAP), ((), DEAR)])
def test_no_placement_that_promises_nothing(measured: tuple[Explanation, ...], usual: Explanation) -> None:
    trial = placement(measured, usual)
    assert trial is None or "may give" not in trial.why


def placement(explanations: tuple[Explanation, ...], usual: Explanation) -> Trial | None:
    names = ["source", *sorted(OPERATORS)]
    samples = {"source": 0.0} | dict.fromkeys(OPERATORS, 250.0)
    profile = Profile(samples, dict.fromkeys(names, 1e5), 1000.0, busy=1.0, reference=1e5)
    estimate = Estimate(profile, OperatorGraph(names), usual)
    bounds = Bounds(1, 8, 4.0, OPERATORS, frozenset(), None, estimate)
    tried = replace(known(3, {(3, frozenset()): 100.0}), explanations=explanations)
    return _Proposal(tried, bounds, SearchThresholds()).placement(estimate)


@pytest.mark.parametrize(("ns", "grows"), [(200, True), (20, True), (2, False)])
def test_operators_are_worth_queues_by_what_a_queue_of_the_engine_costs(ns: int, grows: bool) -> None:
    names = ("source", *(f"op{at}" for at in range(8)))
    samples = {"source": 0.0} | dict.fromkeys(names[1:], 250.0)
    best, rate = Configuration(1, frozenset({"op4"})), 2e9 / (8 * ns)
    estimate = Estimate(
        Profile(samples, dict.fromkeys(names, rate), 2000.0, busy=2.0, reference=rate), OperatorGraph(names)
    )
    measured = {best: Series([0.0, 0.0])}
    bounds = Bounds(1, 8, 8.0, frozenset(names[1:]), frozenset(), busy=1.0, estimate=estimate)
    trial = _Proposal(
        Known(best, 1, best, measured, (), (), True, 0, 0, False, 0.05), bounds, SearchThresholds()
    ).growth(estimate)
    assert (trial is not None) == grows
