"""What is tried once estimates promise nothing, while much less is had than costs allow; and what of it is kept."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rayelastic.policy.element.guided.estimate import Configuration, Estimate, Profile
from rayelastic.policy.element.guided.explanation import Explanation
from rayelastic.policy.element.guided.exploration.surrogate import Belief, Surrogate, expected_improvement
from rayelastic.policy.element.guided.exploration.tries import exploration, kept
from rayelastic.policy.element.guided.known import Known
from rayelastic.policy.element.guided.measurement import MeasurementThresholds, Series
from rayelastic.policy.element.guided.search import ConfigurationSearch
from rayelastic.policy.element.guided.trial import Bounds, Purpose, SearchThresholds, Trial
from rayelastic.policy.element.pieces import OperatorGraph
from rayelastic.reasons import Code

NAMES = ("source", "a", "b", "c", "d")
OPERATORS = frozenset(NAMES[1:])
NONE, BEST, ALL = Configuration(1, frozenset()), Configuration(1, frozenset("c")), Configuration(2, OPERATORS)


def bounds(used: float | None, rate: float = 1e4) -> Bounds:
    samples = {"source": 0.0, "a": 250.0, "b": 250.0, "c": 250.0, "d": 250.0}
    profile = Profile(samples, dict.fromkeys(NAMES, rate), 1000.0, busy=1.5, reference=rate)
    estimate = Estimate(profile, OperatorGraph(NAMES), Explanation(0.001, 0.0))
    return Bounds(1, 2, 2.0, OPERATORS, frozenset(), busy=1.0, estimate=estimate, used=used)


def known(gain: float, more: dict[Configuration, float] | None = None, explorations: int = 0) -> Known:
    measured = {NONE: Series([0.0]), BEST: Series([math.log(gain)] * 5)}
    measured |= {one: Series([math.log(value)] * 5) for one, value in (more or {}).items()}
    return Known(BEST, measured, (), (), 0.05, explorations)


def tried(found: Known, used: float | None = 1.5) -> Trial | None:
    return exploration(found, bounds(used), SearchThresholds())


@pytest.mark.parametrize(
    ("gain", "used", "explorations"),
    [(2.01, 1.5, 0), (1.5, None, 0), (1.5, 1.5, SearchThresholds().last_exploration)],
    ids=["what costs allow", "nobody knows what is used", "enough is enough"],
)
def test_nothing_is_explored(gain: float, used: float | None, explorations: int) -> None:
    assert tried(known(gain, explorations=explorations), used) is None


def test_what_is_tried_may_be_better_and_is_explained() -> None:
    trial = tried(known(1.88))
    assert trial is not None
    assert trial.purpose is Purpose.EXPLORATION
    assert trial.configuration != BEST
    assert trial.why.code is Code.WORTH_A_TRY


@pytest.mark.parametrize(("rate", "explorations", "explored"), [(1e4, 3, True), (1e8, 2, True), (1e8, 3, False)])
def test_without_queues_and_costly_operators_three_tries_are_enough(
    rate: float, explorations: int, explored: bool
) -> None:
    """What a queue costs is only estimated: some are tried even where all operators cost less than that."""
    measured = {NONE: Series([0.0] * 5), BEST: Series([-0.2] * 2)}
    found = Known(NONE, measured, {BEST}, (), 0.05, explorations)
    trial = exploration(found, bounds(1.5, rate), SearchThresholds())
    assert (trial is not None) == explored


def test_where_one_alone_was_measured_something_else_is_tried() -> None:
    found = Known(NONE, {NONE: Series([0.0] * 5)}, (), (), 0.05)
    trial = exploration(found, bounds(1.5), SearchThresholds(far=0.0))
    assert trial is not None
    assert trial.configuration != NONE
    assert math.isfinite(trial.why.values["gain"])


def test_what_is_best_by_one_sample_is_measured_again_even_when_enough_was_tried() -> None:
    measured = {NONE: Series([0.0] * 5), BEST: Series([0.5])}
    found = Known(BEST, measured, (), (), 0.05, SearchThresholds().last_exploration)
    trial = tried(found)
    assert trial is not None
    assert (trial.configuration, trial.purpose) == (BEST, Purpose.EXPLORATION)


def test_further_samples_of_the_best_decide_as_well() -> None:
    """It was the luckiest when the last try was judged; what it is measured for later may show that it isn't best."""
    thresholds, tests = SearchThresholds(), MeasurementThresholds()
    measured = {NONE: Series([0.0] * 5), ALL: Series([0.6] * 5), BEST: Series([0.65, 0.4, 0.38, 0.42, 0.4])}
    search = ConfigurationSearch(BEST, thresholds, tests, measured, explorations=thresholds.explorations)
    search.propose(bounds(1.5))
    assert search.best == ALL
    unexplored = ConfigurationSearch(BEST, thresholds, tests, measured)
    unexplored.propose(bounds(1.5))
    assert unexplored.best == BEST, "tests of ratios decide there"


def test_late_tries_have_to_be_worth_more() -> None:
    late = SearchThresholds().explorations
    found, dear = known(1.88, explorations=late), SearchThresholds(later=100.0)
    assert tried(found) is not None, "worth much: it goes on"
    assert exploration(found, bounds(1.5), dear) is None
    assert exploration(known(1.88, explorations=late - 1), bounds(1.5), dear) is not None
    assert exploration(found, replace(bounds(1.5), shared=True), SearchThresholds()) is None, "it disturbs others"


def test_what_gives_nearly_the_most_with_fewer_threads_is_kept() -> None:
    two = Configuration(2, frozenset("bc"))
    limits, thresholds = bounds(1.5), SearchThresholds()
    assert kept(known(1.75, {two: 1.752}), limits, thresholds) == BEST  # one thread, one queue
    better = known(1.4, {two: 1.9})
    assert kept(better, limits, thresholds) == two


def test_one_sample_that_stands_out_is_not_believed_at_once() -> None:
    """Of many tries with the same true throughput the luckiest looks better than it is."""
    estimate = dict.fromkeys([BEST, ALL], 0.0)
    surrogate = Surrogate({BEST: Series([0.0] * 8), ALL: Series([0.1])}, [estimate.__getitem__], noise=0.1)
    beliefs = surrogate.beliefs([BEST, ALL])
    assert 0 < beliefs[ALL].mean - beliefs[BEST].mean < 0.08


def test_what_is_like_a_bad_one_is_expected_to_be_bad() -> None:
    def at(*queued: int) -> Configuration:
        return Configuration(4, frozenset(f"op{number}" for number in queued))

    measured = {at(1, 2, 3, 4): Series([-0.5] * 3), at(11, 12, 13, 14): Series([0.0] * 3)}
    beliefs = Surrogate(measured, [lambda one: 0.0], noise=0.05).beliefs([at(1, 2, 3, 5), at(11, 12, 13, 15)])
    near_bad, near_good = beliefs.values()
    assert near_bad.mean < near_good.mean - 0.1


def test_what_fits_no_measurement_says_little() -> None:
    """Two estimates: one told rightly what two placements gave, the other one expected the opposite."""
    right, wrong = {NONE: 0.0, BEST: 0.6, ALL: 0.7}, {NONE: 0.6, BEST: 0.0, ALL: -0.5}
    measured = {NONE: Series([0.0] * 5), BEST: Series([0.6] * 5)}

    def expected(*estimates: dict[Configuration, float]) -> float:
        return Surrogate(measured, [one.__getitem__ for one in estimates], 0.05).beliefs([ALL])[ALL].mean

    assert expected(right, wrong) == pytest.approx(expected(right), abs=0.03)
    assert expected(wrong, right) == pytest.approx(expected(right, wrong))


def test_what_only_the_order_of_additions_tells_apart_is_believed_alike() -> None:
    """Linear algebra adds in another order on another CPU: 2e-11 was the most that beliefs differed by."""
    measured = {NONE: Series([0.0] * 5), BEST: Series([0.6137] * 5)}

    def believed(by: float) -> dict[Configuration, Belief]:
        estimates = {one: math.log(1 + number) + by for number, one in enumerate((NONE, BEST, ALL))}
        return Surrogate(measured, [estimates.__getitem__], 0.05).beliefs([BEST, ALL])

    assert believed(1e-12) == believed(0.0)


@pytest.mark.parametrize("doubt", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("mean", [-0.1, 0.0, 0.1])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_expected_improvement_is_what_draws_give(mean: float, doubt: float, noise: float) -> None:
    """Of what is believed after one more sample, the better of it and of the others, less the better of before."""
    draws = np.random.default_rng(1)
    sample = mean + doubt * draws.standard_normal(200_000) + noise * draws.standard_normal(200_000)
    believed = mean + (sample - mean) * doubt**2 / (doubt**2 + noise**2)
    gained = np.maximum(believed, 0.0).mean() - max(mean, 0.0)
    assert expected_improvement(Belief(mean, doubt), 0.0, noise) == pytest.approx(gained, rel=0.03, abs=3e-4)


def test_what_was_measured_often_is_not_measured_for_ever() -> None:
    tried, believed = SearchThresholds(), Belief(0.0, 0.08 / math.sqrt(6))
    assert expected_improvement(believed, -0.05, noise=0.08) < tried.worth


@pytest.mark.parametrize(
    ("queued", "split"),
    [(frozenset(), "c"), (frozenset("c"), "b"), (frozenset("bc"), "d"), (frozenset("abcd"), None)],
)
def test_the_dearest_piece_is_halved(queued: frozenset[str], split: str | None) -> None:
    costs = {"source": 0.1, "a": 3.1, "b": 3.0, "c": 2.0, "d": 2.0}
    assert OperatorGraph(NAMES).split(costs, queued, OPERATORS.__contains__) == split
