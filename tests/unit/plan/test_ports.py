"""Operators with several ports in graphs and plans: their edges, regions, links and text."""

from __future__ import annotations

import json
from dataclasses import replace

from rayelastic.errors import GraphError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.order import consumers, topological_order
from rayelastic.graph.spec.ports import InputPort, OutputPort
from rayelastic.plan.config import JobConfig
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.fusion import plan_topology
from rayelastic.plan.regions import regions
from tests.raising import raises
from tests.unit.plan.graphs import FakeGraph, graph

SCHEMA = Schema.of({"a": int}, name="R")


def taking(spec: OperatorSpec, *streams: str) -> OperatorSpec:
    """The operator with other streams at its first port."""
    return replace(spec, inputs=(replace(spec.inputs[0], streams=streams), *spec.inputs[1:]))


def diamond() -> FakeGraph:
    """A split by two ports, and a join that takes them by two ports, the second also from elsewhere."""
    made = graph(
        "s source",
        "split map <- s | a",
        "left map <- split | a",
        "right map <- split/odd | a",
        "other source",
        "join part[a] <- left | a",
        "out sink <- join | a",
        "late sink <- join/late | a",
    )
    specs = dict(made.operators)
    specs["split"] = replace(specs["split"], outputs=(OutputPort("even", SCHEMA), OutputPort("odd", SCHEMA)))
    specs["left"] = taking(specs["left"], "split/even")
    further = InputPort("right", SCHEMA, ("right", "other", "split/odd"), keys=("a",))
    specs["join"] = replace(
        specs["join"],
        inputs=(replace(specs["join"].inputs[0], name="left"), further),
        outputs=(*specs["join"].outputs, OutputPort("late", SCHEMA, optional=True)),
    )
    return FakeGraph("diamond", specs)


def test_edges_and_order() -> None:
    operators = diamond().operators
    assert operators["split"].streams == ("split/even", "split/odd")
    assert operators["join"].streams == ("join", "join/late")
    assert operators["join"].edges == (
        ("left", "join/left"),
        ("right", "join/right"),
        ("other", "join/right"),
        ("split/odd", "join/right"),
    )
    assert [port.keys for port in operators["join"].inputs] == [("a",), ("a",)]
    assert consumers(operators)["split"] == ["left", "right", "join"]
    order = topological_order(operators)
    assert order.index("split") < order.index("right") < order.index("join") < order.index("late")


def test_a_port_that_isnt_there() -> None:
    made = diamond().operators
    made["left"] = taking(made["left"], "split/evn")
    with raises(GraphError, "other-topology", "split/evn", operator="left"):
        consumers(made)
    made["left"] = taking(made["left"], "split")
    with raises(GraphError, "other-topology", "split"):
        topological_order(made)


def test_a_cycle_through_ports() -> None:
    made = diamond().operators
    made["split"] = taking(made["split"], "s", "join/late")
    with raises(GraphError, "cycle"):
        topological_order(made)


def test_branches_and_several_inputs_end_regions() -> None:
    formed = {region.operators: region.kind.value for region in regions(diamond())}
    assert formed[("split",)] == "pipeline"
    assert formed[("join",)] == "data-parallel"
    assert formed[("left",)] == formed[("right",)] == "stateless"


def test_links_know_their_ports() -> None:
    plan = plan_topology(diamond(), JobConfig(pes={"right": 1, "join": 2}))
    assert [(link.name, link.source, link.target, link.output, link.input) for link in plan.links] == [
        ("split/odd->right", "split", "right", "odd", "in"),
        ("left->join/left", "left", "join", "out", "left"),
        ("right->join/right", "right", "join", "out", "right"),
        ("other->join/right", "other", "join", "out", "right"),
        ("split/odd->join/right", "split", "join", "odd", "right"),
    ]
    assert plan.upstream(plan.region_of("join").region.name) == tuple(
        plan.region_of(name).region.name for name in ("left", "right", "other", "split")
    )
    assert "  split/odd -> join/right  pe0 -> pe2\n" in plan.text()
    assert ExecPlan.from_dict(json.loads(plan.to_json())) == plan
    wide = plan.with_replicas(plan.region_of("join").region.name, 2, ["pe2", "pe3"])
    assert "split/odd->join/right@pe0>pe3" in [link.name for link in wide.links]
