"""CPUs of one host, shared out among the elements of a job: fairly, and at rest where nothing changes."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from bench.plant.neighbours import FAIR, neighbours
from rayelastic.policy.element.cpu_budgets import CpuBudget, CpuBudgets, fair_levels, within_budget
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Code
from tests.unit.policy.plants import GraphPlant, chain, play

LONG = 40  # passes


def test_shares_are_max_min_fair() -> None:
    dice = random.Random(1)
    for _ in range(300):
        cpus = dice.uniform(1, 64)
        wanted = {str(n): dice.choice([math.inf, dice.uniform(0, 40)]) for n in range(dice.randint(1, 9))}
        levels = fair_levels(cpus, wanted)
        assert list(levels) == list(wanted)
        assert math.isclose(sum(levels.values()), min(cpus, sum(wanted.values())))
        most = max(levels.values())
        for name, level in levels.items():  # who gets less than another wants no more
            assert level <= wanted[name]
            assert math.isclose(level, most) or math.isclose(level, wanted[name])


def test_nobody_is_bounded_while_cpus_are_left() -> None:
    budgets = CpuBudgets(8)
    assert all(budgets.step({"a": 5.0, "b": 1.0}) == {} for _ in range(LONG))
    assert budgets.step({"a": 7.0, "b": 1.0}) == {}  # one pass says nothing
    assert budgets.step({"a": 7.0, "b": 1.0}) == {"a": 7, "b": 4}, "it is known by now that b needs little"


def test_who_waits_for_cpus_of_others_counts_as_if_it_had_them() -> None:
    budgets = CpuBudgets(2)
    for _ in range(2):
        given = budgets.step({"a": 0.5, "b": 0.5}, waiting=1.0)
    assert given == {"a": 1, "b": 1}


def test_what_some_do_not_use_for_long_others_get_and_give_back() -> None:
    budgets = CpuBudgets(16)
    given = [budgets.step({"a": 14.0, "b": 2.0}) for _ in range(LONG)]
    assert given[1] == {"a": 8, "b": 8}
    assert given[-1] == {"a": 14, "b": 8}, "b may have its part at any time"
    given = [budgets.step({"a": 9.0, "b": 7.0}) for _ in range(LONG)]
    assert given[0] == {"a": 8, "b": 8}
    assert given[-1] == {"a": 8, "b": 8}


def test_use_that_varies_changes_nothing() -> None:
    for seed in range(50):
        dice = random.Random(seed)
        cpus, lent = dice.choice([2, 4, 16, 64]), dice.uniform(0, 0.4)
        budgets = CpuBudgets(cpus)
        given = []
        for _ in range(300):
            noise = [dice.gauss(1.0, 0.05) for _ in range(2)]
            given.append(budgets.step({"a": cpus * lent * noise[0], "b": cpus * (1 - lent) * noise[1]}))
        changes = sum(before != now for before, now in pairwise(given[20:]))
        assert changes <= 1, (seed, cpus, lent, changes)  # chance may carry it over a threshold, and not back
        assert sum(given[-1].values()) >= cpus


def test_more_elements_than_cpus_get_one_each() -> None:
    budgets = CpuBudgets(2)
    used = dict.fromkeys("abcde", 0.4)
    budgets.step(used)
    assert budgets.step(used) == dict.fromkeys("abcde", 1)


def test_parts_are_given_anew_when_an_element_comes_or_goes() -> None:
    budgets = CpuBudgets(12)
    used = {"a": 6.0, "b": 6.0}
    budgets.step(used)
    assert budgets.step(used) == {"a": 6, "b": 6}
    assert budgets.step({**used, "c": 0.0}) == {"a": 4, "b": 4, "c": 4}
    assert budgets.step({"a": 4.0, "c": 4.0}) == {"a": 6, "c": 6}
    assert budgets.step({"a": 6.0}) == {}, "one has the host alone"


def test_what_another_coordinator_gave_stays() -> None:
    budgets = CpuBudgets(8, given={"a": 5, "b": 3})
    assert budgets.step({"a": 0.0, "b": 0.0}) == {"a": 4, "b": 4}
    budgets = CpuBudgets(8, given={"a": 4, "b": 4})
    assert budgets.step({"a": 0.0, "b": 0.0}) == {"a": 4, "b": 4}


def test_an_element_sees_its_part_as_a_host_of_its_own() -> None:
    seen = Observation(
        time=1,
        period=1,
        throughput=1.0,
        thread_count=4,
        minimum_threads=2,
        maximum_threads=16,
        cpu_count=17,  # an operator that sleeps has brought one
        own_cpu=4.0,
        host_cpu=10 / 17,
    )
    part = within_budget(seen, CpuBudget(4, 16, siblings=6.0))
    assert (part.cpu_count, part.maximum_threads, part.budget) == (5, 5, 4), "who sleeps needs a thread, and no CPU"
    assert part.host_cpu == pytest.approx(4 / 5), "siblings keep to their parts, and are nothing to give way to"
    awake = replace(seen, cpu_count=16, minimum_threads=2)
    assert within_budget(awake, CpuBudget(1, 16, siblings=6.0)).maximum_threads == 2, "fewer can't be"
    assert Observation.from_dict(part.as_dict()) == part


def test_another_part_begins_a_search_within_it() -> None:
    costs, upstream = chain([1e-6] * 16)
    plant, controller = GraphPlant(costs, upstream, cpus=16, minimum=1), GuidedMultiLevelElasticity(upstream)
    play(plant, controller, 60)
    assert plant.threads > 8
    decision = controller.step(within_budget(plant.observe(), CpuBudget(4, 16, siblings=0.0)))
    assert decision.thread_count <= 4
    assert decision.reasons[0] == Code.CPU_BUDGET(cpus=4)
    plant.apply(decision)
    for _ in range(60):
        decision = controller.step(within_budget(plant.observe(), CpuBudget(4, 16, siblings=0.0)))
        plant.apply(decision)
        assert plant.threads <= 4
    assert decision.rule == "settled"
    decision = controller.step(replace(plant.observe(), budget=None))
    assert decision.reasons[0] == Code.NO_CPU_BUDGET()
    plant.apply(decision)
    play(plant, controller, 60)
    assert plant.threads > 8


@pytest.mark.parametrize(("cores", "elements", "apart"), [(4, 2, 60), (4, 4, 0), (16, 4, 60), (64, 2, 60)])
def test_elements_of_a_job_get_their_fair_shares_and_rest(cores: int, elements: int, apart: int) -> None:
    for one in neighbours(cores, elements, apart, one_job=True):
        assert one.share >= FAIR
        assert one.changes == 0
