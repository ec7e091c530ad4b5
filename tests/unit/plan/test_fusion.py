"""Fusion: everything in one PE, cuts at region borders, pins; golden plans."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayelastic.errors import ConfigError
from rayelastic.graph import Lane, Schema
from rayelastic.plan.config import JobConfig
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.explain import explain
from rayelastic.plan.fusion import balanced, plan_topology
from rayelastic.plan.settings.elasticity import SHORTEST_PERIOD, Elasticity
from rayelastic.plan.settings.network import Network
from rayelastic.plan.settings.threads import ThreadingModel, Threads
from tests.raising import raises
from tests.unit.graph.fakes import FakeCode
from tests.unit.plan.graphs import FakeGraph, graph

GOLDEN = Path(__file__).parent / "golden"

WORD_COUNT = graph(
    "lines source", "words map <- lines | l", "counts part[w] <- words | w", "out sink <- counts | w c"
)  # fmt: skip
TREE = graph(
    "left source", "right source", "clean_left map <- left | k v", "clean_right map <- right | k v",
    "both filter <- clean_left clean_right | k v", "totals part[k] <- both | k v", "scaled map <- totals | k v",
    "store sink <- scaled | k v", "alerts filter <- scaled | k v", "notify sink <- alerts | k v",
)  # fmt: skip
LONG = graph("s source", *(f"operator_number_{i} map <- {f'operator_number_{i - 1}' if i else 's'}" for i in range(12)))

CONFIGS = {
    "word_count": (WORD_COUNT, JobConfig()),
    "word_count_2": (WORD_COUNT, JobConfig(pes=2)),
    "word_count_4": (WORD_COUNT, JobConfig(pes=4, threads=Threads(ray_cpus=1))),
    "word_count_pins": (WORD_COUNT, JobConfig(pes={"counts": "back", "out": 0})),
    "tree_3": (TREE, JobConfig(pes=3)),
    "long_pinned_inside": (LONG, JobConfig(pes={"operator_number_4": 1, "operator_number_8": 2})),
}


@pytest.mark.parametrize("case", CONFIGS)
@pytest.mark.parametrize("form", ["plan.txt", "explain.txt", "json"])
def test_golden(case: str, form: str) -> None:
    made, config = CONFIGS[case]
    plan = plan_topology(made, config)
    text = {"plan.txt": plan.text(), "explain.txt": explain(made, plan), "json": plan.to_json() + "\n"}[form]
    assert text == (GOLDEN / f"{case}.{form}").read_text()
    assert form == "json" or max(len(line) for line in text.splitlines()) <= 80


def test_everything_is_fused_by_default() -> None:
    plan = plan_topology(TREE)
    assert plan.pes == {"pe0": tuple(TREE.operators)}
    assert plan.links == ()
    assert not plan.placement.spread
    assert all(len(r.pipelines) == 1 and r.replicas == 1 for r in plan.regions)  # J13


def test_links_are_the_edges_that_cross() -> None:
    plan = plan_topology(WORD_COUNT, JobConfig(pes=2))
    assert [(link.name, link.from_pe, link.to_pe) for link in plan.links] == [("words->counts", "pe0", "pe1")]
    assert plan.placement.spread
    assert plan.pe_of("words") == "pe0"
    with pytest.raises(KeyError):
        plan.pe_of("nothing")


def test_pins_cut_inside_a_region() -> None:
    plan = plan_topology(LONG, JobConfig(pes={"operator_number_4": 1}))
    region = plan.regions[1]
    assert [(p.pe, len(p.operators)) for p in region.pipelines] == [("pe0", 4), ("pe1", 8)]


def test_a_plan_is_a_value() -> None:
    plan = plan_topology(TREE, JobConfig(pes=3))
    assert plan == plan_topology(TREE, JobConfig(pes=3)) == pickle.loads(pickle.dumps(plan))
    assert plan != plan_topology(TREE, JobConfig(pes=2))
    assert json.loads(plan.to_json()) == plan.to_dict()


@given(st.integers(1, 6))
def test_any_number_of_processing_elements(pes: int) -> None:
    plan = plan_topology(TREE, JobConfig(pes=pes))
    assert list(plan.pes) == [f"pe{i}" for i in range(pes)]
    check_plan(TREE, plan)
    for link in plan.links:
        assert link.from_pe < link.to_pe
    for planned in plan.regions:
        assert len(planned.pipelines) == 1


@given(st.dictionaries(st.sampled_from(list(TREE.operators)), st.sampled_from([0, 1, 2, "front", "back"]), max_size=5))
def test_any_pins(pins: dict[str, int | str]) -> None:
    plan = plan_topology(TREE, JobConfig(pes=pins))
    check_plan(TREE, plan)
    for operator, pe in pins.items():
        assert plan.pe_of(operator) == (pe if isinstance(pe, str) else f"pe{pe}")


def check_plan(made: FakeGraph, plan: ExecPlan) -> None:
    """Every operator is in one PE and in one pipeline, and every crossing edge is a link."""
    place = {name: pe for pe, names in plan.pes.items() for name in names}
    assert sorted(place) == sorted(made.operators) == sorted(n for names in plan.pes.values() for n in names)
    assert all(plan.pes.values())
    for planned in plan.regions:
        assert tuple(n for p in planned.pipelines for n in p.operators) == planned.region.operators
        assert all(place[n] == p.pe for p in planned.pipelines for n in p.operators)
    edges = {(i, spec.name) for spec in made.operators.values() for i in spec.taken}
    assert {(link.source, link.target) for link in plan.links} == {(a, b) for a, b in edges if place[a] != place[b]}


@given(st.lists(st.integers(1, 9), min_size=1, max_size=14), st.data())
def test_cuts_are_the_best(weights: list[int], data: st.DataObject) -> None:
    parts = data.draw(st.integers(1, len(weights)))
    taken = balanced(weights, parts)
    assert len(taken) == parts
    assert sum(taken) == len(weights)
    assert min(taken) >= 1
    assert heaviest(weights, taken) == best(tuple(weights), parts)


def heaviest(weights: list[int], taken: list[int]) -> int:
    loads, at = [], 0
    for count in taken:
        loads.append(sum(weights[at : at + count]))
        at += count
    return max(loads)


def best(weights: tuple[int, ...], parts: int) -> int:
    """By dynamic programming, to compare with."""
    table = [sum(weights[:i]) for i in range(len(weights) + 1)]
    for part in range(2, parts + 1):
        table = [
            min((max(table[j], sum(weights[j:i])) for j in range(part - 1, i)), default=0) if i >= part else 10**9
            for i in range(len(weights) + 1)
        ]
    return table[len(weights)]


@pytest.mark.parametrize(
    ("config", "code", "values"),
    [
        ({"pes": 5}, "out-of-range", ("JobConfig(pes=5)", "4 regions", "pes=4")),
        ({"pes": {"count": 1}}, "unknown-operator", ("'count'", "JobConfig(pes=", "'counts'")),
        (
            {"threads": Threads(model={"word": "manual"})},
            "unknown-operator",
            ("'word'", "JobConfig(threads=", "'words'"),
        ),
    ],
)
def test_a_config_that_doesnt_fit_the_topology(config: dict[str, Any], code: str, values: tuple[str, ...]) -> None:
    with raises(ConfigError, code, *values):
        plan_topology(WORD_COUNT, JobConfig(**config))


@pytest.mark.parametrize(
    ("config", "values"),
    [
        ({"pes": 0}, ("JobConfig(pes=0)", "1")),
        ({"pes": 1.5}, ("pes=1.5",)),
        ({"pes": True}, ("pes=True",)),
        ({"threads": 0}, ("JobConfig(threads=0)",)),
        ({"threads": "many"}, ("threads='many'",)),
        ({"elasticity": "fast"}, ("JobConfig(elasticity='fast')", "'multi-level', 'paper' or 'off'")),
        ({"network": True}, ("JobConfig(network=True)", "rel.Network")),
        ({"pes": ["a"]}, ("JobConfig(pes=['a'])", "{'counts': 1}")),
        ({"pes": {"a": -1}}, ("'a'", "-1")),
        ({"pes": {"a": "b c"}}, ("'a'", "b c")),
        ({"pes": {"a": None}}, ("'a'", "None")),
        ({"pes": {3: 1}}, ("pes={3: 1}",)),
        ({"regions": "elastic", "elasticity": Elasticity(journal="all.jsonl")}, ("all.jsonl", "{pe}")),
        ({"pes": 3, "elasticity": Elasticity(max_processes=2)}, ("pes=3", "max_processes=2")),
        ({"regions": "fixed", "elasticity": Elasticity(max_replicas=2)}, ("regions='fixed'", "max_replicas")),
    ],
)
def test_a_config_out_of_range(config: dict[str, Any], values: tuple[str, ...]) -> None:
    with raises(ConfigError, "invalid-setting", *values):
        JobConfig(**config)


@pytest.mark.parametrize(
    ("settings", "given", "values"),
    [
        (Threads, {"max": -1}, ("Threads(max=-1)",)),
        (Threads, {"count": 4, "max": 2}, ("Threads(count=4)", "max=2")),
        (Threads, {"queue_records": 0}, ("queue_records=0",)),
        (Threads, {"queue_bytes": -5}, ("queue_bytes=-5",)),
        (Threads, {"run_records": 2048}, ("run_records=2048", "queue_records=1024")),
        (Threads, {"run_bytes": None}, ("run_bytes=None",)),
        (Threads, {"pin": "yes"}, ("pin='yes'", "True or False")),
        (Threads, {"ray_cpus": -1}, ("ray_cpus=-1",)),
        (Threads, {"ray_cpus": float("nan")}, ("ray_cpus=nan",)),
        (Threads, {"model": "fast"}, ("model='fast'", "'manual', 'dynamic' or 'dedicated'")),
        (Threads, {"model": {"a": "slow"}}, ("'a'", "model='slow'")),
        (Elasticity, {"thread_period": SHORTEST_PERIOD / 2}, (f"thread_period={SHORTEST_PERIOD / 2}",)),
        (Elasticity, {"region_period": float("inf")}, ("region_period=inf",)),
        (Elasticity, {"max_processes": 0}, ("max_processes=0",)),
        (Elasticity, {"max_replicas": 4097}, ("max_replicas=4097", "4096")),
        (Network, {"secure": 1}, ("Network(secure=1)", "True or False")),
    ],
)
def test_an_object_of_settings_out_of_range(
    settings: type[Any], given: dict[str, Any], values: tuple[str, ...]
) -> None:
    with raises(ConfigError, "invalid-setting", *values):
        settings(**given)


def test_a_note_that_is_too_long_goes_on_under_its_first_word() -> None:
    made = graph(
        "s source",
        *(f"operator_number_{i} map <- {f'operator_number_{i - 1}' if i else 's'}" for i in range(4)),
        "o sink <- operator_number_3",
    )
    python = {
        name: replace(spec, body=FakeCode(Lane.PYTHON, "made by hand", Schema.of({"a": int}))) if name[1:] else spec
        for name, spec in made.operators.items()
    }
    made = replace(made, operators=python)
    lines = explain(made, plan_topology(made)).splitlines()
    first = next(at for at, line in enumerate(lines) if "note: " in line)
    assert lines[first].startswith("    note: operator_number_0, ")
    assert lines[first + 1].startswith(" " * lines[first].index("operator") + "operator_number_3 need Python:")


def test_a_config_at_its_borders() -> None:
    assert JobConfig(elasticity=Elasticity(thread_period=SHORTEST_PERIOD)).elasticity.thread_period == SHORTEST_PERIOD
    assert JobConfig(regions="elastic", elasticity=Elasticity(journal="{pe}.jsonl")).elasticity.journal == "{pe}.jsonl"
    assert JobConfig(elasticity=Elasticity(journal="all.jsonl")).elasticity.journal == "all.jsonl"
    assert JobConfig(pes=2, elasticity=Elasticity(max_processes=2, max_replicas=271)).elasticity.max_processes == 2
    assert JobConfig(threads=Threads(queue_records=64, run_records=64)).threads.run_records == 64


def test_threading_models() -> None:
    assert JobConfig().threads.model_of("a") is None
    assert JobConfig(threads=Threads(model="manual")).threads.model_of("a") is ThreadingModel.MANUAL
    mixed = JobConfig(threads=Threads(model={"a": ThreadingModel.DEDICATED, "b": "dynamic"}))
    assert (mixed.threads.model_of("a"), mixed.threads.model_of("b"), mixed.threads.model_of("c")) == (
        ThreadingModel.DEDICATED, ThreadingModel.DYNAMIC, None,
    )  # fmt: skip
    assert pickle.loads(pickle.dumps(mixed)) == mixed
