"""A ratchet: how near elasticity comes to the best on a few random graphs. The bounds may rise and never fall."""

import itertools
import statistics

import pytest

from bench.plant.quality import NEAR, Quality, quality, summary

GRAPHS, SEEDS, CORES, NOISE = 6, (1, 2, 3), (4, 16), 0.05


ALL = [*itertools.product(range(GRAPHS), SEEDS, CORES)]
FEW = [(number, SEEDS[-1], CORES[number % 2]) for number in range(GRAPHS)]


@pytest.fixture(scope="module", params=[FEW, pytest.param(ALL, marks=pytest.mark.nightly)], ids=["few", "all"])
def elastic(request: pytest.FixtureRequest) -> list[Quality]:
    return [quality(number, seed, cores, NOISE) for number, seed, cores in request.param]


def reaches_the_bounds(ones: list[Quality]) -> bool:
    shares = [one.share for one in ones]
    near = sum(share >= NEAR for share in shares) / len(shares)
    return near >= 0.9 and statistics.median(shares) >= 0.98 and min(shares) >= 0.87


def test_elasticity_comes_near_the_best(elastic: list[Quality]) -> None:
    assert reaches_the_bounds(elastic), summary(elastic)


def test_at_constant_load_it_stays_where_it_is(elastic: list[Quality]) -> None:
    assert [one.number for one in elastic if one.changes] == []


def test_a_loop_that_is_cut_off_from_its_scheduler_shows() -> None:
    deaf = [quality(number, SEEDS[0], CORES[0], NOISE, deaf=True) for number in range(4)]
    assert not reaches_the_bounds(deaf), summary(deaf)


def test_the_same_arguments_give_the_same_figures() -> None:
    assert quality(3, SEEDS[0], 2, NOISE) == quality(3, SEEDS[0], 2, NOISE)
