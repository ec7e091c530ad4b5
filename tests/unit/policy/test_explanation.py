"""Explanations of what holds threads back: the usual one if nothing speaks for another, else by how likely they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayelastic.policy.element.guided.explanation import Explanation, plausible

USUAL = Explanation(hop=0.1, balance=0.15, growth=0.02, lock=0.005)


def test_without_any_miss_it_is_the_usual_one_and_every_balance_is_plausible() -> None:
    found = plausible(lambda one: 0.0, USUAL)
    assert found[0] == USUAL
    assert [one.balance for one in found] == [0.15, 0.0, 0.3, 0.5, 0.75, 1.0]
    assert {replace(one, balance=0.15) for one in found} == {USUAL}


def test_an_error_of_5_percent_is_a_standard_deviation() -> None:
    """Two of them are still plausible beside the next best balance, which is 0.3 of one away; a little more isn't."""

    def balances(miss: float) -> list[float]:
        return [one.balance for one in plausible(lambda one: miss**2 if one.balance == 0.15 else 0.0, USUAL)]

    assert balances(0.1)[-1] == 0.15
    assert 0.15 not in balances(0.11)


@pytest.mark.parametrize(
    ("number", "factor", "stays", "moves"),
    [
        ("hop", 10**1.5, 1.02, 1.04),  # (log 31.6 / log 30)^2 squared standard deviations
        ("growth", 10.0, 2.03, 2.06),  # (log 10 / log 5)^2
        ("lock", 10.0, 0.99, 1.01),
    ],
)
def test_a_number_moves_for_misses_that_are_less_likely_than_it(
    number: str, factor: float, stays: float, moves: float
) -> None:
    usual: float = getattr(USUAL, number)

    def found(squares: float) -> float:
        """What it is where all below a factor of it misses by so many standard deviations, squared."""
        best = plausible(lambda one: 0.0 if getattr(one, number) > 0.99 * factor * usual else squares * 0.05**2, USUAL)[
            0
        ]
        return float(getattr(best, number)) / usual

    assert found(stays) == pytest.approx(1.0)
    assert found(moves) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("number", "least", "most"),
    [("hop", 1e-3, 1e3), ("balance", 0.0, 1.0 / 0.15), ("growth", 0.0, 10.0), ("lock", 0.1, 100.0)],
)
def test_numbers_are_sought_within_a_range(number: str, least: float, most: float) -> None:
    """Where nothing else explains what was measured, it is the least or the greatest, as a factor of the usual one."""
    usual: float = getattr(USUAL, number)

    def found(sign: float) -> float:
        best = plausible(lambda one: sign * getattr(one, number) / usual + 1e3, USUAL)[0]
        return float(getattr(best, number)) / usual

    assert found(1e9) == pytest.approx(least)
    assert found(-1e9) == pytest.approx(most)
