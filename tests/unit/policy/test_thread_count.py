"""PLDI'17 Figs 7 and 8: golden traces of the thread levels, and the rules one by one."""

from typing import Any

import pytest

from rayelastic.papers.thread_count import LevelSteps, ThreadCountElasticity
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Code
from tests.unit.policy.plants import CurvePlant, play, threads_of


def up_to(peak: int, then: float = 0.0) -> Any:
    """Linear up to a peak, then falling by `then` a thread."""
    return lambda n: n if n <= peak else max(0.1, peak - then * (n - peak))


def trace(curve: Any, maximum: Any = 176, minimum: Any = 2, periods: Any = 60, **kwargs: Any) -> Any:
    plant = CurvePlant(curve, maximum, minimum)
    return threads_of(play(plant, ThreadCountElasticity(**kwargs), periods), plant.minimum)


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_linear_to_80_then_falling(variant: str) -> None:
    assert trace(up_to(80, then=1.0), variant=variant) == [2, 4, 8, 16, 32, 64, 128, 96, 80]


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_plateau_from_10_is_answered_with_the_power_of_two_above(variant: str) -> None:
    assert trace(up_to(10), variant=variant) == [2, 4, 8, 16, 32, 24, 20, 18, 17, 16]


def test_unit_steps_settle_on_the_peak_itself() -> None:
    assert trace(up_to(5), steps=LevelSteps.UNIT, maximum=8) == [2, 3, 4, 5, 6, 5]


def test_small_maxima_are_explored() -> None:
    """The released runtime never leaves 2 of 4 (E2); Fig. 8 with the minimum level does."""
    assert trace(up_to(4), maximum=4) == [2, 4]
    assert trace(up_to(3), maximum=3) == [2, 3]
    assert trace(up_to(2), maximum=4) == [2, 4, 3, 2]


def test_a_minimum_above_the_cpus_is_no_level() -> None:
    plant = CurvePlant(up_to(4), maximum=1, minimum=2)
    assert threads_of(play(plant, ThreadCountElasticity(), 20), 1) == [1]


def observation(throughput: Any, threads: Any, **kwargs: Any) -> Any:
    defaults = {"minimum_threads": 2, "maximum_threads": 64, "time": 1.0, "period": 1.0}
    return Observation(throughput=throughput, thread_count=threads, **{**defaults, **kwargs})


def rule_after(controller: Any, *steps: Any) -> Any:
    return [controller.step(observation(throughput, threads)).rule[-1] for throughput, threads in steps]


def test_each_rule_of_fig_8() -> None:
    assert rule_after(ThreadCountElasticity(), (10, 2), (20, 4)) == ["3", "1"]
    assert rule_after(ThreadCountElasticity(), (10, 2), (20, 4), (20.1, 8), (20.1, 6), (20.1, 5)) == list("31555")
    assert rule_after(ThreadCountElasticity(), (10, 2), (10, 8)) == ["3", "5"]
    assert rule_after(ThreadCountElasticity(), (10, 8)) == ["4"]
    assert rule_after(ThreadCountElasticity(), (20, 8), (10, 4)) == ["4", "2"]
    assert rule_after(ThreadCountElasticity(), (10, 2), (20, 4), (10, 8), (20, 4)) == list("3156")


def test_no_thread_is_added_on_a_busy_host() -> None:
    """P32; the level is kept at the bottom."""
    decision = ThreadCountElasticity().step(observation(10, 2, host_cpu=0.81))
    assert decision.thread_count == 2
    assert Code.HOST_BUSY(busy=0.81) in decision.reasons


def test_a_period_without_what_was_asked_for_changes_nothing() -> None:
    controller = ThreadCountElasticity()
    assert controller.step(observation(10, 4, adapted=False)).thread_count == 4
    assert "P25" in controller.step(observation(10, 4, adapted=False)).rule


def test_the_released_variant_swallows_five_strikes() -> None:
    """E3: 20 % against the first throughput at the level, the first two periods ignored."""
    controller = ThreadCountElasticity("released")
    for throughput, threads in ((10, 2), (20, 4), (10, 8)):
        controller.step(observation(throughput, threads))
    changes = []
    for throughput in [20.0] * 2 + [30.0] * 6:  # type: ignore[assignment]
        controller.step(observation(throughput, 4))
        changes.append(controller.load_changed)
    assert changes == [False] * 7 + [True]


def test_the_paper_variant_believes_six_percent_at_once() -> None:
    controller = ThreadCountElasticity("paper")
    rule_after(controller, (10, 2), (20, 4), (10, 8), (21.2, 4))
    assert controller.load_changed


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(ValueError, match="choose 'paper' or 'released'"):
        ThreadCountElasticity("ours")


def test_noise_makes_the_paper_variant_oscillate() -> None:
    """C002-6 (Power8, data-parallel 100 k): flat between 130 and 184 threads, and noise of 5 %: it never settles."""
    plant = CurvePlant(lambda n: min(n, 130) + 0.02 * n, 184, noise=0.05, seed=1)
    decisions = play(plant, ThreadCountElasticity(), 300)
    late = [d.thread_count for d in decisions[200:]]
    assert len(set(late)) > 5


def test_a_change_of_load_is_said_of_the_period_in_which_it_was_seen_alone() -> None:
    controller = ThreadCountElasticity(queues=False)
    for throughput, threads in ((10, 2), (20, 4), (20, 4)):
        controller.step(observation(throughput, threads))
    seen = []  # type: ignore[var-annotated]
    while not controller.load_changed and len(seen) < 10:
        seen.append(controller.step(observation(100, 4)))
    assert controller.load_changed
    controller.step(observation(100, 4, adapted=False))
    assert not controller.load_changed
