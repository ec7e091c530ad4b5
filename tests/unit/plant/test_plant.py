"""The plant as a controller sees it: observations, decisions, load scripts, noise, journals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.plant.best_static import best_static
from bench.plant.constants import ENGINE, LAPTOP, PAPER_ENGINE, XEON
from bench.plant.fixed_configuration import FixedConfiguration
from bench.plant.graph import pipeline
from bench.plant.load_script import LoadPhase, LoadScript
from bench.plant.plant import Plant, PlantSettings
from bench.plant.play import Journal, Pass, play
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation

DYNAMIC = ThreadingModel.DYNAMIC


def plant_of(costs: list[float], script: LoadScript | None = None, **settings: float) -> Plant:
    chosen = PlantSettings(**settings)  # type: ignore[arg-type]
    return Plant(pipeline(costs), LAPTOP, ENGINE, script or LoadScript(), chosen)


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    runs = [
        play(FixedConfiguration.dynamic(2), plant_of([500.0] * 9, noise=0.05, seed=s), 20, keep=True) for s in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert [one.rate for one in runs[0]] != [one.rate for one in runs[2]]


def test_noise_has_the_spread_asked_for() -> None:
    plant = plant_of([500.0] * 3, noise=0.05)
    rates = np.log([plant.play().throughput for _ in range(1000)])
    assert rates.std() == pytest.approx(0.05, rel=0.1)


def test_what_is_observed_is_what_is_in_force() -> None:
    plant = plant_of([1000.0, 3000.0, 1000.0], threads=2)
    plant.apply(Decision(9, {"op1": DYNAMIC, "sink": DYNAMIC}))
    seen = plant.play()
    assert (seen.thread_count, seen.maximum_threads, seen.cpu_count) == (2, 2, 2)
    assert seen.queued == {"op1", "sink"}
    assert [o.switchable for o in seen.operators] == [False, True, True, True, True]
    assert seen.throughput == pytest.approx(sum(o.rate for o in seen.operators))
    assert seen.operators[2].queue_fill > 0.9
    assert 1 < seen.own_cpu <= 2
    assert seen.host_cpu == pytest.approx(seen.own_cpu / 2)
    assert Observation.from_dict(seen.as_dict()) == seen


def test_samples_tell_costs() -> None:
    """M02: 100 samples/s of busy threads, falling on operators by their work."""
    plant = plant_of([1000.0, 3000.0], period=10.0)
    seen = [plant.play() for _ in range(20)]
    counts = np.array([[o.samples for o in one.operators] for one in seen]).sum(axis=0)
    assert counts.sum() + sum(one.system_samples for one in seen) == pytest.approx(100 * 200, rel=0.01)
    assert counts[2] / counts[1] == pytest.approx(3.0, rel=0.1)


def test_a_change_takes_its_time_to_show() -> None:
    plant = Plant(pipeline([1000.0] * 8), LAPTOP, replace(ENGINE, warm_up=1.0), settings=PlantSettings(period=2.0))
    before = plant.play().throughput
    plant.apply(Decision(2, {"op4": DYNAMIC}))
    warming, after = plant.play().throughput, plant.play().throughput
    assert before < warming < after
    plant.apply(Decision(2))
    assert plant.play().throughput == after


def test_a_load_script_is_played_within_periods_too() -> None:
    script = LoadScript((LoadPhase(), LoadPhase(7.5, costs=(0.0, 2000.0, 0.0)), LoadPhase(15.0, others=2.0)))
    plant = plant_of([1000.0], script)
    rates = [plant.play().operators[0].rate for _ in range(4)]
    assert rates == pytest.approx([1e6, 0.75e6, 0.5e6, 0.67e6], rel=0.02)


@pytest.mark.parametrize("starts", [(), (1.0,), (0.0, 3.0, 3.0), (0.0, 5.0, 2.0)])
def test_a_load_script_begins_at_nothing_and_goes_forward(starts: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="load script"):
        LoadScript(tuple(LoadPhase(start) for start in starts))


def test_decisions_about_what_is_not_there_are_refused() -> None:
    plant = plant_of([1.0])
    with pytest.raises(KeyError):
        plant.apply(Decision(1, {"nowhere": DYNAMIC}))
    with pytest.raises(ValueError, match="source"):
        plant.apply(Decision(1, {"source": DYNAMIC}))


def test_a_journal_tells_when_it_settled() -> None:
    changes = [True, True, False, True] + [False] * 10 + [True, False]
    journal = Journal(
        tuple(Pass(float(n), 1.0, 1.0, 2, 0, 0.0, Decision(2), changed) for n, changed in enumerate(changes))
    )
    assert journal.settling_periods() == 15
    assert journal.settling_periods(patience=5) == 4
    assert journal.settling_periods(patience=50) == 16
    assert journal.quiet_after(4, 10)
    assert not journal.quiet_after(4, 11)


def test_no_static_configuration_beats_the_best() -> None:
    plant = plant_of([300.0, 2000.0, 50.0, 700.0, 10.0, 900.0])
    best = best_static(plant)
    for queues in range(8):
        plant = plant_of([300.0, 2000.0, 50.0, 700.0, 10.0, 900.0])
        assert play(FixedConfiguration.queued(2, queues), plant, 3).last.true_rate <= best.rate * (1 + 1e-9)


def test_a_thousand_operators_on_many_cores_are_solved_once_per_configuration() -> None:
    """Passes without a change solve nothing: the cost of a run is that of its observations."""
    plant = Plant(pipeline([77.0] * 1000, payload=1024), XEON, PAPER_ENGINE, settings=PlantSettings(period=1.0))
    play(FixedConfiguration.dynamic(80), plant, 50)
    assert len(plant._states) == 1
