"""Whether results depend on timing, operator by operator: two streams in forced orders of arrival.

docs/reference/results_and_timing.md names each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rayelastic as rel
from rayelastic import testing

pytestmark = pytest.mark.edges

PATIENCE = 30.0
ROW = {"k": str, "at": int, "x": int}
A = [("a", 1, 1), ("b", 4, 2), ("a", 9, 3), ("b", 14, 4), ("a", 23, 5)]
B = [("a", 2, 10), ("a", 3, 20), ("b", 8, 30), ("a", 15, 40), ("b", 21, 50), ("b", 22, 60)]
ALONE = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")
QUEUES = rel.JobConfig(threads=rel.Threads(count=8, model="dynamic", queue_records=4, run_records=2), elasticity="off")
Declare = Callable[[Any, Any], Any]


def timed(stream: Any, name: str) -> Any:
    return stream.event_time("at", name=name)


def both(a: Any, b: Any) -> Any:
    """United, with the event time that both have."""
    return timed(a, "at_a").union(timed(b, "at_b"))


def keyed(a: Any, b: Any) -> Any:
    return both(a, b).key_by("k")


def windows(a: Any, b: Any) -> Any:
    return keyed(a, b).window(seconds=10)


def joined(a: Any, b: Any, **how: Any) -> Any:
    return timed(a, "at_a").key_by("k").join(timed(b, "at_b").key_by("k"), name="op", **how)


class Emitted:
    """Emits what comes, in its order, and what a key has at the end of its time."""

    def on_tuple(self, t: Any, state: Any, out: Any) -> None:
        state["n"] = state["n"] * 7 + t.x
        out.give((t.k, state["n"]))


@rel.operator(inputs={"a": rel.exactly(1), "b": rel.exactly(1)}, outputs={"x": int}, stateless=True)
class Pairs:
    def invoke(self, a: Any, b: Any) -> Any:
        return (a[0].x * b[0].x,)


@rel.operator(inputs={"a": ROW, "b": ROW}, outputs={"x": int})
class Running:
    def __init__(self) -> None:
        self.x = 0

    def invoke(self, port: str, t: Any) -> Any:
        self.x = self.x * 7 + t.x
        return (self.x,)


class Weighted:
    def init(self) -> list[int]:
        return [0]

    def add(self, t: Any, state: list[int]) -> None:
        state[0] = state[0] * 7 + t.x

    def result(self, state: list[int]) -> int:
        return state[0]


def scanned(stream: Any) -> Any:
    return stream.key_by("k").scan(lambda n, t: n * 7 + t.x, 0, name="op", schema={"n": int})


def processed(stream: Any) -> Any:
    return stream.process(Emitted(), name="op", state=lambda: {"n": 0}, schema={"k": str, "n": int})


AGGREGATES: dict[str, Any] = {
    "n": rel.count(), "sum": rel.sum("x"), "least": rel.min("x"), "most": rel.max("x"), "mean": rel.mean("x"),
    "values": rel.distinct("x"), "half": rel.quantile("x", 0.5),
}  # fmt: skip
PATTERN = rel.Pattern("first", lambda t: t.x < 10).then("second", lambda t: t.x >= 10, within=8)

SAME: dict[str, Declare] = {
    "map, filter, flat_map": lambda a, b: a.union(b).map(lambda t: t.x * 2, name="m", schema={"x": int}),
    "enrich": lambda a, b: a.union(b).key_by("k").enrich({"a": 1}, name="op", how="left"),
    "aggregate": lambda a, b: a.union(b).key_by("k").aggregate(name="op", **AGGREGATES),
    "window.aggregate": lambda a, b: windows(a, b).aggregate(name="op", **AGGREGATES, f=rel.first("x")),
    "sliding window.aggregate": lambda a, b: (
        keyed(a, b).window(seconds=10, slide=4).aggregate(name="op", n=rel.sum("x"), f=rel.first("x"), l=rel.last("x"))
    ),
    "session.aggregate": lambda a, b: (
        keyed(a, b).session(gap=5).aggregate(name="op", n=rel.sum("x"), f=rel.first("x"), l=rel.last("x"))
    ),
    "window.fold": lambda a, b: windows(a, b).fold(lambda n, t: n * 7 + t.x, 0, name="op", schema={"n": int}),
    "window.reduce": lambda a, b: windows(a, b).reduce(lambda old, new: new, name="op"),
    "window.collect": lambda a, b: windows(a, b).collect(name="op"),
    "window.top": lambda a, b: windows(a, b).top(2, name="op", by="x"),
    "process by event time": lambda a, b: processed(keyed(a, b)),
    "match": lambda a, b: keyed(a, b).match(PATTERN, name="op"),
    "merge_by_time": lambda a, b: scanned(timed(a, "at_a").merge_by_time(timed(b, "at_b"), name="merged")),
    "join how=": lambda a, b: a.key_by("k").join(b.key_by("k"), name="op", how="full"),
    "join by event time": joined,
    "join keep=": lambda a, b: joined(a, b, keep="first"),
    "join within=": lambda a, b: joined(a, b, within=(3, 3), how="full"),
    "join window=": lambda a, b: joined(a, b, window=10, how="full"),
    "cross_join by event time": lambda a, b: timed(a, "at_a").cross_join(timed(b, "at_b").key_by("k"), name="op"),
    "apply, all ports": lambda a, b: a.topology.apply(Pairs(), name="op", a=a, b=b),
    "split": lambda a, b: a.union(b).split(name="op", even=lambda t: t.x % 2 == 0).even,
}  # fmt: skip
DIFFER: dict[str, Declare] = {
    "scan, reduce, fold, state=": lambda a, b: scanned(a.union(b)),
    "combine": lambda a, b: a.union(b).key_by("k").combine(Weighted(), name="op", schema={"n": int}),
    "aggregate first, last": lambda a, b: (
        both(a, b).key_by("k").aggregate(name="op", f=rel.first("x"), l=rel.last("x"))
    ),
    "aggregate emit=update": lambda a, b: a.union(b).key_by("k").aggregate(name="op", n=rel.sum("x"), emit="update"),
    "deduplicate": lambda a, b: a.union(b).key_by("k").deduplicate(name="op"),
    "window count=": lambda a, b: both(a, b).key_by("k").window(count=2).aggregate(name="op", n=rel.sum("x")),
    "join by arrival": lambda a, b: a.key_by("k").join(b.key_by("k"), name="op", by="arrival"),
    "join by arrival, symmetric": lambda a, b: a.key_by("k").join(
        b.key_by("k"), name="op", by="arrival", symmetric=True, how="full"
    ),
    "cross_join by arrival": lambda a, b: a.cross_join(b.key_by("k"), name="op", by="arrival"),
    "apply, any port": lambda a, b: a.topology.apply(Running(), name="op", a=a, b=b),
}


def arriving(declare: Declare, order: str) -> Counter[str]:
    """All of a, all of b, or half of a first; without queues, so all is through at a gate."""
    begins, goes_on = gates = testing.Gate(), testing.Gate()
    at = {"a first": len(A), "b first": 0, "b between": 2}[order]
    topology = rel.Topology("order")
    a = topology.source(testing.script([*A[:at], goes_on, *A[at:]], ROW), name="a")
    ends = testing.Gate()
    b = topology.source(testing.script([begins, *B, ends], ROW), name="b")
    declare(a, b).sink(rel.list(), name="out")
    job = rel.start(topology, ALONE)
    try:
        assert goes_on.wait_reached(PATIENCE)
        begins.open()
        assert ends.wait_reached(PATIENCE)
        for gate in (goes_on, ends):
            gate.open()
        return Counter(str(tuple(t)) for t in job.wait(PATIENCE)["out"])
    finally:
        for gate in (*gates, ends):
            gate.open()
        job.close()


@pytest.mark.parametrize("operator", SAME)
def test_the_result_is_the_same(operator: str) -> None:
    first = arriving(SAME[operator], "a first")
    assert first
    assert arriving(SAME[operator], "b first") == first
    assert arriving(SAME[operator], "b between") == first
    topology = rel.Topology("threads")
    a, b = (topology.source(rel.rows(rows, ROW), name=name) for name, rows in (("a", A), ("b", B)))
    SAME[operator](a, b).sink(rel.list(), name="out")
    for _ in range(3):
        assert Counter(str(tuple(t)) for t in rel.run(topology, QUEUES)["out"]) == first


@pytest.mark.parametrize("operator", DIFFER)
def test_the_order_of_arrival_decides(operator: str) -> None:
    """As the guide says; with the streams merged by time, or each with an event time, it doesn't."""
    assert arriving(DIFFER[operator], "a first") != arriving(DIFFER[operator], "b first")


def run_length(run: np.ndarray) -> np.ndarray:
    return np.full(len(run), len(run), np.dtype([("n", "<i8")]))


def test_a_function_of_frames_sees_runs_of_any_size() -> None:
    found = []
    for config in (rel.JobConfig(threads=rel.Threads(run_records=64), elasticity="off"), QUEUES):
        topology = rel.Topology("runs")
        source = topology.source(rel.sequence(1000), name="rows")
        source.map(run_length, name="op", schema={"n": int}).sink(rel.list(), name="out")
        found.append([t.n for t in rel.run(topology, config)["out"]])
    assert max(found[0]) > max(found[1])


def test_the_guide_names_each_of_them() -> None:
    folder = Path(__file__).parent
    page = (folder.parents[2] / "docs" / "reference" / "results_and_timing.md").read_text()
    tests = "\n".join(path.read_text() for path in folder.glob("test_*.py"))
    assert [name for name in re.findall(r"`(test_\w+)", page) if f"def {name}(" not in tests] == []
    named = re.findall(r"`(test_the_(?:result_is_the_same|order_of_arrival_decides))\[(.+?)\]`", page)
    assert {(test, name) for test, name in named} == {
        *(("test_the_result_is_the_same", name) for name in SAME),
        *(("test_the_order_of_arrival_decides", name) for name in DIFFER),
    }
