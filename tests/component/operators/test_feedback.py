"""Loops: what comes back, that they end, and what can't be one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import ConfigError, GraphError
from rayelastic.plan.regions import RegionKind
from tests.raising import raises


class Walk(NamedTuple):
    start: int
    n: int
    steps: int


COUNT = 600
CONFIGS = [
    rel.JobConfig(threads=rel.Threads(count=threads, model=model, queue_records=256))
    for threads in (1, 2, 8)
    for model in ("manual", "dynamic", "dedicated")
] + [rel.JobConfig(pes=2, threads=2), rel.JobConfig(pes=3)]


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def step(t: Walk) -> Walk:
    return Walk(t.start, t.n // 2 if t.n % 2 == 0 else 3 * t.n + 1, t.steps + 1)


def walks(topology: rel.Topology) -> Any:
    return topology.source(rel.rows([(n, n, 0) for n in range(1, COUNT)], schema=Walk), name="walks")


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_tuples_go_round_until_they_are_done(lane: Any, config: rel.JobConfig) -> None:
    topology = rel.Topology("collatz")
    start = walks(topology)
    again = topology.feedback(name="again", like=start)
    parts = start.union(again).split(name="parts", going=lambda t: t.n != 1, lane=lane)
    again.close(parts.going.map(step, name="step", schema=Walk, lane=lane))
    parts.rest.sink(rel.list(), name="out")
    regions = {region.region.operators: region.region.kind for region in topology.plan(config).regions}
    assert regions[("parts", "step")] is RegionKind.LOOP
    result = rel.run(topology, config)
    assert sorted((t.start, t.steps) for t in result["out"]) == [(n, collatz(n)) for n in range(1, COUNT)]


@rel.operator(inputs={"new": Walk, "back": Walk}, outputs={"on": Walk, "done": Walk})
class Ported:
    def invoke(self, port: str, t: Any) -> Iterator[Any]:
        assert (port == "new") == (t.steps == 0)
        yield rel.to("done" if t.n == 1 else "on", t)


def test_what_comes_back_may_have_a_port_of_its_own() -> None:
    topology = rel.Topology("ported")
    back = topology.feedback(name="back", like=Walk)
    ported = topology.apply(Ported(), name="ported", new=walks(topology), back=back)
    back.close(ported.on.map(step, name="step", schema=Walk))
    ported.done.sink(rel.list(), name="out")
    result = rel.run(topology, rel.JobConfig(threads=rel.Threads(count=2, model="dynamic")))
    assert sorted((t.start, t.steps) for t in result["out"]) == [(n, collatz(n)) for n in range(1, COUNT)]


@rel.operator(inputs={"a": rel.exactly(1, Walk), "b": rel.exactly(1, Walk)}, outputs=Walk)
class Pairs:
    def invoke(self, a: Any, b: Any) -> Any:
        return [*a, *b]


def looped(topology: rel.Topology, body: Any) -> None:
    start = walks(topology)
    again = topology.feedback(name="x", like=start)
    parts = start.union(again).split(2, name="x2")
    parts[0].sink(rel.count(), name="out")
    again.close(body(parts[1], start))


@pytest.mark.parametrize(
    ("declare", "expected"),
    [
        (lambda t: (topology_with_feedback(t), t.validate()), "open-feedback x"),
        (lambda t: t.feedback(name="x", like=Walk).close(walks(t)), "unused-feedback x"),
        (
            lambda t: t.feedback(name="x", like=Walk) and t.feedback(name="x", like=Walk),
            "duplicate-name x",
        ),
        (lambda t: looped(t, lambda s, _: s.map(lambda t: t.n, name="m", schema=int)), "schema-mismatch x"),
        (lambda t: looped(t, lambda s, _: 3), "not-a-stream x"),
        (lambda t: (looped(t, lambda s, start: start), t.validate()), "bad-loop x2"),  # type: ignore[func-returns-value]
        (
            lambda t: (looped(t, lambda s, _: t.apply(Pairs(), name="p", a=s, b=s)), t.validate()),  # type: ignore[func-returns-value]
            "bad-loop p x2",
        ),
        (
            lambda t: (looped(t, lambda s, start: s.union(start).map(step, name="u", schema=Walk)), t.validate()),  # type: ignore[func-returns-value]
            "bad-loop u walks x2",
        ),
    ],
)
def test_what_cant_be_a_loop(declare: Any, expected: str) -> None:
    with raises(GraphError, *expected.split()):
        declare(rel.Topology("bad"))


def topology_with_feedback(topology: rel.Topology) -> Any:
    feedback = topology.feedback(name="x", like=Walk)
    walks(topology).sink(rel.count(), name="out")
    return feedback


def test_a_loop_stays_in_one_processing_element() -> None:
    topology = rel.Topology("pins")
    looped(topology, lambda s, _: s.map(step, name="step", schema=Walk))
    assert len(topology.plan(rel.JobConfig(pes={"x2": 1})).pes) == 2
    with raises(ConfigError, "conflicting-arguments", "x2", operator="step"):
        topology.plan(rel.JobConfig(pes={"step": 1}))
    plan = topology.plan()
    with raises(ConfigError, "fixed-region"):
        plan.with_split(plan.region_of("step").region.name, "step")
