"""The papers' benchmark graphs run: nothing is lost or doubled, and they have the shapes and regions of the figures."""

from __future__ import annotations

import pytest

import rayelastic as rel
from rayelastic.plan.regions import RegionKind
from rayelastic.topologies import bushy, data_parallel, joker_regions, load_balance, mixed, pipeline, shapes
from rayelastic.topologies.multiplications import FACTOR, Work, costs_of, multiply
from tests.raising import raises

TUPLES = 3000
GRAPHS = {
    "pipeline": (lambda: pipeline.build(20, 10, tuples=TUPLES), 20),
    "skewed pipeline": (lambda: pipeline.build(10, skewed=True, tuples=TUPLES, payload=1024), 10),
    "data parallel": (lambda: data_parallel.build(8, 10, tuples=TUPLES), 8),
    "mixed": (lambda: mixed.build(4, 5, 10, tuples=TUPLES), 20),
    "bushy": (lambda: bushy.build(flops=1, payload=4096, tuples=TUPLES), shapes.BUSHY_OPERATORS - 2),
}


@pytest.mark.parametrize(
    "config",
    [rel.JobConfig(), rel.JobConfig(threads=rel.Threads(count=2, model="dynamic", queue_records=64, run_records=16))],
)
@pytest.mark.parametrize("name", GRAPHS)
def test_shapes_of_middleware(name: str, config: rel.JobConfig) -> None:
    build, workers = GRAPHS[name]
    topology = build()  # type: ignore[no-untyped-call]
    assert sum(one.startswith("op") for one in topology.operators) == workers
    assert rel.run(topology, config)["out"] == TUPLES


def test_every_operator_multiplies() -> None:
    assert multiply(3)(Work(1, 2.0, b"p")) == Work(1, 2.0 * FACTOR * FACTOR * FACTOR, b"p")
    costs = costs_of(100, 7, skewed=True)
    assert [costs.count(flops) for flops in (10_000, 100, 1)] == [10, 30, 60]
    assert costs_of(3, 7, skewed=False) == [7, 7, 7]


@pytest.mark.parametrize("load", load_balance.LOADS)
def test_loads_of_elastic_load_balance(load: str) -> None:
    topology = load_balance.build(load, flops=50, tuples=TUPLES, burst=1000, pause=0.01)
    assert sum(one.startswith("work") for one in topology.operators) == load_balance.PORTS
    assert rel.run(topology)["out"] == TUPLES


REGIONS = {"flow": 1, "tree": 3, "reverse_tree": 3, "chain_2": 2, "chain_4": 2, "selectivity": 1, "comparison": 2}


@pytest.mark.parametrize("flow", joker_regions.FLOWS)
def test_regions_of_joker(flow: str) -> None:
    topology = joker_regions.build(flow, 10, keys=50, tuples=TUPLES)
    regions = [one.region for one in topology.plan().regions]
    assert sum(region.kind is RegionKind.DATA_PARALLEL for region in regions) == REGIONS[flow]
    counted = rel.run(topology)["out"]
    expected = {"tree": 2.0, "reverse_tree": 2.0, "selectivity": 4 * 0.25 * 0.5, "comparison": 0.9**3 * 0.8}
    assert counted == pytest.approx(TUPLES * expected.get(flow, 1.0), rel=0.2)


def test_a_load_that_there_is_not_is_refused() -> None:
    with raises(rel.errors.ConfigError, "invalid-setting", "bursty_rate"):
        load_balance.build("heavy")
    with raises(rel.errors.ConfigError, "invalid-setting", "chain_4"):
        joker_regions.build("star")
