"""Single rules of the controllers, each where it alone decides."""

from __future__ import annotations

import pytest

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.policy.element.guided.estimate import Configuration, Profile, _costliest
from rayelastic.policy.element.guided.load import LoadThresholds, saturation_of
from rayelastic.policy.element.guided.load_watch import TupleCost
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.policy.element.pieces import Meeting, OperatorGraph
from rayelastic.policy.regions.learning import SteadyAverage
from rayelastic.policy.regions.observation import ObservationWindow, PipelineObservation, PlanObservation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code, Reason


def test_the_cost_of_a_tuple_elsewhere_is_compared_with_the_configuration_that_is_nearest() -> None:
    cost, thresholds = TupleCost(), LoadThresholds()
    seen = [(1, 500.0), (2, 2000.0), (3, 3500.0), (3, 3500.0)]  # 7 times that of the first, 1.75 that of the second
    assert not any(cost.changed(Configuration(n, frozenset()), samples, 1e6, thresholds) for n, samples in seen)


def test_a_vanishing_rate_has_a_cost_too() -> None:
    cost, now = TupleCost(), Configuration(2, frozenset())
    assert [cost.changed(now, 1.0, rate, LoadThresholds()) for rate in (5e-324, 1.0, 1.0)] == [False, False, True]


def test_a_window_of_observations_lasts_30_samples_behind_5_of_warm_up() -> None:
    window = ObservationWindow()
    samples = [PlanObservation(float(t), 1.0, ExecPlan("empty", ()), ()) for t in range(70)]
    assert [sample.time for sample in samples if window.add(sample)] == [34.0, 64.0]


def test_a_meeting_counts_that_is_cheaper_and_takes_more() -> None:
    dear, frequent = Meeting(2.0, 10.0, 4, False), Meeting(1.0, 20.0, 4, False)
    rare, queued = Meeting(1.0, 10.0, 4, False), Meeting(0.5, 5.0, 2, True)
    assert _costliest([frequent, dear]) == (dear, frequent)
    assert _costliest([rare, dear]) == (dear,)
    assert _costliest([queued, dear]) == (dear, queued)


def test_what_lies_around_a_high_target_keeps_half_the_way_to_all() -> None:
    made = OrganicThresholds.of_running_jobs(0.96)
    assert (made.grow_above, made.grow_stable_above) == (pytest.approx(0.98), pytest.approx(0.99))
    assert made.shrink_below == pytest.approx(0.84)


def test_a_thread_is_useful_for_no_more_than_all_of_its_time() -> None:
    seen = PipelineObservation(("a",), (0.8, 0.3), (1.0,), (9.0,), 9.0, (0.5, 0.1), (1.0,))
    assert seen.useful == (1.0, pytest.approx(0.4))


def test_one_sample_is_a_profile_and_none_is_not() -> None:
    def reason(samples: int) -> Reason:
        operators = (OperatorObservation("s", switchable=False), OperatorObservation("a", rate=1e4, samples=samples))
        seen = Observation(
            time=5,
            period=5,
            throughput=1e4,
            thread_count=1,
            maximum_threads=2,
            operators=operators,
            cpu_count=2,
            own_cpu=0.5,
        )
        return saturation_of(seen, OperatorGraph(["s", "a"], None), LoadThresholds())[1][0]

    assert reason(0).code is Code.NO_PROFILE
    assert reason(1).code is not Code.NO_PROFILE


def test_an_average_that_restarts_counts_the_next_value_in_full() -> None:
    average = SteadyAverage(OrganicThresholds())
    for _ in range(5):
        average.add(10.0)
    average.restart()
    assert average.add(11.0) == 11.0


def test_a_meeting_costs_what_it_calls_too() -> None:
    graph = OperatorGraph(["a", "b", "m", "d"], {"m": ["a", "b"], "d": ["m"]})
    (meeting,) = graph.meetings({"a": 1.0, "b": 1.0, "m": 2.0, "d": 3.0}, dict.fromkeys("abmd", 10.0), frozenset())
    assert (meeting.cost, meeting.pieces, meeting.queued) == (5.0, 2, False)


def test_a_profile_of_nothing_says_nothing() -> None:
    nothing = Profile()
    assert (nothing.total, nothing.busy, nothing.reference, nothing.effort) == (0.0, 0.0, 0.0, 0.0)
    assert not nothing.known
    assert nothing.costs() == {}
