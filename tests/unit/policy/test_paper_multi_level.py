"""Middleware'19 Fig. 7: the order of both adjustments, history and satisfaction factor."""

from typing import Any

from rayelastic.papers.multi_level import (
    PaperMultiLevelElasticity,
    PaperMultiLevelThresholds,
    Satisfaction,
    _Primary,
)
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.observation import Observation, OperatorObservation
from tests.unit.policy.plants import GraphPlant, chain, play, skewed, threads_of, with_costs


def plant(cpus: Any = 32, **kwargs: Any) -> Any:
    costs, upstream = chain(skewed(100, seed=3))
    return GraphPlant(costs, upstream, cpus=cpus, hop=3e-7, **kwargs)


def changes(decisions: Any) -> Any:
    """How many periods the searches of queues take."""
    return sum(d.rule.startswith("Middleware'19") for d in decisions)


def test_queues_are_searched_before_threads() -> None:
    """M10: begins at the fewest threads without queues."""
    decisions = play(plant(), PaperMultiLevelElasticity(), 40)
    first_threads = next(i for i, d in enumerate(decisions) if d.thread_count > 2)
    assert any(d.models for d in decisions[:first_threads])
    assert decisions[0].rule == "Middleware'19 Fig. 4 line 6 (M04), more queues"


def test_it_ends_well_above_one_thread() -> None:
    one = plant()
    play(one, PaperMultiLevelElasticity(), 200)
    alone = one.rate(2, frozenset())[0]
    assert one.rate(one.threads, one.queued)[0] > 5 * alone


def test_history_and_satisfaction_factor_save_searches() -> None:
    """Fig. 6(a) to (d): each makes it shorter, and the throughput is the same."""
    ends, searches = [], []
    for thresholds in (
        PaperMultiLevelThresholds(satisfaction=Satisfaction.NEVER, history=False),
        PaperMultiLevelThresholds(satisfaction=Satisfaction.NEVER),
        PaperMultiLevelThresholds(satisfaction_factor=0.6),
        PaperMultiLevelThresholds(satisfaction_factor=0.0),
    ):
        one = plant()
        decisions = play(one, PaperMultiLevelElasticity(thresholds), 250)
        searches.append(changes(decisions))
        ends.append(one.rate(one.threads, one.queued)[0])
    assert searches[0] > searches[1] > max(searches[2:])
    assert min(ends) > 0.8 * max(ends)


def test_the_satisfaction_rules() -> None:
    """M12, E6 and M17, by what happens after threads grew from 2 to 4 for 1.7 times the throughput."""

    def skipped(**kwargs: Any) -> Any:
        controller = PaperMultiLevelElasticity(PaperMultiLevelThresholds(**kwargs))
        one = GraphPlant(*chain([1e-6] * 8), cpus=4)
        for _ in range(30):
            seen = one.observe()
            before = controller._primary
            decision = controller.step(seen)
            if before is not None:
                return not decision.rule.startswith("Middleware'19")
            one.apply(decision)
        raise AssertionError("threads never changed")

    assert skipped(satisfaction_factor=0.0) is True
    assert skipped(satisfaction=Satisfaction.NEVER) is False
    assert skipped(satisfaction_factor=0.0, validate_at_maximum=True) is False


def test_a_change_of_load_takes_all_queues_off_and_searches_again() -> None:
    """M14."""
    one, controller = plant(), PaperMultiLevelElasticity()
    play(one, controller, 150)
    assert one.queued
    with_costs(one, [cost * 3 for cost in list(one.costs.values())[1:]])
    decisions = play(one, controller, 30)
    forgotten = [i for i, d in enumerate(decisions) if "M14" in d.rule]
    assert forgotten
    assert decisions[forgotten[0] + 1].rule.startswith("Middleware'19 Fig. 4 line 6")


def test_threads_never_leave_their_bounds() -> None:
    one = plant(cpus=6)
    levels = threads_of(play(one, PaperMultiLevelElasticity(), 100), one.minimum)
    assert min(levels) >= 2
    assert max(levels) <= 6


def test_fewer_threads_are_no_success_however_much_they_give() -> None:
    """E6: the ratio of the satisfaction rules has no meaning there, so queues are searched."""
    operators = (OperatorObservation("source", switchable=False), OperatorObservation("a", ThreadingModel.DYNAMIC))
    seen = Observation(
        time=1, period=1, throughput=98.0, thread_count=2, maximum_threads=8, cpu_count=8, operators=operators
    )
    controller = PaperMultiLevelElasticity(PaperMultiLevelThresholds(satisfaction=Satisfaction.FORMULA))
    controller._searching, controller._primary = None, _Primary(threads=4, throughput=100.0)
    assert controller.step(seen).rule == "Middleware'19 Fig. 4 line 6 (M04), fewer queues"
