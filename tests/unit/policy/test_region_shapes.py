"""Which shapes of a region carry what is wanted, and in which order they are tried."""

from __future__ import annotations

from rayelastic.plan.regions import Region, RegionKind
from rayelastic.policy.regions.model import RegionModel, Shape, shapes

OPERATORS = tuple("abcdef")  # a second each
NOW: Shape = (("c", "e"), 1)  # three pipelines of two operators


def model(*token_bound: str) -> RegionModel:
    region = Region("r1", RegionKind.DATA_PARALLEL, OPERATORS, ("k",), token_bound=token_bound)
    return RegionModel(region, (1.0,) * len(OPERATORS), overhead=0.0)


def test_few_threads_then_as_many_replicas_then_as_many_pipelines_as_now() -> None:
    """Six threads carry a tuple a second in four shapes; the one that moves no keys first, then the nearest."""
    assert list(shapes(model(), NOW, 0.99, most_replicas=6))[:4] == [
        (tuple("bcdef"), 1),
        (("c", "e"), 2),
        (("d",), 3),
        ((), 6),
    ]


def test_as_many_pipelines_as_now_where_they_cant_be_cut_or_have_one_token() -> None:
    assert list(shapes(model(), NOW, 0.99, most_replicas=6, cut=False)) == [(("c", "e"), 2)]
    assert list(shapes(model("a"), NOW, 0.99, most_replicas=6)) == [(("c", "e"), 2)]


def test_no_more_replicas_than_allowed() -> None:
    assert list(shapes(model(), NOW, 0.99, most_replicas=1)) == [(tuple("bcdef"), 1)]
    assert {replicas for _, replicas in shapes(model(), NOW, 0.99, most_replicas=2)} == {1, 2}


def test_none_where_nothing_carries_it() -> None:
    assert list(shapes(model(), NOW, 6.01, most_replicas=6)) == []
