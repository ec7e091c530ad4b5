"""Loads that change: what was best under one is found again, and a change amid a search leads to no wrong answer."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity
from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.policy.element.guided.load import LoadThresholds, Saturation, cpus_of_others
from rayelastic.policy.element.guided.load_watch import Demand, OtherProcesses, TupleCost
from rayelastic.policy.element.guided.measurement import Series
from rayelastic.policy.element.guided.memory import Memory, Remembered
from rayelastic.policy.element.guided.pace import Work
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.reasons import Code
from tests.unit.policy.plants import GraphPlant, chain, play, skewed, with_costs

NOISE = 0.05
OPERATORS = 24
CHEAP = 2.5e-8  # s per tuple of an operator
RECALL = 4  # periods in which a load that is known is to be answered
AS_GOOD = 0.97  # of a throughput

hops = st.sampled_from([5e-8, 1e-7, 1.5e-7, 2.5e-7, 4e-7])
ratios = st.sampled_from([30, 60, 100, 300])
machines = st.sampled_from([8, 16, 32])
seeds = st.integers(0, 10_000)


def changing(hop: Any, cpus: Any, seed: Any) -> Any:
    plant = GraphPlant(*chain([CHEAP] * OPERATORS), cpus=cpus, hop=hop, noise=NOISE, seed=seed)
    return plant, GuidedMultiLevelElasticity(plant.upstream)


def after(plant: Any, controller: Any, periods: Any) -> Any:
    play(plant, controller, periods)
    return plant.threads, plant.queued


@settings(max_examples=8)
@given(hops, ratios, machines, seeds)
def test_a_load_that_comes_back_is_answered_within_four_periods(hop: Any, ratio: Any, cpus: Any, seed: int) -> None:
    """C001-2, bursty cost; C000-13: with what was best under it before, or as good."""
    plant, controller = changing(hop, cpus, seed)
    best = [after(plant, controller, 60)]
    loads = [[CHEAP] * OPERATORS, [CHEAP * ratio] * OPERATORS]
    with_costs(plant, loads[1])
    best.append(after(plant, controller, 50))
    for load in (0, 1, 0):
        with_costs(plant, loads[load])
        now = after(plant, controller, RECALL)
        assert plant.rate(*now)[0] >= AS_GOOD * plant.rate(*best[load])[0]
        later = after(plant, controller, 30)
        assert plant.rate(*later)[0] >= AS_GOOD * plant.rate(*best[load])[0]


@settings(max_examples=8)
@given(st.integers(2, 40), st.booleans(), hops, machines, seeds)
def test_a_load_that_changes_amid_a_search_is_no_gain_and_no_loss(
    period: Any, dearer: Any, hop: Any, cpus: Any, seed: int
) -> None:
    """The search begins anew, instead of comparing a trial under one load with the best under another."""
    plant, controller = changing(hop, cpus, seed)
    loads = [[CHEAP] * OPERATORS, [100 * CHEAP] * OPERATORS]
    with_costs(plant, loads[not dearer])
    play(plant, controller, period)
    with_costs(plant, loads[dearer])
    now = after(plant, controller, 80)
    fresh, other = changing(hop, cpus, seed)
    with_costs(fresh, loads[dearer])
    assert plant.rate(*now)[0] >= 0.9 * fresh.rate(*after(fresh, other, 80))[0]


@pytest.mark.parametrize("factor", [1.25, 1.6])
def test_a_machine_that_turns_slower_and_fast_again_begins_no_search(factor: float) -> None:
    """What was best stays the best. With a search for each change of pace there are 21 changes here."""
    for seed in range(16):
        plant = GraphPlant(
            *chain(skewed(12 + 5 * (seed % 5), seed)),
            cpus=(2, 4, 8, 16)[seed % 4],
            hop=(1e-7, 1e-6)[seed // 4 % 2],
            contention=0.03 * (seed % 3),
            serial=0.02 * (seed % 4),
            noise=0.04,
            seed=seed,
        )
        controller = GuidedMultiLevelElasticity(plant.upstream)
        settled = after(plant, controller, 80)
        for slower in (factor, 1 / factor):
            plant.hop *= slower
            plant.costs = {name: cost * slower for name, cost in plant.costs.items()}
            assert {after(plant, controller, 1) for _ in range(30)} == {settled}


def test_who_goes_on_with_other_threads_than_were_asked_for_compares_with_them_alone() -> None:
    """What the configuration before did says nothing of the pace of the one that is in force."""
    plant = GraphPlant(*chain([2e-6] * 20), cpus=16, hop=1e-7, noise=0.04, seed=1)
    controller = GuidedMultiLevelElasticity(plant.upstream)
    after(plant, controller, 80)
    plant.threads //= 2
    given = after(plant, controller, 10)
    plant.hop *= 1.6
    plant.costs = {name: cost * 1.6 for name, cost in plant.costs.items()}
    assert {after(plant, controller, 1) for _ in range(30)} == {given}


# --- the parts ---


def test_the_same_work_goes_on_at_another_pace_only_in_the_same_places_and_with_as_many_cpus() -> None:
    def seen(rate: float, samples: tuple[int, int], busy: float = 2.0, queues: int = 100) -> Work:
        both = zip("ab", samples, strict=True)
        operators = tuple(OperatorObservation(name, samples=count) for name, count in both)
        now = Observation(time=1, period=1, throughput=rate, thread_count=1, operators=operators)
        return Work.of([replace(now, own_cpu=busy, system_samples=queues)])

    calm = seen(1e6, (500, 500))
    assert calm.goes_on_as(seen(0.7e6, (510, 490)))
    assert calm.goes_on_as(seen(1.4e6, (510, 490)))
    assert calm.goes_on_as(seen(0.6e6, (510, 490)))
    assert not calm.goes_on_as(seen(0.7e6, (500, 500), busy=1.4))  # threads wait more
    assert not calm.goes_on_as(seen(0.7e6, (850, 150)))  # the work is elsewhere
    assert not calm.goes_on_as(seen(0.7e6, (350, 350), queues=400))  # in queues
    assert not calm.goes_on_as(seen(0.4e6, (500, 500)))  # so slow is no machine
    assert not calm.goes_on_as(Work())


def test_demand_is_believed_after_periods_in_a_row() -> None:
    """Two of the same sign, by `confirm`; another one between them starts anew, for both signs."""
    slack, full, unsure = Saturation.SLACK, Saturation.FULL, Saturation.UNSURE
    demand = Demand()
    said = [demand.take(state, LoadThresholds()).name for state in (slack, full, slack, unsure, slack, slack)]
    assert (said, demand.met) == (["NONE"] * 5 + ["MET"], True)
    said = [demand.take(state, LoadThresholds()).name for state in (full, unsure, full, slack, full, full)]
    assert (said, demand.met) == (["NONE"] * 5 + ["UNMET"], False)


def load(threads: Any, costs: Any, samples: Any = 1e6, effort: Any = 1e-3, others: Any = 0) -> Any:
    names = {f"op{at}": cost for at, cost in enumerate(costs)}
    return Remembered(Configuration(threads, frozenset()), Series([10.0]), others, names, samples, effort)


def test_loads_are_told_apart_by_where_the_work_is_and_by_how_much() -> None:
    memory = Memory()
    even, skewed, dear = load(2, [0.5, 0.5]), load(3, [0.9, 0.1]), load(4, [0.5, 0.5], effort=1e-1)
    for one in (even, skewed, dear):
        memory.keep(one)
    now = load(9, [0.55, 0.45], effort=1.2e-3)
    assert memory.like(now, maximum=8) is even
    assert memory.like(load(9, [0.85, 0.15]), maximum=8) is skewed
    assert memory.like(load(9, [0.5, 0.5], effort=1.1e-1), maximum=8) is dear
    assert memory.like(load(9, [0.5, 0.5], effort=1.1e-1), maximum=3) is None
    assert memory.like(load(9, [0.0, 1.0]), maximum=8) is None
    assert memory.like(load(9, [0.5, 0.5], others=1), maximum=8) is None


def test_two_loads_with_the_same_best_are_both_remembered() -> None:
    memory = Memory()
    memory.keep(load(2, [0.5, 0.5]))
    memory.keep(load(2, [0.1, 0.9]))
    memory.keep(load(2, [0.12, 0.88]))
    assert len(memory.loads) == 2


def test_few_samples_of_many_operators_make_no_other_load() -> None:
    """64 operators of equal cost in 300 samples: half of them show a third more or less than they cost."""
    costs = [(1 + (0.35 if at % 2 else -0.35)) / 64 for at in range(64)]
    one = load(2, [1 / 64] * 64, samples=1e5)
    assert one.distance(load(2, costs, samples=300)) < 0.1
    assert one.distance(load(2, costs, samples=1e5)) > 0.15


def test_a_series_that_grows_is_remembered_as_it_is_now() -> None:
    memory, series = Memory(), Series([math.log(100.0)])
    best = Configuration(2, frozenset())
    memory.keep(Remembered(best, series, 0))
    assert memory.met(Remembered(best, Series([math.log(105.0)]), 0), tolerance=0.1)
    series.values.extend([math.log(150.0)] * 9)
    assert not memory.met(Remembered(best, Series([math.log(105.0)]), 0), tolerance=0.1)


@pytest.mark.parametrize(
    ("samples", "changed"),
    [
        ([500, 490, 510, 505, 495], None),
        ([500, 500, 760, 770], 3),  # half as much again
        ([500, 500, 760, 505, 760, 500], None),  # single periods are noise
        ([200, 500, 505, 490], None),  # the first period shows the change of configuration
        ([9, 9, 16, 15, 16], None),  # too few to tell
        ([500, 500, 0, 0, 0], None),  # nothing ran
    ],
)
def test_the_cost_of_a_tuple_tells_a_change(samples: Any, changed: Any) -> None:
    cost, now = TupleCost(), Configuration(2, frozenset())
    told = [cost.changed(now, count, 1e6, LoadThresholds()) for count in samples]
    assert (told.index(True) if True in told else None) == changed


def test_the_cost_of_a_tuple_is_compared_within_a_configuration() -> None:
    """Hardware threads that share a core make a tuple dearer, and that is no other load; ten times as dear is one."""
    cost = TupleCost()
    few, many = Configuration(2, frozenset()), Configuration(4, frozenset())
    for now, count in ((few, 500), (few, 500), (many, 900), (many, 910), (few, 500), (many, 890)):
        assert not cost.changed(now, count, 1e6, LoadThresholds())
    assert not cost.changed(many, 1800, 1e6, LoadThresholds())
    assert cost.changed(few, 1000, 1e6, LoadThresholds())
    cost = TupleCost()
    assert [cost.changed(now, count, 1e6, LoadThresholds()) for now, count in ((few, 500), (many, 5000))] == [False] * 2
    assert cost.changed(many, 5100, 1e6, LoadThresholds())


def beside(waiting: float | None, own: float = 2.0, host: float = 1.0) -> Observation:
    """A full host of 4 CPUs, of which others use what this process doesn't."""
    return Observation(
        time=1, period=1, throughput=1.0, thread_count=4, cpu_count=4, own_cpu=own, host_cpu=host, waiting_cpu=waiting
    )


def test_way_is_given_to_others_only_once_threads_wait_for_a_cpu() -> None:
    others, thresholds = OtherProcesses(), LoadThresholds()
    for _ in range(5):
        assert others.changed(beside(waiting=0.01), thresholds) is None
    assert others.changed(beside(waiting=1.0), thresholds) is None
    assert others.changed(beside(waiting=1.0), thresholds) == Code.OTHER_PROCESSES(cpus=2, of=4, before=0)
    for _ in range(5):  # what was given stays given, or they would wait again
        assert others.changed(beside(waiting=0.0), thresholds) is None
    assert others.changed(beside(waiting=0.0, host=0.5), thresholds) is None
    assert others.changed(beside(waiting=0.0, host=0.5), thresholds) == Code.OTHER_PROCESSES(cpus=0, of=4, before=2)


def test_what_others_want_is_told_by_how_long_the_own_threads_wait() -> None:
    """And not by how many threads there are, which may be mostly idle."""

    def left(waiting: float | None) -> int:
        seen = Observation(
            time=1,
            period=1,
            throughput=1.0,
            thread_count=16,
            cpu_count=16,
            own_cpu=12.0,
            host_cpu=1.0,
            waiting_cpu=waiting,
        )
        return cpus_of_others(seen, LoadThresholds())

    assert (left(None), left(6.0), left(0.5)) == (5, 5, 4)
