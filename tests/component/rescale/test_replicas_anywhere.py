"""Functions and classes without state get replicas wherever they are in the graph, and the order stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.job import Job, start
from rayelastic.plan.routing import elastic_regions
from rayelastic.testing.collect import topology_of
from tests.component.graph.test_any_graph import LAST, QUIET, STATELESS, Graph, Row, rows
from tests.component.rescale.gated import gated, rows_under_changes
from tests.component.rescale.rescaling import flows
from tests.component.rescale.test_stateless_regions import Number, Numbers


class Sent(NamedTuple):
    part: int
    value: int


def tag(t: Number) -> Sent:
    return Sent(0, t.value)


def other(t: Number) -> Sent:
    return Sent(1, t.value)


def work(t: Sent) -> Sent:
    return Sent(t.part, t.value)


@rel.operator(outputs=Sent, stateless=True)
class Work:
    def invoke(self, t: Sent) -> Iterator[Sent]:
        yield Sent(t.part, t.value)


def newest(t: Sent, s: dict[str, int]) -> Sent:
    s["n"] = s.get("n", 0) + 1
    return t


class Seen(dict[str, int]):
    """How many tuples of a key came."""


Shape = Callable[[Any], Any]


def throttled(numbers: Any) -> Any:
    return numbers.map(tag, name="tag", schema=Sent).throttle(1e9, name="throttle")


def split(numbers: Any) -> Any:
    odd, even = numbers.map(tag, name="tag", schema=Sent).split(2, name="split")
    even.sink(rel.count(), name="evens")
    return odd


def union(numbers: Any) -> Any:
    return numbers.map(tag, name="tag", schema=Sent).union(numbers.map(other, name="other", schema=Sent))


def keyed(numbers: Any) -> Any:
    tagged = numbers.map(lambda t: Sent(t.value % 7, t.value), name="tag", schema=Sent)
    kept = tagged.key_by("part").map(newest, name="keyed", state=Seen, schema=Sent, lane="python")
    return kept.map(lambda t: Sent(t.part + 0, t.value), name="rekey", schema=Sent, lane="python")


def joined(numbers: Any) -> Any:
    tagged = numbers.map(lambda t: Sent(t.value % 7, t.value), name="tag", schema=Sent)
    few = numbers.filter(lambda t: t.value < 7, name="few").key_by("value")
    each = tagged.key_by("part").join(few, name="keyed", how="left")
    return each.map(lambda t: Sent(t.part, t.value), name="narrow", schema=Sent, lane="python")


SHAPES: dict[str, Shape] = {"throttle": throttled, "split": split, "union": union, "keyed": keyed, "join": joined}


@pytest.mark.parametrize("how", ["function", "class"])
@pytest.mark.parametrize("shape", SHAPES)
def test_replicas_come_and_go_and_each_input_keeps_its_order(shape: str, how: str) -> None:
    numbers = Numbers()
    topology = rel.Topology("anywhere")
    source = topology.source(rel.callable(numbers, Number), name="numbers")
    stream = SHAPES[shape](source)
    done = (
        stream.map(work, name="work", schema=Sent, lane="python")
        if how == "function"
        else stream.apply(Work(), name="work")
    )
    done.sink(rel.list(), name="out")
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off", threads=2))
    try:
        region = job.plan().region_of("work").region.name
        for replicas in (2, 3, 1, 2):
            flows(job)
            assert job.rescale(region, replicas).region(region).replicas == replicas
        if shape in ("keyed", "join"):
            upstream = job.plan().region_of("keyed").region.name
            for replicas in (2, 3, 1, 2):
                flows(job)
                job.rescale(upstream, replicas)
        flows(job)
        numbers.enough.set()
        out = job.wait()["out"]
    finally:
        numbers.enough.set()
        job.close()
    by_part: dict[int, list[int]] = {}
    for t in out:
        by_part.setdefault(t.part, []).append(t.value)
    assert all(values == sorted(values) for values in by_part.values())
    if shape == "split":
        assert len(out) in (numbers.made // 2, numbers.made // 2 + 1)
        return
    expected = sorted(range(numbers.made)) * (2 if shape == "union" else 1)
    assert sorted(value for values in by_part.values() for value in values) == sorted(expected)


free = st.lists(st.sampled_from([*STATELESS]), min_size=1, max_size=3).map(tuple)
free_graphs = st.builds(
    Graph, steps=free, branches=st.one_of(st.just(()), st.tuples(free, free)), last=st.sampled_from([*LAST])
)


@seed(7)
@settings(max_examples=30, **QUIET)  # type: ignore[arg-type]
@given(graph=free_graphs, given_rows=rows, data=st.data())
def test_any_graph_whose_replicas_change_gives_the_same_rows(
    graph: Graph, given_rows: list[Row], data: st.DataObject
) -> None:
    """A chain keeps its order as well; between the branches of a union there is none."""
    lane = data.draw(st.sampled_from(["python", "compiled"]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(given_rows)), min_size=1, max_size=4)))
    source, gates = gated(given_rows, cuts, Row)
    expected = testing.collect(
        lambda s: graph.declare(s, "python"), given_rows, Row, rel.JobConfig(elasticity="off", regions="fixed")
    )

    def rescale(job: Job) -> None:
        if elastic := elastic_regions(job.plan()):
            job.rescale(data.draw(st.sampled_from(elastic)), data.draw(st.integers(1, 3)))

    config = rel.JobConfig(elasticity="off", regions="manual", threads=2)
    found = rows_under_changes(topology_of(lambda s: graph.declare(s, lane), source), config, gates, rescale)
    assert Counter(found) == Counter(map(tuple, expected))
    if not graph.branches and graph.last == "as it is":
        assert found == [tuple(t) for t in expected]
