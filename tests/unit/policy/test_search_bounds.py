"""What a search knows of what it has tried."""

from __future__ import annotations

import math

import pytest

from rayelastic.policy.element.guided.estimate import Configuration, Estimate, Profile
from rayelastic.policy.element.guided.known import Known
from rayelastic.policy.element.guided.levels import Purpose
from rayelastic.policy.element.guided.measurement import MeasurementThresholds, Series, Verdict
from rayelastic.policy.element.guided.proposals import _Proposal
from rayelastic.policy.element.guided.search import ConfigurationSearch
from rayelastic.policy.element.guided.trial import Bounds, SearchThresholds, Trial
from rayelastic.policy.element.pieces import OperatorGraph
from rayelastic.reasons import Code

QUEUED = frozenset({"a"})


def known(start: int, throughput: dict[tuple[int, frozenset[str]], float]) -> Known:
    measured = {Configuration(*key): Series([math.log(value)]) for key, value in throughput.items()}
    best = max(measured, key=lambda one: measured[one].throughput)
    return Known(best, start, best, measured, (), (), True, 0, False, 0.01)


@pytest.mark.parametrize(("start", "most", "below"), [(2, 8, 4), (2, 7, 4), (2, 3, 2), (8, 8, 0), (2, 2, 0)])
def test_one_level_below_is_half_of_the_most_threads_if_there_were_more_than_at_the_start(
    start: int, most: int, below: int
) -> None:
    tried = known(start, {(start, QUEUED): 10.0, (most, QUEUED): 20.0})
    assert tried.one_level_below == below


def test_a_level_is_as_good_as_its_best_placement() -> None:
    tried = known(1, {(1, frozenset()): 10.0, (1, QUEUED): 12.0, (2, QUEUED): 11.0})
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
    trial = _Proposal(Known(best, 1, best, measured, (), (), True, 0, False, 0.05), bounds, SearchThresholds()).growth(
        estimate
    )
    assert (trial is not None) == grows


@pytest.mark.parametrize(("cpus", "threads"), [(8.0, 4), (3.0, None)])
def test_one_more_step_is_tried_only_where_more_threads_can_run_at_once(cpus: float, threads: int | None) -> None:
    """From 1 to 2 threads it gained 80 %; the source and 2 threads fill 3 CPUs."""
    names = ("source", *(f"op{at}" for at in range(8)))
    samples = {"source": 0.0} | dict.fromkeys(names[1:], 250.0)
    estimate = Estimate(
        Profile(samples, dict.fromkeys(names, 1e5), 2000.0, busy=2.0, reference=1e5), OperatorGraph(names)
    )
    queued = frozenset({"op3", "op6"})
    bounds = Bounds(1, 8, cpus, frozenset(names[1:]), frozenset(), busy=2.0, estimate=estimate)
    trial = _Proposal(known(1, {(1, queued): 10.0, (2, queued): 18.0}), bounds, SearchThresholds()).rise(estimate)
    assert (trial.configuration.threads if trial is not None else None) == threads


@pytest.mark.parametrize(("gained", "trusted"), [(2.0, True), (1.5, False)])
def test_an_estimate_is_trusted_once_nine_tenths_of_what_it_promised_came_true(gained: float, trusted: bool) -> None:
    before, tried = Configuration(1, QUEUED), Configuration(2, QUEUED)
    search = ConfigurationSearch(before, SearchThresholds(), MeasurementThresholds())
    search.measured = {before: Series([0.0] * 6), tried: Series([math.log(gained)] * 6)}
    search.trial = Trial(tried, Purpose.GROWTH, Code.COSTS_ALLOW(factor=2.0, threads=2), promised=2.0)
    bounds = Bounds(1, 8, 8.0, QUEUED, frozenset(), busy=1.0, estimate=None)
    assert search.judge(bounds)[0] is Verdict.ACCEPT
    assert search.trusted is trusted
