"""What was best in an earlier run is the first trial, within today's bounds, and is kept if it isn't worse."""

from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity
from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.reasons import Code
from tests.reasons import codes
from tests.unit.policy.plants import GraphPlant, chain, play, with_costs

NOISE = 0.03
COSTS = [1e-6] * 24
SOME = frozenset(f"op{number}" for number in range(2, 24, 3))


def plant_of(cpus: int = 8) -> GraphPlant:
    return GraphPlant(*chain(COSTS), cpus=cpus, noise=NOISE, seed=3)


def begun(plant: GraphPlant, earlier: Configuration | None) -> GuidedMultiLevelElasticity:
    return GuidedMultiLevelElasticity(plant.upstream, earlier=earlier)


def test_what_was_best_is_in_force_after_one_period_and_kept() -> None:
    plant = plant_of()
    controller = begun(plant, Configuration(7, SOME))
    first, *_ = play(plant, controller, 4)
    assert (first.thread_count, set(first.models)) == (7, SOME)
    assert Code.BEST_EARLIER(setting={"threads": 7, "queues": len(SOME)}) in first.reasons
    assert controller.best == Configuration(7, SOME)


def test_it_leads_where_a_run_that_knows_nothing_comes_to() -> None:
    unknowing, knowing = plant_of(), plant_of()
    controller = begun(unknowing, None)
    play(unknowing, controller, 60)
    assert controller.best == Configuration(unknowing.threads, unknowing.queued)
    play(knowing, begun(knowing, controller.best), 4)
    assert (
        knowing.rate(knowing.threads, knowing.queued)[0]
        >= 0.97 * unknowing.rate(unknowing.threads, unknowing.queued)[0]
    )


def test_bounds_and_operators_of_today_count() -> None:
    plant = plant_of(cpus=4)
    first, *_ = play(plant, begun(plant, Configuration(60, SOME | {"gone"})), 1)
    assert (first.thread_count, set(first.models)) == (4, SOME)


def test_what_is_worse_now_is_taken_back() -> None:
    """All operators but one are cheap today: a queue in front of each costs more than it brings."""
    plant = plant_of()
    with_costs(plant, [1e-9] * 23 + [1e-6])
    alone = plant.rate(plant.threads, plant.queued)[0]
    everything = Configuration(2, frozenset(f"op{number}" for number in range(23)))
    play(plant, begun(plant, everything), 60)
    assert plant.queued != everything.queued
    assert plant.rate(plant.threads, plant.queued)[0] >= 0.97 * alone


def test_what_is_in_force_already_is_no_trial() -> None:
    plant = plant_of()
    first, *_ = play(plant, begun(plant, Configuration(plant.threads, plant.queued)), 1)
    assert not first.models
    assert Code.BEST_EARLIER not in codes(first.reasons)


def test_nothing_is_known_before_something_was_compared_and_after_a_change_of_regions() -> None:
    plant = plant_of()
    controller = begun(plant, Configuration(7, SOME))
    assert controller.best is None
    controller.reset()
    first, *_ = play(plant, controller, 1)
    assert not first.models
    assert controller.best is None
