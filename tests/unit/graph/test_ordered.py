"""`ordered=` of operators without state: what is rejected, and what the plan makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import ErrorCode, GraphError
from rayelastic.plan.regions import RegionKind
from tests.raising import raises


class Row(NamedTuple):
    k: int
    n: int


class Seen(NamedTuple):
    times: int = 0


def same(t: Row) -> Row:
    return Row(t.k, t.n)


def seen(t: Row, s: Any) -> Row:
    s.times += 1
    return t


async def asked(t: Row) -> Row:
    return t


@rel.operator(outputs=Row, stateless=True)
class Same:
    def invoke(self, t: Row) -> Iterator[Row]:
        yield t


@pytest.fixture
def topology() -> rel.Topology:
    return rel.Topology("orders")


def rows(topology: rel.Topology, name: str = "rows") -> Any:
    return topology.source(rel.rows([(1, 1)], schema=Row), name=name)


NO_ORDER: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "union": (lambda a, b: a.union(b), "a and b"),
    "any order": (lambda a, b: a.map(same, name="loose", ordered=False).map(same), "'loose' has ordered=False"),
    "by key": (lambda a, b: a.key_by("k").map(same, name="kept", ordered="key"), "'kept' keeps the order of each key"),
    "keyed": (lambda a, b: a.key_by("k").map(seen, state=Seen, name="seen", schema=Row), "'seen' keeps the order of"),
    "joined": (lambda a, b: a.key_by("k").join(b.key_by("k"), name="join", how="left"), "'join' keeps the order"),
    "completion": (lambda a, b: a.map(asked, name="asked", concurrent=rel.concurrent(ordered=False)), "of completion"),
}


@pytest.mark.parametrize("case", NO_ORDER)
def test_an_order_that_the_input_has_not_is_rejected(topology: rel.Topology, case: str) -> None:
    build, why = NO_ORDER[case]
    stream = build(rows(topology, "a"), rows(topology, "b"))
    with raises(GraphError, ErrorCode.NO_ORDER, why, operator="work") as caught:
        stream.filter(lambda t: t.n > 0, name="work", ordered=True)
    assert "leave ordered= out" in (caught.value.hint or "")


def test_other_choices_that_cant_be_kept_are_rejected(topology: rel.Topology) -> None:
    a = rows(topology)
    with raises(GraphError, ErrorCode.NO_KEY, "its stream has no key", operator="work"):
        a.map(same, name="work", ordered="key")
    with raises(GraphError, ErrorCode.CONFLICTING_ARGUMENTS, "it keeps state", operator="work"):
        a.key_by("k").map(seen, name="work", state=Seen, schema=Row, ordered=False)
    with raises(GraphError, ErrorCode.CONFLICTING_ARGUMENTS, "order of completion", operator="work"):
        a.map(asked, name="work", concurrent=rel.concurrent(ordered=False), ordered=True)
    with raises(GraphError, ErrorCode.UNKNOWN_CHOICE, "ordered='sorted' is invalid", operator="work"):
        a.map(same, name="work", ordered="sorted")


def test_explain_shows_the_order_in_force_and_whether_it_is_the_default(topology: rel.Topology) -> None:
    a, b = rows(topology, "a"), rows(topology, "b")
    a.map(same, name="default").sink(rel.count(), name="out1")
    a.map(same, name="asked", ordered=True).sink(rel.count(), name="out2")
    a.apply(Same(), name="loose", ordered=False).sink(rel.count(), name="out3")
    a.key_by("k").apply(Same(), name="kept", ordered="key").sink(rel.count(), name="out4")
    a.union(b).map(same, name="met").sink(rel.count(), name="out5")
    plan, text = topology.plan(), " ".join(topology.explain().split())
    for name, kind, keys, order in [
        ("default", RegionKind.STATELESS, (), "the order of its input is restored (the default)"),
        ("asked", RegionKind.STATELESS, (), "the order of its input is restored (ordered=True)"),
        ("loose", RegionKind.STATELESS, (), "tuples may overtake each other (ordered=False)"),
        ("kept", RegionKind.DATA_PARALLEL, ("k",), "each key keeps its order"),
        ("met", RegionKind.STATELESS, (), "each stream that it receives keeps its order (the default)"),
    ]:
        region = plan.region_of(name).region
        assert (region.kind, region.keys, region.fixed) == (kind, keys, {})
        assert region.any_order == (name == "loose")
        assert order in text.split(f" {region.name} ")[1].split(f" {name} ")[0]
    assert type(plan).from_dict(plan.to_record()) == plan
