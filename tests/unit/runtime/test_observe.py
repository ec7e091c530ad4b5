"""What a pair of native samples says of a period."""

from dataclasses import replace
from typing import Any

import pytest

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.runtime.loops.adaptation_loop import LoopSettings, observe
from rayelastic.runtime.watch.machine_load import CpuUse
from tests.native_samples import native_sample

SETTINGS = LoopSettings(
    pe="pe0",
    order={"in": 0, "work": 1},
    sources=frozenset({"in"}),
    pinned=frozenset(),
    period=1.0,
    minimum_threads=1,
    maximum_threads=2,
    cpus=2,
)


def sample(operators: list[dict[str, Any]], **counters: float) -> Any:
    return native_sample(*operators, **counters)


def seen(after: Any, **arguments: Any) -> Any:
    return observe(SETTINGS, sample([{}, {}]), after, 2.0, at=2.0, cpu=CpuUse(own=0.5, host=0.4), **arguments)


def test_rates_are_of_sources_made_and_of_others_taken() -> None:
    observation = seen(sample([{"tuples_out": 200}, {"tuples_in": 180, "tuples_out": 7, "cpu_seconds": 1.5}]))
    assert [operator.rate for operator in observation.operators] == [100, 90]
    assert observation.throughput == 190
    assert [operator.samples for operator in observation.operators] == [0, 150]
    assert (observation.own_cpu, observation.host_cpu) == (0.5, 0.4)


def test_shares_are_of_the_threads_time() -> None:
    counters = {"scheduler_seconds": 4.0, "idle_seconds": 1.0, "thread_seconds": 8.0, "blocked_seconds": 2.0}
    observation = seen(sample([{}, {}], **counters))
    assert (observation.idle, observation.blocked, observation.token_wait) == (0.25, 0.25, 0.0)


def test_sleep_in_an_operator_that_mostly_sleeps_is_load() -> None:
    waits = {"cpu_seconds": 0.1, "inside_seconds": 1.9, "waited_seconds": 1.6}
    observation = seen(sample([{}, waits]))
    assert [operator.samples for operator in observation.operators] == [0, 170]
    assert observation.cpu_count == 3  # nobody can take away what it needs
    assert observation.own_cpu == pytest.approx(0.5 + 0.8)
    assert observation.host_cpu == pytest.approx((0.4 * 2 + 0.8) / 3)
    assert (observation.cpus_used, observation.cpus, observation.host_busy) == pytest.approx((0.5, 2, 0.4))


def test_sleep_in_an_operator_that_mostly_computes_is_none() -> None:
    computes = {"cpu_seconds": 1.2, "inside_seconds": 1.9, "waited_seconds": 0.5}  # for the interpreter, say
    observation = seen(sample([{"inside_seconds": 2.0, "waited_seconds": 2.0}, computes]))
    assert [operator.samples for operator in observation.operators] == [0, 120]
    assert (observation.cpu_count, observation.own_cpu, observation.host_cpu) == (2, 0.5, 0.4)


def test_what_is_pinned_reluctant_or_final_is_not_switchable() -> None:
    switchable = {operator.name: operator.switchable for operator in seen(sample([{}, {}])).operators}
    assert switchable == {"in": False, "work": True}
    assert not seen(sample([{}, {}]), reluctant=frozenset({"work"})).operators[1].switchable
    assert not seen(sample([{}, {"final": True}])).operators[1].switchable


def test_queues_show_their_fill_and_model() -> None:
    operator = seen(sample([{}, {"queued": 30, "queue_capacity": 40, "model": "dynamic"}])).operators[1]
    assert (operator.queue_fill, operator.model) == (0.75, ThreadingModel.DYNAMIC)


@pytest.mark.parametrize(
    ("source", "work", "expected"),
    [
        ((0.1, 1.1), (0.9, 0.9), 0.5),  # a second of two inside the source without working: it waits for input
        ((0.1, 0.2), (0.9, 1.8), 0.0),  # all wait for a CPU alike: nobody waits for input
        ((0.5, 0.5), (1.5, 1.5), 0.0),
        ((0.0, 2.0), (0.0, 0.0), 1.0),
    ],
)
def test_a_source_waits_for_input_as_far_as_it_waits_more_than_others(
    source: tuple[float, float], work: tuple[float, float], expected: float
) -> None:
    operators = [{"cpu_seconds": cpu, "inside_seconds": inside} for cpu, inside in (source, work)]
    assert seen(sample(operators)).source_wait == pytest.approx(expected)


def test_operators_that_sleep_dont_hide_that_a_source_waits() -> None:
    """One asks a service for all of its time; the source has a tuple every half of a second."""
    source = {"cpu_seconds": 0.1, "inside_seconds": 1.0}
    asks = {"cpu_seconds": 0.1, "inside_seconds": 1.0, "waited_seconds": 0.9}
    assert seen(sample([source, asks])).source_wait == pytest.approx(0.45)


def test_of_several_sources_the_one_that_waits_least_counts() -> None:
    settings = replace(SETTINGS, sources=frozenset(SETTINGS.order))
    after = sample([{"inside_seconds": 2.0}, {"inside_seconds": 0.5}])
    observation = observe(settings, sample([{}, {}]), after, 2.0, at=2.0, cpu=CpuUse(own=0.5, host=0.4))
    assert observation.source_wait == pytest.approx(0.25)


def test_a_source_that_has_ended_says_nothing() -> None:
    assert seen(sample([{"final": True}, {}])).source_wait is None


def test_a_source_that_an_operator_holds_to_a_rate_waits_as_long_as_that_sleeps() -> None:
    """Time asleep in a throttle is no load: it needs no CPU of its own, and the source could emit more."""
    settings = replace(SETTINGS, paced={"work": frozenset({"in"})})
    sleeps = {"cpu_seconds": 0.1, "inside_seconds": 1.9, "waited_seconds": 1.6}
    after = sample([{"inside_seconds": 0.1, "cpu_seconds": 0.1}, sleeps])
    observation = observe(settings, sample([{}, {}]), after, 2.0, at=2.0, cpu=CpuUse(own=0.5, host=0.4))
    assert observation.source_wait == pytest.approx(0.8)
    assert [operator.samples for operator in observation.operators] == [10, 10]
    assert (observation.cpu_count, observation.own_cpu) == (2, 0.5)
    other = replace(SETTINGS, paced={"work": frozenset()})  # another source feeds it
    assert observe(other, sample([{}, {}]), after, 2.0, at=2.0, cpu=CpuUse(own=0.5, host=0.4)).source_wait == 0.0


def test_what_operators_give_is_told_beside_what_they_take() -> None:
    observation = seen(sample([{"tuples_out": 200}, {"tuples_in": 180, "tuples_out": 6}]))
    assert [operator.given for operator in observation.operators] == [100, 3]
