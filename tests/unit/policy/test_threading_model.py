"""Middleware'19 Figs 3 and 4: groups, and the search inside them, rule by rule."""

from typing import Any

import pytest

from rayelastic.papers.profiling_groups import GROUPS, profiling_groups
from rayelastic.papers.threading_model import AdjustDecision, Direction, ThreadingModelElasticity
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.observation import Observation, OperatorObservation

DYNAMIC, MANUAL = ThreadingModel.DYNAMIC, ThreadingModel.MANUAL


class Scripted:
    """Operators with given samples; throughput is a function of the set of queues."""

    def __init__(self, samples: Any, throughput: Any, queued: Any = ()) -> None:
        self.samples, self.throughput, self.queued = samples, throughput, set(queued)

    def observe(self) -> Any:
        operators = [OperatorObservation("source", switchable=False)]
        for name, samples in self.samples.items():
            operators.append(OperatorObservation(name, DYNAMIC if name in self.queued else MANUAL, samples=samples))
        throughput = self.throughput(frozenset(self.queued))
        return Observation(time=1, period=1, throughput=throughput, thread_count=2, operators=tuple(operators))

    def search(self, direction: Any = Direction.UP, most: Any = 50) -> Any:
        """Counts of queues after each adjustment, rules, and how it ended."""
        elasticity, counts, rules = ThreadingModelElasticity(), [], []
        for _ in range(most):
            outcome, decision = elasticity.adjust(self.observe(), direction)
            for name, model in decision.models.items():
                (self.queued.add if model is DYNAMIC else self.queued.discard)(name)
            counts.append(len(self.queued))
            rules.append(decision.rule.split(",")[0].removeprefix("Middleware'19 "))
            if outcome is not AdjustDecision.CONTINUE:
                return counts, rules, outcome
        raise AssertionError("the search doesn't end")


def heavy(count: Any, samples: Any = 100) -> Any:
    return {f"op{i}": samples for i in range(count)}


def test_groups_are_powers_of_two_and_nine_at_most() -> None:
    operators = [OperatorObservation(f"op{i}", samples=2**i) for i in range(14)]
    groups = profiling_groups(operators)
    assert len(groups) == GROUPS
    assert [len(group) for group in groups] == [1] * (GROUPS - 1) + [14 - GROUPS + 1]
    assert profiling_groups([]) == ()
    assert profiling_groups([OperatorObservation("never seen")]) == (("never seen",),)


def test_a_whole_group_at_once_and_the_next_one() -> None:
    """M04: better with all of a group leads to the next one; what was no better is taken back (M09)."""
    plant = Scripted(heavy(8) | {"light0": 1, "light1": 1}, lambda queued: 100 + 10 * sum(q[0] == "o" for q in queued))
    counts, rules, outcome = plant.search()
    assert counts == [8, 10, 8]
    assert rules == ["Fig. 4 line 6 (M04)", "Fig. 4 line 6 (M04)", "Fig. 3 R5"]
    assert outcome is AdjustDecision.CHANGE


@pytest.mark.parametrize("peak", [2, 4, 8, 11, 13])
def test_a_group_that_makes_it_worse_is_bisected(peak: Any) -> None:
    """M04: ends better than without the group, and than with all of it."""
    plant = Scripted(heavy(16), lambda queued: 100 + (40 - 20 * abs(len(queued) - peak) if queued else 0))
    counts, _, outcome = plant.search()
    assert counts[:2] == [16, 8]
    assert outcome is AdjustDecision.CHANGE if abs(counts[-1] - peak) <= 2 else AdjustDecision.STAY
    assert plant.throughput(frozenset(plant.queued)) >= 100
    assert len(counts) <= 7


@pytest.mark.parametrize(
    ("with_half", "rule", "then"),
    [(120, "Fig. 3 R1", 12), (60, "Fig. 3 R2", 12), (85, "Fig. 3 R3", 4), (100, "Fig. 3 R4", 4)],
)
def test_rules_one_to_four(with_half: Any, rule: Any, then: Any) -> None:
    """What follows half of a group that as a whole gives 80 instead of 100."""
    throughput = {0: 100, 8: with_half, 16: 80}
    counts, rules, _ = Scripted(heavy(16), lambda queued: throughput.get(len(queued), 1)).search()
    assert counts[:3] == [16, 8, then]
    assert rules[2] == rule


def test_no_gain_leaves_everything_as_it_was() -> None:
    counts, _, outcome = Scripted(heavy(4), lambda queued: 100).search()
    assert counts == [4, 0]
    assert outcome is AdjustDecision.STAY


def test_downwards_begins_with_the_lightest_group() -> None:
    """Middleware'19 section 3.3: the same in reverse order."""
    samples = heavy(4) | {"light0": 1, "light1": 1}
    plant = Scripted(samples, lambda queued: 100 - 20 * sum(q[0] == "l" for q in queued), queued=samples)
    counts, _, outcome = plant.search(Direction.DOWN)
    assert counts == [4, 0, 4]
    assert outcome is AdjustDecision.CHANGE
    assert all(name.startswith("op") for name in plant.queued)


def test_small_groups_are_not_searched_inside() -> None:
    """M09: under a tenth of the ports."""
    plant = Scripted({"heavy": 100} | {f"light{i}": 1 for i in range(20)}, lambda queued: 100 - len(queued))
    counts, _, _ = plant.search()
    assert counts[:2] == [1, 0]


def test_alone_it_stays_once_settled() -> None:
    plant, elasticity = Scripted(heavy(4), lambda queued: 100 + len(queued)), ThreadingModelElasticity()
    rules = [elasticity.step(plant.observe()).rule for _ in range(4)]
    assert rules[-1] == "Middleware'19 Fig. 4 line 13"


@pytest.mark.parametrize("adapted", [True, False])
def test_no_adjustment_while_ports_drain(adapted: Any) -> None:
    """M15."""
    plant, elasticity = Scripted(heavy(4), lambda queued: 100), ThreadingModelElasticity()
    elasticity.adjust(plant.observe())
    seen = plant.observe()
    seen = Observation.from_dict({**seen.as_dict(), "adapted": adapted})
    outcome, _ = elasticity.adjust(seen)
    assert (outcome is AdjustDecision.CONTINUE) is not adapted
