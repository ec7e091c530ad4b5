"""Latency as a goal: the utilisation that replicas are sized for follows what tuples take."""

from __future__ import annotations

import pytest

from rayelastic.policy.regions.goal.latency import AimThresholds, LatencyAim, quantile
from rayelastic.reasons import Code

T = AimThresholds()


def marks(bucket: int, count: int = 20) -> tuple[int, ...]:
    """Marks that took half of 2 ** bucket us, and less than all of it."""
    return (0,) * bucket + (count,)


def take(aim: LatencyAim, latencies: tuple[int, ...]) -> float:
    aim.see(latencies)
    return aim.decide()


LATE, FINE, EARLY = marks(20), marks(17), marks(12)  # of 0.2 s: a second, 0.13 s, 4 ms


def test_it_is_lowered_step_by_step_and_not_below_what_helps() -> None:
    aim = LatencyAim(0.2, 0.8)
    seen = [take(aim, LATE) for _ in range(100)]
    assert seen[0] == pytest.approx(0.6)
    assert seen[1 : T.periods] == [seen[0]] * (T.periods - 1), "what was asked for comes into force first"
    assert min(seen) == seen[-1] == T.least
    assert aim.reason == Code.LATENCY(p99=aim.reached, goal=0.2, aim=T.least)
    assert aim.reached == pytest.approx(1.0, rel=0.05)


def test_what_is_fast_enough_is_left_alone() -> None:
    aim = LatencyAim(0.2, 0.8)
    assert {take(aim, FINE) for _ in range(1000)} == {0.8}


def test_it_comes_back_after_a_while_and_waits_longer_if_that_was_too_early() -> None:
    aim, waits = LatencyAim(0.2, 0.8), []
    for _ in range(4):
        while aim.aim > 0.6:
            take(aim, LATE)
        waits.append(0)
        while aim.aim < 0.8:
            take(aim, EARLY)
            waits[-1] += 1
            assert waits[-1] < 1000
    first, *others = waits
    assert first >= T.patience
    assert [later >= 1.9 * before for before, later in zip(waits, others, strict=False)] == [True] * 3, waits


def test_few_marks_say_nothing() -> None:
    aim = LatencyAim(0.2, 0.8)
    assert {take(aim, marks(20, count=1)) for _ in range(3)} == {0.8}
    assert aim.reason == Code.LATENCY_UNKNOWN(goal=0.2)


def test_marks_of_another_plan_are_forgotten() -> None:
    aim = LatencyAim(0.2, 0.8)
    take(aim, marks(20, count=19))
    aim.forget()
    assert take(aim, marks(12, count=19)) == take(aim, marks(12, count=1)) == 0.8


def test_marks_of_short_periods_are_taken_together() -> None:
    aim = LatencyAim(0.2, 0.8)
    seen = [take(aim, marks(20, count=2)) for _ in range(T.fewest // 2)]
    assert seen[:-1] == [0.8] * (len(seen) - 1)
    assert seen[-1] < 0.8


def test_quantiles_of_counts() -> None:
    assert quantile([], 0.99) == 0.0
    assert quantile([0, 50, 50], 0.5) == pytest.approx(2e-6)
    assert quantile([0, 50, 50], 1.0) == pytest.approx(4e-6)
