"""What is tried before a search is content: a little more, where CPUs are left."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rayelastic.policy.element.guided.estimate import Configuration, Estimate, Profile
from rayelastic.policy.element.guided.explanation import Explanation
from rayelastic.policy.element.guided.levels import Purpose
from rayelastic.policy.element.guided.measurement import Series
from rayelastic.policy.element.guided.proposals import Known, propose
from rayelastic.policy.element.guided.trial import Bounds, SearchThresholds, Trial
from rayelastic.policy.element.pieces import OperatorGraph

NAMES = ("source", "a", "b", "c", "d")
OPERATORS = frozenset(NAMES[1:])
BEST = Configuration(1, frozenset("c"))
QUEUE = Configuration(1, frozenset("bc"))  # in front of what makes the dearest piece two halves
BOTH = Configuration(2, frozenset("bc"))


def bounds(used: float | None) -> Bounds:
    samples = {"source": 0.0, "a": 250.0, "b": 250.0, "c": 250.0, "d": 250.0}
    profile = Profile(samples, dict.fromkeys(NAMES, 1e4), 1000.0, busy=1.5, reference=1e4)
    estimate = Estimate(profile, OperatorGraph(NAMES), Explanation(0.001, 0.0))
    return Bounds(1, 2, 2.0, OPERATORS, frozenset(), busy=1.0, estimate=estimate, used=used)


def refined(used: float | None, refused: set[Configuration], refinements: int = 0) -> Trial | None:
    measured = {Configuration(1, frozenset()): Series([0.0]), BEST: Series([math.log(1.7)] * 5)}
    known = Known(BEST, 1, BEST, measured, refused, (), True, 5, 3, False, 0.05, refinements)
    return propose(known, bounds(used), SearchThresholds())


@pytest.mark.parametrize(
    ("used", "refused", "refinements", "tried"),
    [
        (1.5, set(), 0, QUEUE),
        (1.5, {QUEUE}, 0, BOTH),  # a second thread without a second queue would find nothing to do
        (1.5, {QUEUE, BOTH}, 0, None),
        (1.5, {QUEUE, BOTH}, 7, None),
        (1.5, {QUEUE}, 8, None),  # enough is enough
        (1.98, set(), 0, None),  # no CPU is left
        (None, set(), 0, None),  # nobody knows
    ],
)
def test_a_little_more_is_tried_while_cpus_are_left(
    used: float | None, refused: set[Configuration], refinements: int, tried: Configuration | None
) -> None:
    trial = refined(used, refused, refinements)
    assert (trial.configuration if trial else None) == tried
    assert trial is None or trial.purpose is Purpose.REFINEMENT


def test_where_queues_alone_were_refused_threads_and_queues_are_tried() -> None:
    two = Configuration(1, frozenset("bc"))
    measured = {BEST: Series([0.0]), two: Series([math.log(1.2)] * 5)}
    refused = {Configuration(1, frozenset("bcd")), Configuration(1, frozenset("abc"))}
    known = Known(two, 1, two, measured, refused, (), True, 5, 3, False, 0.05)
    trial = propose(known, replace(bounds(1.5), cpus=2.0), SearchThresholds())
    assert trial is not None
    assert trial.configuration == BOTH


@pytest.mark.parametrize(
    ("queued", "split"),
    [(frozenset(), "c"), (frozenset("c"), "b"), (frozenset("bc"), "d"), (frozenset("abcd"), None)],
)
def test_the_dearest_piece_is_halved(queued: frozenset[str], split: str | None) -> None:
    costs = {"source": 0.1, "a": 3.1, "b": 3.0, "c": 2.0, "d": 2.0}
    assert OperatorGraph(NAMES).split(costs, queued, OPERATORS.__contains__) == split
