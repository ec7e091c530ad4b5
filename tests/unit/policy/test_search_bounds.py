"""What a search knows of what it has tried."""

from __future__ import annotations

import pytest

from rayelastic.policy.element.guided.estimate import Configuration, Estimate, Profile
from rayelastic.policy.element.guided.known import Known
from rayelastic.policy.element.guided.measurement import Series
from rayelastic.policy.element.guided.proposals import _Proposal
from rayelastic.policy.element.guided.trial import Bounds, SearchThresholds
from rayelastic.policy.element.pieces import OperatorGraph


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
    trial = _Proposal(Known(best, measured, (), (), 0.05), bounds, SearchThresholds()).growth(estimate)
    assert (trial is not None) == grows
