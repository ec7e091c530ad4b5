"""IPDPS'09 Fig. 2, line by line, and the runs of its section 5."""

from typing import Any

from rayelastic.policy.element.observation import Observation
from rayelastic.policy.stage.peak_rate import PeakRateElasticity
from tests.unit.policy.plants import CurvePlant, play, threads_of


def trace(curve: Any, maximum: Any, periods: Any = 30, **kwargs: Any) -> Any:
    plant = CurvePlant(curve, maximum, minimum=1, **kwargs)
    return threads_of(play(plant, PeakRateElasticity(), periods), 1)


def test_up_while_peaks_rise_and_stability_from_below() -> None:
    """S08: settles where the first thread brought nothing."""
    assert trace(lambda n: min(n, 4), maximum=16) == [1, 2, 3, 4, 5]


def test_four_threads_on_four_cores() -> None:
    """C004-1."""
    assert trace(lambda n: n, maximum=4) == [1, 2, 3, 4]


def test_overhead_is_detected() -> None:
    """C004-2: cheap tuples go slower with more threads."""
    assert trace(lambda n: 1 / n, maximum=16)[-1] == 1


def decide(controller: Any, *samples: Any) -> Any:
    made = []
    for rate, threads in samples:
        seen = Observation(time=1, period=1, throughput=rate, thread_count=threads, maximum_threads=8)
        made.append(controller.step(seen).thread_count)
    return made


def test_a_busy_system_is_inferred_and_left_again() -> None:
    """S09: below its own peak one thread goes on trial, and comes back if it was needed."""
    controller = PeakRateElasticity()
    assert decide(controller, (10, 1), (20, 2), (30, 3)) == [2, 3, 4]
    assert decide(controller, (20, 3)) == [2]
    assert decide(controller, (19, 2)) == [3]
    assert decide(controller, (20, 3)) == [2]
    assert decide(controller, (21, 2)) == [2]


def test_a_much_higher_rate_invalidates_the_peaks_above() -> None:
    """S06: infinity, which then takes the first rate instead of decaying to no number."""
    controller = PeakRateElasticity()
    decide(controller, (10, 1), (10, 2))
    assert decide(controller, (30, 1)) == [2]
    assert decide(controller, (60, 2)) == [3]


def test_external_load_is_followed() -> None:
    """C004-3: two of four cores are taken for a while."""
    plant = CurvePlant(lambda n: min(n, 4), maximum=4, minimum=1)
    controller = PeakRateElasticity()
    play(plant, controller, 10)
    assert plant.threads == 4
    plant.curve = lambda n: min(n, 2) - 0.5 * max(0, n - 2)
    play(plant, controller, 12)
    fewer = plant.threads
    plant.curve = lambda n: min(n, 4)
    play(plant, controller, 12)
    assert fewer < 4
    assert plant.threads == 4


def test_no_rate_is_no_crash() -> None:
    assert decide(PeakRateElasticity(), (0, 1), (0, 2), (0, 1)) == [2, 2, 1]


def test_a_peak_that_is_only_reached_again_sinks() -> None:
    """S07: by 1 % a period; 6 % less than it was two periods ago is no sign of a busy system then, before it is."""
    assert decide(PeakRateElasticity(), (100.0, 1), (100.0, 1), (94.0, 1)) == [2, 2, 2]
    assert decide(PeakRateElasticity(), (100.0, 1), (94.0, 1)) == [2, 1]
