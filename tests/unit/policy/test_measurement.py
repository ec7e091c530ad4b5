"""The tests behind the default controller: how often they err, and how soon they know."""

import math
import random
from typing import Any

from rayelastic.policy.element.guided.measurement import (
    Expected,
    Margin,
    MeasurementThresholds,
    Series,
    Shift,
    Verdict,
    compare,
    noise_of,
)

TESTS = MeasurementThresholds()
NOISE = 0.05
RUNS = 300


def series(random_: Any, mean: Any, count: Any) -> Any:
    return Series([math.log(mean) + random_.gauss(0, NOISE) for _ in range(count)])


def share_accepted(gain: Any, margin: Any) -> Any:
    random_, accepted = random.Random(1), 0
    for _ in range(RUNS):
        base, trial = series(random_, 100, 5), Series()
        verdict = Verdict.OPEN
        while verdict is Verdict.OPEN:
            trial.add(100 * (1 + gain) * math.exp(random_.gauss(0, NOISE)), NOISE, TESTS)
            verdict, _ = compare(trial, base, margin, NOISE, TESTS)
        assert len(trial.values) <= TESTS.most
        accepted += verdict is Verdict.ACCEPT
    return accepted / RUNS


def test_a_comparison_errs_rarely_outside_its_margin() -> None:
    growth, saving = Margin(0.01, 0.08), Margin(-0.055, 0.0)
    assert share_accepted(0.15, growth) > 0.97
    assert share_accepted(-0.05, growth) < 0.03
    assert share_accepted(0.03, saving) > 0.9
    assert share_accepted(-0.12, saving) < 0.05


def test_a_clear_case_takes_two_samples() -> None:
    trial = Series([math.log(190), math.log(200)])
    assert compare(Series(trial.values[:1]), Series([math.log(100)] * 2), Margin(0.01, 0.08), NOISE, TESTS)[0] is (
        Verdict.OPEN
    )
    assert compare(trial, Series([math.log(100)] * 2), Margin(0.01, 0.08), NOISE, TESTS)[0] is Verdict.ACCEPT


def test_no_evidence_is_no_reason_to_accept() -> None:
    """Judged as it stands after the most samples: equal means in the middle of a margin speak for neither."""
    thresholds = MeasurementThresholds()
    same = Series([math.log(100.0)] * thresholds.most)
    assert compare(same, same, Margin(-0.05, 0.05), 0.04, thresholds) == (Verdict.REJECT, 0.0)
    one_less = Series([math.log(100.0)] * (thresholds.most - 1))
    assert compare(one_less, one_less, Margin(-0.05, 0.05), 0.04, thresholds)[0] is Verdict.OPEN


def test_an_estimate_counts_until_measurements_contradict_it() -> None:
    saving, expected = Margin(-0.055, 0.0), Expected(0.0, 0.03)
    base = Series([math.log(100.0)] * 5)
    verdict, _ = compare(Series([math.log(96.0)] * 6), base, saving, NOISE, TESTS, expected)
    assert verdict is Verdict.ACCEPT
    for noise in (NOISE, 0.5):  # a noise that a change of load amid the trial has made large
        verdict, gain = compare(Series([math.log(9.0)] * 6), base, saving, noise, TESTS, expected)
        assert verdict is Verdict.REJECT
        assert round(gain, 2) == -0.91


def test_a_transient_at_the_start_is_dropped_and_an_outlier_drawn_in() -> None:
    one = Series()
    one.add(1000.0, NOISE, TESTS)
    one.add(100.0, NOISE, TESTS)
    assert one.values == [math.log(100.0)]
    for _ in range(4):
        one.add(100.0, NOISE, TESTS)
    one.add(1.0, NOISE, TESTS)
    assert one.throughput > 90


def test_noise_is_learned() -> None:
    random_ = random.Random(2)
    assert noise_of([series(random_, 100, 40)], TESTS) > 0.8 * NOISE
    quiet = Series([math.log(100.0)] * 40)
    assert noise_of([quiet], TESTS) == TESTS.least_noise
    assert noise_of([quiet], TESTS, cautious=True) >= noise_of([quiet], TESTS)


def periods_until_alarm(change: Any, runs: Any = 100, most: Any = 200) -> Any:
    random_, periods = random.Random(3), []
    for _ in range(runs):
        settled, shift, period = series(random_, 100, 20), Shift(), 0
        while period < most:
            period += 1
            if shift.add(100 * change * math.exp(random_.gauss(0, NOISE)), settled, NOISE, TESTS):
                break
        periods.append(period)
    return sorted(periods)


def test_a_change_of_load_is_seen_in_two_or_three_periods_and_noise_is_none() -> None:
    assert periods_until_alarm(0.6)[98] == 2
    assert periods_until_alarm(1.5)[98] == 2
    assert periods_until_alarm(0.75)[90] <= 3
    assert periods_until_alarm(1.0)[5] == 200


def test_one_odd_period_is_no_change_of_load() -> None:
    settled, shift = Series([math.log(100.0)] * 10), Shift()
    assert not shift.add(1.0, settled, NOISE, TESTS)
    for _ in range(3):
        assert not shift.add(100.0, settled, NOISE, TESTS)
    assert not shift.suspicious
