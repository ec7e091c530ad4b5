"""The difference between two plans, as whoever carries it out reads it (J15-J17)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayelastic.plan.fusion import plan_topology
from rayelastic.plan.hash_ring import PARTITIONS, HashRing, key_ranges, partition_of
from rayelastic.plan.plan_change import PartitionMoves, Relocation, growth_steps, plan_change
from tests.unit.plan.graphs import graph

PLAN = plan_topology(graph("s source", "a map <- s | k", "b part[k] <- a | k", "c map <- b | k", "out sink <- c | k"))


def test_a_split_moves_no_keys() -> None:
    (change,) = plan_change(PLAN, PLAN.with_split("r1", "b")).regions
    assert (change.region, change.cuts, change.moves_keys, change.started) == ("r1", ("b",), False, ())


def test_a_merge_joins() -> None:
    (change,) = plan_change(PLAN.with_split("r1", "b"), PLAN).regions
    assert (change.joins, change.cuts, change.moves_keys) == (("b",), (), False)


@given(st.integers(1, 16), st.integers(1, 16))
def test_replicas_start_and_stop(few: int, many: int) -> None:
    before, after = PLAN.with_replicas("r1", few), PLAN.with_replicas("r1", many)
    change = plan_change(before, after)
    if few == many:
        assert change.regions == ()
        return
    (region,) = change.regions
    assert region.started == tuple(range(few, many))
    assert region.stopped == tuple(range(many, few))
    old, new = HashRing.of(few), HashRing.of(many)
    for moves in region.moved:
        for low, high in key_ranges(moves.partitions, PARTITIONS):
            assert {old.owners[partition_of(h)] for h in (low, high)} == {moves.source}
            assert {new.owners[partition_of(h)] for h in (low, high)} == {moves.target}


def test_moves_are_told_by_both_ends() -> None:
    (region,) = plan_change(PLAN.with_replicas("r1", 2), PLAN.with_replicas("r1", 3)).regions
    assert [(m.source, m.target, len(m.partitions)) for m in region.moved] == [(0, 2, 682), (1, 2, 683)]
    assert isinstance(region.moved[0], PartitionMoves)


def test_new_processing_elements_and_links() -> None:
    change = plan_change(PLAN, PLAN.with_replicas("r1", 2, pes=["pe0", "pe1"]))
    assert (change.started_pes, change.stopped_pes) == (("pe1",), ())
    assert [link.name for link in change.opened] == ["s->a@pe0>pe1", "c->out@pe1>pe0"]
    back = plan_change(change.new, PLAN)
    assert (back.started_pes, back.stopped_pes, back.closed) == ((), ("pe1",), change.opened)
    assert (change.epoch, back.epoch) == (1, 2)


def test_of_several_elements_one_starts_first_and_the_region_that_grows_most_has_it() -> None:
    two = plan_topology(
        graph("s source", "a part[k] <- s | k", "b change <- a | j", "c part[j] <- b | j", "out sink <- c | j")
    ).with_nodes({"pe0": "n0"})
    behind = two.region_of("c").region.name
    wanted = two.with_replicas("r1", 2, ["pe0", "pe1"]).with_replicas(behind, 3, ["pe0", "pe2", "pe3"])
    wanted = wanted.with_nodes({"pe0": "n0", "pe1": "n0", "pe2": "n1", "pe3": "n2"})
    first, last = growth_steps(two, wanted)
    assert last is wanted
    assert plan_change(two, first).started_pes == ("pe2",)
    assert dict(first.nodes) == {"pe0": "n0", "pe2": "n1"}
    assert plan_change(first, last).is_live
    assert not plan_change(first, last).stopped_pes


def test_what_is_no_growth_by_several_elements_is_one_step() -> None:
    three = PLAN.with_replicas("r1", 3, ["pe0", "pe1", "pe2"])
    for old, new in (
        (PLAN, PLAN),
        (PLAN, PLAN.with_replicas("r1", 2, ["pe0", "pe1"])),  # one
        (PLAN, PLAN.with_replicas("r1", 3)),  # none: they share one
        (three, PLAN),
        (three, three.with_replicas("r1", 5, ["pe0", "pe1", "pe2", "pe3", "pe4"])),  # a third more at once, at most
        (PLAN, three.with_split("r1", "b", ["pe3", "pe4", "pe5"])),  # nothing that is done while it runs
    ):
        assert growth_steps(old, new) == (new,)


def test_a_replica_that_goes_elsewhere_takes_all_its_keys() -> None:
    (region,) = plan_change(PLAN, PLAN.with_replicas("r1", 1, pes=["pe4"])).regions
    assert region.relocated == (Relocation(0, ("a", "b", "c"), "pe0", "pe4"),)
    assert region.moves_keys
    (region,) = plan_change(PLAN, PLAN.with_split("r1", "c", pes=["pe1"])).regions
    assert (region.cuts, region.relocated) == (("c",), (Relocation(0, ("c",), "pe0", "pe1"),))


def test_an_element_that_goes_to_another_node_changes_no_region() -> None:
    change = plan_change(PLAN.with_nodes({"pe0": "a"}), PLAN.with_nodes({"pe0": "b"}))
    assert (change.regions, change.rehosted) == ((), (("pe0", "a", "b"),))
    assert "move pe0 from a to b" in change.text()


def test_plans_of_different_regions() -> None:
    with pytest.raises(ValueError, match="plans of different regions: 'g' and 'g'"):
        plan_change(PLAN, plan_topology(graph("s source", "a map <- s | k")))
