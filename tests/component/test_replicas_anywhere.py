"""Functions and classes without state get replicas wherever they are in the graph, and the order stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import start
from tests.component.rescaling import flows
from tests.component.test_stateless_regions import Number, Numbers


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


SHAPES: dict[str, Shape] = {"throttle": throttled, "split": split, "union": union, "keyed": keyed}


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
        if shape == "keyed":
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
