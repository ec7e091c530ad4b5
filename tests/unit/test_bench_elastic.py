"""The benchmark of elasticity on the real engine: which graphs it draws, and what it makes of what was found."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

from bench.elastic.__main__ import Outcome, meets, results_name, summary
from bench.elastic.graphs import KINDS, drawn
from bench.elastic.turns import share_of

GOOD = Outcome(0, "pipeline plain", 0.99, 0.6, "1 threads, 1 queues", "1 threads, 2 queues", 4.0, 0, 40)


def test_each_kind_of_graph_comes_once_in_a_while_and_always_the_same() -> None:
    names = [drawn(number, seed=3).name for number in range(len(KINDS))]
    assert sorted(names) == sorted(f"{shape} {special}" for shape, special in KINDS)
    assert names == [drawn(number, seed=3).name for number in range(len(KINDS))]
    assert names != [drawn(number, seed=4).name for number in range(len(KINDS))]


def test_the_aims_are_those_of_most_graphs_the_median_and_the_worst() -> None:
    many = [GOOD] * 19
    assert meets([*many, replace(GOOD, share=0.91)])
    assert not meets([*many, replace(GOOD, share=0.89)])  # the worst
    assert not meets([*[GOOD] * 8, *[replace(GOOD, share=0.94)] * 2])  # a fifth isn't near
    assert not meets([replace(GOOD, share=0.96)] * 10)  # the median
    assert not meets([*[GOOD] * 9, replace(GOOD, changes=1)])  # one of ten doesn't rest


def test_the_figures_are_told_beside_the_aims() -> None:
    told = summary([GOOD, replace(GOOD, share=0.9, changes=2, settled=6.0)])
    assert "2 graphs: 50 % within 5 % of the best (aim 90 %), median 0.945 (0.98), worst 0.900 (0.90)" in told
    assert "last change after 5.0 s (median), 6.0 s (latest); nothing changed afterwards in 50 % (95 %)" in told


def test_a_few_graphs_of_a_seed_do_not_take_the_place_of_all() -> None:
    assert results_name(1, 0, 20) == "elastic-1.json"
    assert not {results_name(1, 14, 1), results_name(1, 0, 2)} & {"elastic-1.json", "elastic-14.json"}


def test_two_settings_take_turns_until_their_ratio_is_known() -> None:
    draw = random.Random(5)

    def of(rate: float, noise: float) -> Callable[[], float]:
        return lambda: rate * math.exp(draw.gauss(0, noise))

    calm = share_of(of(97, 0.005), of(100, 0.005), turns=7, most=400, error=0.01)
    rough = share_of(of(97, 0.05), of(100, 0.05), turns=7, most=400, error=0.01)
    assert calm.turns == 7
    assert 40 < rough.turns < 200
    assert abs(rough.share - 0.97) < 3 * rough.error
    assert rough.error <= 0.01 < share_of(of(97, 0.05), of(100, 0.05), turns=7, most=7, error=0.01).error
