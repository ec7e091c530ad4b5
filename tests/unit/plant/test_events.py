"""The plant by events: what no scheduler can break, and what the native one does."""

import numpy as np
import pytest

from bench.plant.events.graphs import random_graph
from bench.plant.events.plant import Configuration, EventPlant, EventSettings
from bench.plant.graph import PlantGraph, PlantOperator, Stream, pipeline
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision

NOTHING: frozenset[int] = frozenset()


def rate(graph: PlantGraph, cores: int, threads: int, queued: frozenset[int] = NOTHING) -> float:
    played = EventPlant(graph, EventSettings(cores)).played(Configuration(threads, queued))
    return played.rates[0]


def random_configuration(plant: EventPlant, number: int) -> Configuration:
    draw = np.random.default_rng(number)
    queued = frozenset(n for n in plant.movable if draw.random() < (0.1, 0.5, 1.0)[number % 3])
    return Configuration(int(draw.integers(1, plant.settings.cores + 1)), queued)


@pytest.mark.parametrize("cores", [2, 8])
@pytest.mark.parametrize("number", range(16))
def test_flows_are_kept_and_no_thread_is_in_two_places(number: int, cores: int) -> None:
    drawn = random_graph(number, 5, cores)
    graph = drawn.graph
    plant = EventPlant(graph, EventSettings(cores, drawn.paced, seed=number))
    configuration = random_configuration(plant, number)
    played = plant.played(configuration, longer=4)
    assert played.cpus <= cores + 1e-6
    assert 0 <= played.idle <= 1
    assert played.blocked + played.token_wait <= 1
    assert max(played.work) <= 1.1  # one thread at a time in an operator; runs differ by a tenth
    token = sum(work for work, one in zip(played.work, graph.operators, strict=True) if one.needs_token)
    assert token <= 1.1
    for at, into in enumerate(graph.incoming):
        if into:
            given = sum(played.rates[one.tail] * graph.operators[one.tail].selectivity * one.share for one in into)
            assert played.rates[at] == pytest.approx(given, rel=0.02, abs=500)  # what queues hold comes and goes


def test_one_thread_takes_what_the_operators_cost() -> None:
    assert rate(pipeline([1000.0] * 10), cores=2, threads=1) == pytest.approx(1e5, rel=0.01)


def test_a_queue_lets_two_cores_work_and_costs_little() -> None:
    graph = pipeline([1000.0] * 10)
    assert rate(graph, 2, 1, frozenset({6})) == pytest.approx(2e5, rel=0.03)
    assert rate(graph, 2, 2, frozenset(range(1, 12))) > 1.85e5


def test_the_dearest_operator_bounds_the_rate() -> None:
    graph = pipeline([100.0, 100.0, 5000.0, 100.0])
    assert 0.9 * 2e5 < rate(graph, 16, 8, frozenset(range(1, 6))) <= 1.02 * 2e5


def test_dear_runs_are_short_so_that_both_sides_of_a_queue_work() -> None:
    assert rate(pipeline([1e5] * 10), 2, 1, frozenset({6})) > 1.9 * rate(pipeline([1e5] * 10), 2, 1)


def test_queues_cost_more_than_cheap_operators() -> None:
    graph = pipeline([5.0] * 20)
    assert rate(graph, 2, 1, frozenset(range(1, 22))) < rate(graph, 2, 1, frozenset({11}))


def test_more_threads_than_cores_take_turns() -> None:
    graph = pipeline([1000.0] * 10)
    assert rate(graph, 2, 2, frozenset(range(1, 12))) == pytest.approx(
        rate(graph, 2, 1, frozenset(range(1, 12))), rel=0.06
    )


def test_the_token_is_for_one_at_a_time() -> None:
    operators = (
        PlantOperator("source", 10.0, source=True),
        PlantOperator("a", 4000.0, needs_token=True),
        PlantOperator("b", 4000.0, needs_token=True),
    )
    graph = PlantGraph(operators, (Stream(0, 1), Stream(1, 2)))
    played = EventPlant(graph, EventSettings(4)).played(Configuration(2, frozenset({1, 2})))
    assert 0.9 * 1.25e5 < played.rates[0] <= 1.02 * 1.25e5


def test_branches_that_meet_without_a_queue_wait_for_each_other() -> None:
    operators = [PlantOperator("source", 10.0, source=True)]
    operators += [PlantOperator(f"branch{n}", 100.0) for n in range(4)] + [PlantOperator("sink", 2000.0)]
    streams = [Stream(0, n, 0.25) for n in range(1, 5)] + [Stream(n, 5) for n in range(1, 5)]
    played = EventPlant(PlantGraph(tuple(operators), tuple(streams)), EventSettings(8)).played(
        Configuration(4, frozenset({1, 2, 3, 4}))
    )
    assert played.rates[0] <= 1.02 * 5e5
    assert played.blocked > 0.2


def test_queues_that_fill_up_are_no_throughput() -> None:
    """What feeds the bottleneck here is little faster than that, and nineteen queues take long to fill."""
    plant = EventPlant(random_graph(28, 4, 16).graph, EventSettings(16))
    configuration = Configuration(16, frozenset({3, 6, *range(9, 26)}))
    short, long = (plant.played(configuration, longer).rates[0] for longer in (1, 16))
    assert short == pytest.approx(long, rel=0.03)


def test_a_source_that_is_given_little_waits() -> None:
    plant = EventPlant(pipeline([1000.0] * 4), EventSettings(2, paced={0: 50_000.0}))
    seen = plant.play()
    assert seen.operators[0].rate == pytest.approx(50_000, rel=0.03)
    assert seen.source_wait is not None
    assert seen.source_wait > 0.7


def test_no_placement_stops_the_scheduler() -> None:
    for number in range(48):
        drawn = random_graph(number, 9, 4)
        plant = EventPlant(drawn.graph, EventSettings(4, drawn.paced))
        assert plant.played(random_configuration(plant, number)).rate > 0


def test_the_same_seed_gives_the_same_run() -> None:
    def seen() -> list[dict[str, object]]:
        plant = EventPlant(random_graph(3, 1, 4).graph, EventSettings(4, noise=0.05, seed=7))
        first = plant.play()
        plant.apply(Decision(3, {"op4": ThreadingModel.DYNAMIC}))
        return [first.as_dict(), plant.play().as_dict()]

    assert seen() == seen()


def test_what_is_applied_is_seen() -> None:
    plant = EventPlant(pipeline([1000.0] * 4), EventSettings(4))
    plant.apply(Decision(9, {"op1": ThreadingModel.DYNAMIC}))
    seen = plant.play()
    assert (seen.thread_count, seen.queued, plant.thread_count) == (4, {"op1"}, 4)
    with pytest.raises(ValueError, match="is a source"):
        plant.apply(Decision(1, {"source": ThreadingModel.DYNAMIC}))
