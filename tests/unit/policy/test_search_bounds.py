"""What a search knows of what it has tried."""

from __future__ import annotations

import math

import pytest

from rayelastic.policy.element.guided.estimate import Configuration, Estimate, Profile
from rayelastic.policy.element.guided.known import Known
from rayelastic.policy.element.guided.measurement import Series
from rayelastic.policy.element.guided.proposals import _Proposal
from rayelastic.policy.element.guided.trial import Bounds, SearchThresholds
from rayelastic.policy.element.pieces import OperatorGraph

QUEUED = frozenset({"a"})


def known(throughput: dict[tuple[int, frozenset[str]], float]) -> Known:
    measured = {Configuration(*key): Series([math.log(value)]) for key, value in throughput.items()}
    best = max(measured, key=lambda one: measured[one].throughput)
    return Known(best, best, measured, (), (), 0, 0.01)


def test_a_level_is_as_good_as_its_best_placement() -> None:
    tried = known({(1, frozenset()): 10.0, (1, QUEUED): 12.0, (2, QUEUED): 11.0})
    assert tried.levels() == pytest.approx({1: 12.0, 2: 11.0})


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
    trial = _Proposal(Known(best, best, measured, (), (), 0, 0.05), bounds, SearchThresholds()).growth(estimate)
    assert (trial is not None) == grows
