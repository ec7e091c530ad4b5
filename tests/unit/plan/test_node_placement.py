"""Placing on nodes: room, neighbours, zones, few moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayelastic.plan.config import JobConfig
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.fusion import plan_topology
from rayelastic.plan.node_placement import Demand, Node, place
from tests.unit.plan.graphs import graph

BASE = plan_topology(graph("s source", "a map <- s | k", "b part[k] <- a | k", "out sink <- b | k"))


def spread(replicas: int) -> ExecPlan:
    """One replica in each PE."""
    return BASE.with_replicas("r1", replicas, pes=[f"pe{i}" for i in range(replicas)])


def test_neighbours_come_first_then_their_zone_then_the_freest() -> None:
    nodes = [Node("a", 2, zone="x"), Node("b", 1, zone="y"), Node("c", 1, zone="x"), Node("d", 9, zone="y")]
    found = place(spread(5), nodes, {}).nodes
    # pe0 goes to the freest node, and the others follow it there.
    assert set(found.values()) == {"d"}
    found = place(spread(5).with_nodes({"pe0": "a"}), nodes, {}).nodes
    assert list(found.values()) == ["a", "a", "c", "d", "d"]


def test_memory_counts() -> None:
    nodes = [Node("a", 9, memory=10), Node("b", 1, memory=100)]
    found = place(spread(2), nodes, {"pe0": Demand(1, 60), "pe1": Demand(1, 5)})
    assert dict(found.nodes) == {"pe0": "b", "pe1": "a"}


def test_no_room() -> None:
    found = place(spread(3), [Node("a", 2)], {})
    assert (list(found.nodes), found.homeless) == (["pe0", "pe1"], ("pe2",))


def test_who_has_a_place_keeps_it() -> None:
    nodes = [Node("a", 2), Node("b", 2), Node("c", 2)]
    plan = spread(3).with_nodes({"pe0": "c", "pe1": "b", "pe2": "a"})
    assert place(plan, nodes, {}).moved == ()
    assert place(plan, nodes, {}, moves=1).moved == ("pe0",)
    gone = place(plan, nodes[:2], {})
    assert gone.moved == ("pe0",)
    assert dict(gone.nodes) == {"pe0": "a", "pe1": "b", "pe2": "a"}


def test_one_link_is_worth_a_move() -> None:
    plan = plan_topology(graph("s source", "b part[k] <- s | k", "out sink <- b | k"), JobConfig(pes=2))
    assert len(plan.links) == 1
    apart = plan.with_nodes({"pe0": "a", "pe1": "b"})
    assert place(apart, [Node("a", 2), Node("b", 2)], {}).moved == ()
    assert place(apart, [Node("a", 2), Node("b", 2)], {}, moves=2).moved == ("pe0",)


@pytest.mark.parametrize("moves", range(4))
def test_no_more_elements_move_than_may(moves: int) -> None:
    plan = spread(4).with_nodes({"pe0": "a", "pe1": "b", "pe2": "c", "pe3": "d"})
    found = place(plan, [Node("a", 9), Node("b", 1), Node("c", 1), Node("d", 1)], {}, moves=moves)
    assert found.moved == ("pe1", "pe2", "pe3")[:moves]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], dict[str, Demand]]:
    names = [f"n{i}" for i in range(draw(st.integers(1, 8)))]
    nodes = [Node(n, draw(st.integers(1, 4)), draw(st.integers(1, 8)), draw(st.sampled_from("xy"))) for n in names]
    demands = {f"pe{i}": Demand(draw(st.integers(1, 3)), draw(st.integers(0, 5))) for i in range(16)}
    return nodes, demands


@given(clusters(), st.integers(1, 16), st.integers(1, 16), st.integers(0, 3))
def test_any_cluster(drawn: tuple[list[Node], dict[str, Demand]], few: int, many: int, moves: int) -> None:
    nodes, demands = drawn
    first = place(spread(few), nodes, demands)
    second = place(spread(many).with_nodes(first.nodes), nodes, demands, moves=moves)
    assert second == place(spread(many).with_nodes(first.nodes), nodes, demands, moves=moves)
    assert len(second.moved) <= moves  # nobody was pushed away, so only those that wanted to moved
    for found, pes in ((first, spread(few).pes), (second, spread(many).pes)):
        assert set(found.nodes) | set(found.homeless) == set(pes)
        for node in nodes:
            mine = [demands[pe] for pe, at in found.nodes.items() if at == node.name]
            assert sum(d.cpus for d in mine) <= node.cpus
            assert sum(d.memory for d in mine) <= node.memory
    for pe in first.homeless:  # truly nowhere, as nothing was placed after that would have fitted it before
        left = {n.name: n.cpus - sum(demands[o].cpus for o, at in first.nodes.items() if at == n.name) for n in nodes}
        room = {
            n.name: n.memory - sum(demands[o].memory for o, at in first.nodes.items() if at == n.name) for n in nodes
        }
        assert all(left[n.name] < demands[pe].cpus or room[n.name] < demands[pe].memory for n in nodes)


def test_a_thousand_nodes() -> None:
    """The replicas of a wide region stay in the zone of their source."""
    nodes = [Node(f"n{i}", 8, zone=f"z{i % 10}") for i in range(1000)]
    found = place(BASE.with_replicas("r1", 271, pes=[f"pe{i}" for i in range(271)]), nodes, {})
    assert len(found.nodes) == 271
    assert {int(node[1:]) % 10 for node in found.nodes.values()} == {0}
