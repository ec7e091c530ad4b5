"""Regions: the rules of Joker section 3.2 one by one, and what holds for any graph (J09, J10)."""

from __future__ import annotations

import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.connectors.memory.declaration import rows as rows_source
from rayelastic.errors import ConfigError, GraphError
from rayelastic.fluent.topology import Topology
from rayelastic.graph import Schema, StateKind
from rayelastic.graph.spec.order import consumers, topological_order
from rayelastic.plan.regions import Region, RegionKind, regions
from rayelastic.plan.replica_bounds import bounds_of_regions
from tests.raising import raises
from tests.unit.graph.fakes import FakeCompiler
from tests.unit.plan.graphs import FakeGraph, graph, graphs


def formed(*lines: str) -> list[str]:
    """Regions in one word each: kind's first letter, keys, operators."""
    return [_shown(region) for region in regions(graph(*lines))]


def _shown(region: Region) -> str:
    letters = {
        RegionKind.SOURCE: "S",
        RegionKind.DATA_PARALLEL: "D",
        RegionKind.PIPELINE: "P",
        RegionKind.STATELESS: "N",
    }
    letter = letters[region.kind]
    return f"{letter}{''.join(region.keys)}:{'+'.join(region.operators)}"


def test_figure_3() -> None:
    assert formed("s source", "o2 map <- s | a", "o3 part[a] <- o2 | a", "o4 map <- o3 | a") == ["S:s", "Da:o2+o3+o4"]


def test_word_count() -> None:
    """The lines don't have the words, so splitting them can't share the counter's region."""
    assert formed("lines source", "words map <- lines | l", "counts part[w] <- words | w", "o sink <- counts") == [
        "S:lines", "N:words", "Dw:counts", "P:o",
    ]  # fmt: skip


def test_replicas_share_state_where_keys_go_to_them() -> None:
    made = regions(graph("lines source", "words map <- lines | l", "counts part[w] <- words | w", "o sink <- counts"))
    assert {region.operators[0]: region.shares_state for region in made} == {
        "lines": False, "words": False, "counts": True, "o": False,
    }  # fmt: skip


def test_what_deals_out_to_channels_is_one_region_with_them() -> None:
    topology = Topology("test", compiler=FakeCompiler())
    rows = topology.source(rows_source([(1,)], schema=Schema.of({"n": int}, name="Row")), name="rows")
    rows.elastic(lambda channel: channel.map(lambda t: t, name="a"), name="work", most=2)
    assert [(region.kind, region.operators) for region in regions(topology)] == [
        (RegionKind.SOURCE, ("rows",)),
        (RegionKind.STAGE, ("work", "work.0.a", "work.1.a")),
    ]


def test_a_source_stands_alone() -> None:
    assert formed("s source", "t source", "m map <- s", "n map <- t") == ["S:s", "S:t", "N:m", "N:n"]


def test_stateless_operators_downstream_of_a_stateful_one_are_a_region() -> None:
    assert formed("s source", "a state <- s", "b map <- a", "c map <- b", "o sink <- c") == [
        "S:s", "P:a", "N:b+c", "P:o",
    ]  # fmt: skip


def test_a_stateless_chain_right_behind_a_source_is_one_of_its_own() -> None:
    assert formed("s source", "a map <- s", "b filter <- a") == ["S:s", "N:a+b"]
    assert formed("s source", "a map <- s", "b state <- a", "c map <- b") == ["S:s", "N:a", "P:b", "N:c"]
    assert formed("s source", "a map <- s", "o sink <- a") == ["S:s", "N:a", "P:o"]


def test_a_branch_ends_a_region_and_each_consumer_starts_one() -> None:
    assert formed(
        "s source", "a map <- s", "b map <- a", "c map <- b", "d map <- b", "e map <- d"
    ) == ["S:s", "N:a+b", "N:c", "N:d+e"]  # fmt: skip


def test_a_union_starts_a_region() -> None:
    assert formed("s source", "a map <- s", "t source", "b map <- t", "c map <- a b", "d map <- c") == [
        "S:s", "N:a", "S:t", "N:b", "N:c+d",
    ]  # fmt: skip


def test_several_consumers_of_a_source() -> None:
    assert formed("s source", "a part[a] <- s | a", "b part[a] <- s | a") == ["S:s", "Da:a", "Da:b"]


def test_a_stateful_operator_ends_a_data_parallel_region() -> None:
    assert formed("s source", "a part[a] <- s | a", "b state <- a | a", "c part[a] <- b | a") == [
        "S:s",
        "Da:a",
        "P:b",
        "Da:c",
    ]


def test_later_keys_must_contain_those_of_the_first() -> None:
    assert formed("s source", "p part[a] <- s | a b", "q part[a b] <- p | a b") == ["S:s", "Da:p+q"]
    assert formed("s source", "p part[a b] <- s | a b", "q part[a] <- p | a b") == ["S:s", "Dab:p", "Da:q"]
    assert formed("s source", "p part[a] <- s | a b", "q part[b] <- p | a b") == ["S:s", "Da:p", "Db:q"]


def test_the_first_operators_keys_hold_for_the_whole_region() -> None:
    assert formed(
        "s source", "p part[a] <- s | a b c", "q part[a b] <- p | a b c", "r part[a c] <- q | a b c"
    ) == ["S:s", "Da:p+q+r"]  # fmt: skip


def test_schemas_of_stateless_operators_must_contain_the_keys() -> None:
    assert formed("s source", "p part[a] <- s | a b", "m map <- p | a", "n map <- m | b", "q part[a] <- n | a") == [
        "S:s", "Da:p+m", "N:n", "Da:q",
    ]  # fmt: skip


def test_a_key_of_another_type_is_another_key() -> None:
    assert formed("s source", "p part[a] <- s | a", "m map <- p | A") == ["S:s", "Da:p", "N:m"]


def test_stateless_operators_before_belong_as_far_back_as_they_hold_the_keys() -> None:
    assert formed("s source", "l map <- s | b", "m map <- l | a b", "n filter <- m | a", "p part[a] <- n | a") == [
        "S:s", "N:l", "Da:m+n+p",
    ]  # fmt: skip


def test_early_regions_take_what_they_can() -> None:
    """The map between fits both: it goes to the region nearer to the source."""
    assert formed("s source", "p part[a] <- s | a b", "m map <- p | a b", "q part[b] <- m | a b") == [
        "S:s",
        "Da:p+m",
        "Db:q",
    ]


def test_a_function_that_may_change_the_keys_stays_in_front() -> None:
    assert formed("s source", "m change <- s | a", "n map <- m | a", "p part[a] <- n | a") == ["S:s", "N:m", "Da:n+p"]


def test_behind_a_function_that_may_change_the_keys_there_are_others() -> None:
    """It may stay where it is: what comes after it doesn't go by the region's keys."""
    assert formed(
        "s source", "p part[a] <- s | a", "m change <- p | a", "n map <- m | a", "q part[a] <- n | a"
    ) == ["S:s", "Da:p+m+n", "Da:q"]  # fmt: skip


def test_a_cycle_is_refused() -> None:
    with raises(GraphError, "cycle"):
        regions(graph("s source", "a map <- s b", "b map <- a"))


# --- any graph ----------------------------------------------------------------------------------------------------


@settings(max_examples=500)
@given(graphs())
def test_regions_partition_the_graph_in_topological_order(drawn: FakeGraph) -> None:
    found = regions(drawn)
    names = [name for region in found for name in region.operators]
    assert sorted(names) == sorted(drawn.operators)
    assert [region.name for region in found] == [f"r{i}" for i in range(len(found))]
    region_of = {name: i for i, region in enumerate(found) for name in region.operators}
    for name, spec in drawn.operators.items():
        assert all(region_of[upstream] <= region_of[name] for upstream in spec.taken)


@given(graphs())
def test_the_rules_hold(drawn: FakeGraph) -> None:
    downstream = consumers(drawn.operators)
    for region in regions(drawn):
        members = [drawn.operators[name] for name in region.operators]
        states = {m.state_kind for m in members}
        if any(m.is_source for m in members):
            assert (region.kind, len(members)) == (RegionKind.SOURCE, 1)
            continue
        assert region.kind is not RegionKind.SOURCE
        for before, after in itertools.pairwise(members):
            assert after.taken == (before.name,)
            assert downstream[before.name] == [after.name]
        assert (region.kind is RegionKind.DATA_PARALLEL) == (StateKind.PARTITIONED in states)
        if region.kind is RegionKind.DATA_PARALLEL:
            assert StateKind.STATEFUL not in states
            first = next(m for m in members if m.state_kind is StateKind.PARTITIONED)
            assert region.keys == first.keys
            for m in members:
                assert m.input_schema is not None
                assert set(region.keys) <= set(m.input_schema.names)
                assert m.state_kind is StateKind.STATELESS or set(region.keys) <= set(m.keys)
        else:
            assert region.keys == ()


@given(graphs())
def test_no_region_could_be_longer_to_the_right(drawn: FakeGraph) -> None:
    """What follows a data-parallel region in a chain is incompatible with it; two pipeline regions never touch."""
    found = regions(drawn)
    downstream = consumers(drawn.operators)
    first_of = {region.operators[0]: region for region in found}
    for region in found:
        after = downstream[region.operators[-1]]
        if region.kind is RegionKind.SOURCE or len(after) != 1 or len(drawn.operators[after[0]].taken) != 1:
            continue
        follower, spec = first_of[after[0]], drawn.operators[after[0]]
        assert (region.kind, follower.kind) != (RegionKind.PIPELINE, RegionKind.PIPELINE)
        if region.kind is RegionKind.DATA_PARALLEL and spec.state_kind is StateKind.STATELESS:
            assert spec.input_schema is not None
            here = {f.name: f.format for f in spec.input_schema.fields}
            there = drawn.operators[region.operators[0]].input_schema
            assert there is not None
            assert any(here.get(key) != there.field(key).format for key in region.keys)


@given(graphs(), st.randoms(use_true_random=False))
def test_regions_dont_depend_on_the_order_of_declaration(drawn: FakeGraph, rng: random.Random) -> None:
    shuffled = list(drawn.operators.items())
    rng.shuffle(shuffled)
    again = regions(FakeGraph(drawn.name, dict(shuffled)))
    assert {(r.kind, r.operators, r.keys) for r in again} == {(r.kind, r.operators, r.keys) for r in regions(drawn)}
    assert regions(drawn) == regions(drawn)


@given(graphs())
def test_order_follows_the_inputs(drawn: FakeGraph) -> None:
    order = topological_order(drawn.operators)
    assert order == list(drawn.operators)


def test_a_region_that_keeps_one_replica_may_be_said_to_have_one() -> None:
    topology = rel.Topology("fixed")
    topology.source(rel.sequence(10), name="numbers").sink(rel.list(), name="out")
    plan = topology.plan()
    name = plan.region_of("numbers").region.name
    assert bounds_of_regions(plan, {"numbers": (1, 1)}) == {name: (1, 1)}
    for bounds in ((1, 2), (2, 2), (2, 1)):
        with raises(ConfigError, "invalid-setting"):
            bounds_of_regions(plan, {"numbers": bounds})
