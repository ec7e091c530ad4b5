"""The benchmark of elasticity on the real engine: which graphs it draws, and what it makes of what was found."""

from __future__ import annotations

from dataclasses import replace

from bench.elastic.__main__ import Outcome, meets, summary
from bench.elastic.graphs import KINDS, drawn

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
