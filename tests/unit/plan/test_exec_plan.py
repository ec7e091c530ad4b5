"""Plans as values: split, merge, replicas, over any graph; text and journal forms (J13-J15)."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayelastic.errors import ConfigError
from rayelastic.plan.exec_plan import ExecPlan, RegionPlan
from rayelastic.plan.fusion import plan_topology
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.regions import RegionKind
from tests.raising import raises
from tests.unit.plan.graphs import FakeGraph, graph, graphs

GOLDEN = Path(__file__).parent / "golden"

FIGURE_3 = graph("s source", "o2 map <- s | a", "o3 part[a] <- o2 | a", "o4 map <- o3 | a", "out sink <- o4 | a")


def figure_3() -> ExecPlan:
    """2 pipelines x 3 replicas: 7 threads with the source."""
    return plan_topology(FIGURE_3).with_split("r1", "o4").with_replicas("r1", 3)


def test_figure_3_runs_with_7_threads() -> None:
    plan = figure_3()
    assert [(p.operators, len(p.pes)) for p in plan.region("r1").pipelines] == [(("o2", "o3"), 3), (("o4",), 3)]
    assert plan.region("r0").threads + plan.region("r1").threads == 7


STEPS = {
    "split": plan_topology(FIGURE_3).with_split("r1", "o4"),
    "inside_the_pe": figure_3(),
    "over_pes": figure_3().with_replicas("r1", 3, pes=["pe0", "pe1", "pe2"]).with_nodes({"pe1": "b", "pe0": "a"}),
    "second_pipeline_away": plan_topology(FIGURE_3).with_split("r1", "o4", pes=["pe1"]).with_replicas("r1", 2),
}


@pytest.mark.parametrize("step", STEPS)
def test_golden_text_before_and_after(step: str) -> None:
    before, after = plan_topology(FIGURE_3), STEPS[step]
    change = plan_change(before, after)
    text = "\n".join(["before", before.text(), "change", change.text(), "after", change.new.text()])
    assert text == (GOLDEN / f"figure_3_{step}.txt").read_text()
    assert max(len(line) for line in text.splitlines()) <= 80


def test_instances_and_places() -> None:
    plan = STEPS["over_pes"]
    assert plan.instances("pe0") == (("s", 0), ("o2", 0), ("o3", 0), ("o4", 0), ("out", 0))
    assert plan.instances("pe2") == (("o2", 2), ("o3", 2), ("o4", 2))
    assert plan.pe_of("o3", 1) == "pe1"
    assert plan.fresh_pes(2) == ("pe3", "pe4")
    assert plan.upstream("r2") == ("r1",)
    assert figure_3().instances("pe0") == (
        ("s", 0), *((o, r) for r in range(3) for o in ("o2", "o3", "o4")), ("out", 0),
    )  # fmt: skip


def test_links_go_from_every_replica_to_every_replica_but_stay_in_a_replica_inside_a_region() -> None:
    plan = STEPS["over_pes"]
    assert [link.name for link in plan.links] == [
        "s->o2@pe0>pe1",
        "s->o2@pe0>pe2",
        "o4->out@pe1>pe0",
        "o4->out@pe2>pe0",
    ]
    assert [(link.name, link.to_pe) for link in STEPS["second_pipeline_away"].links] == [
        ("o3->o4", "pe1"),
        ("o4->out", "pe0"),
    ]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p.with_split("r1", "o2"), "unknown-operator o2"),
        (lambda p: p.with_split("r1", "out"), "unknown-operator out"),
        (lambda p: p.with_split("r1", "o4", pes=["a", "b"]), "out-of-range"),
        (lambda p: p.with_merge("r1", "o3"), "unknown-operator Split"),
        (lambda p: p.with_split("r1", "o4").with_merge("r1", "o3"), "unknown-operator"),
        (lambda p: p.with_replicas("r2", 2), "fixed-region out"),
        (lambda p: p.with_replicas("r1", 0), "out-of-range"),
        (lambda p: p.with_replicas("r1", 4097), "out-of-range 4096"),
        (lambda p: p.with_replicas("r9", 2), "unknown-region r9"),
    ],
)
def test_changes_that_cant_be(change: Callable[[ExecPlan], object], says: str) -> None:
    with raises(ConfigError, *says.split()):
        change(plan_topology(FIGURE_3))


def test_a_plan_survives_pickle_and_json() -> None:
    for plan in STEPS.values():
        assert plan.links == pickle.loads(pickle.dumps(plan)).links
        assert ExecPlan.from_dict(json.loads(plan.to_json())) == plan == pickle.loads(pickle.dumps(plan))
        assert json.loads(plan.to_json())["links"] == plan.to_dict()["links"]


def test_a_plan_names_its_partitions_and_one_that_does_not_has_271() -> None:
    plan = STEPS["over_pes"]
    assert plan.to_record()["partitions"] == 4096
    former = ExecPlan.from_dict({name: value for name, value in plan.to_record().items() if name != "partitions"})
    assert former.partitions == 271
    assert former == replace(plan, regions=tuple(replace(planned, partitions=271) for planned in plan.regions))
    assert ExecPlan.from_dict(former.to_record()) == former, "it goes on with them"
    assert former.region("r1").ring.loads() == [91, 90, 90]
    assert former.with_replicas("r1", 271).region("r1").partitions == 271
    with raises(ConfigError, "out-of-range", "271"):
        former.with_replicas("r1", 272)
    with pytest.raises(ValueError, match="271 and 4096"):
        plan_change(former, plan)


# --- any graph, any sequence of changes -----------------------------------------------------------------------------


def changed(data: st.DataObject, plan: ExecPlan) -> tuple[ExecPlan, ExecPlan]:
    """Do one change to a plan and take it back."""
    region = data.draw(st.sampled_from(plan.regions))
    name = region.region.name
    inner = [o for p in region.pipelines for o in p.operators[1:]]
    if region.region.kind is RegionKind.DATA_PARALLEL and data.draw(st.booleans()):
        pes = region.pipelines[0].pes if len({p.pes for p in region.pipelines}) == 1 else None
        after = plan.with_replicas(name, data.draw(st.integers(1, 16)))
        return after, after.with_replicas(name, region.replicas, pes=pes)
    if inner:
        at = data.draw(st.sampled_from(inner))
        after = plan.with_split(name, at)
        return after, after.with_merge(name, at)
    return plan, plan


@settings(max_examples=500)
@given(graphs(), st.data())
def test_any_changes_of_any_graph(drawn: FakeGraph, data: st.DataObject) -> None:
    plan = plan_topology(drawn)
    for _ in range(2):
        after, back = changed(data, plan)
        assert back == plan
        check(drawn, after)
        assert ExecPlan.from_dict(after.to_dict()) == after
        change = plan_change(plan, after)
        assert change.epoch == plan.epoch + 1
        assert {c.region for c in change.regions} == {
            a.region.name for a, b in zip(plan.regions, after.regions, strict=True) if a != b
        }
        for region in change.regions:
            before, now = plan.region(region.region), after.region(region.region)
            moved = [p for moves in region.moved for p in moves.partitions]
            assert len(moved) == len(set(moved)) == sum(map(len, before.ring.moves(now.ring).values()))
            assert bool(region.cuts or region.joins) != region.moves_keys or not region.moves_keys
        plan = change.new


def check(drawn: FakeGraph, plan: ExecPlan) -> None:
    """Every operator is in exactly one pipeline, of its region, in order; every replica of it is somewhere."""
    names = [o for planned in plan.regions for p in planned.pipelines for o in p.operators]
    assert sorted(names) == sorted(drawn.operators)
    for planned in plan.regions:
        assert tuple(o for p in planned.pipelines for o in p.operators) == planned.region.operators
        assert len({len(p.pes) for p in planned.pipelines}) == 1
        loads = planned.ring.loads()
        assert len(loads) == planned.replicas
        assert max(loads) - min(loads) <= 1
    placed = [pair for pe in plan.pes for pair in plan.instances(pe)]
    assert len(placed) == len(set(placed)) == sum(r.replicas * len(r.region.operators) for r in plan.regions)


@given(graphs())
def test_the_same_declaration_gives_the_same_plan(drawn: FakeGraph) -> None:
    assert plan_topology(drawn) == plan_topology(FakeGraph(drawn.name, dict(drawn.operators)))


def test_the_shape_of_a_region_is_told_once() -> None:
    planned: RegionPlan = figure_3().region("r1")
    assert (planned.replicas, planned.threads, planned.cuts) == (3, 6, ("o4",))
