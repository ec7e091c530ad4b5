"""Any graph of operators with ports gives the same tuples, whatever the threads, the threading models and the lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rayelastic as rel

COUNT = 400
CONFIGS = [
    rel.JobConfig(threads=rel.Threads(count=1, model="manual")),
    rel.JobConfig(threads=rel.Threads(count=2, model="dynamic", queue_records=64, run_records=64)),
    rel.JobConfig(threads=rel.Threads(count=8, model="dynamic", queue_records=64, run_records=64)),
    rel.JobConfig(threads=rel.Threads(count=2, model="dedicated")),
    rel.JobConfig(pes=2, threads=2),
]


class Item(NamedTuple):
    n: int


class Seen(NamedTuple):
    left: int = 0
    right: int = 0


@rel.operator(inputs={"a": Item, "b": Item}, outputs={"even": Item, "odd": Item}, stateless=True)
class Mixed:
    """Takes what comes, gives by two ports."""

    def invoke(self, port: str, t: Any) -> Iterator[Any]:
        n = t.n + (port == "b")
        yield rel.to("odd" if n % 2 else "even", Item(n))


@rel.operator(inputs={"a": rel.exactly(2, Item), "b": rel.exactly(3, Item)}, outputs=Item)
class Barrier:
    """Counts its firings and what is left: which tuples meet depends on the order between united streams."""

    def invoke(self, a: list[Item], b: list[Item]) -> Iterator[Item]:
        yield Item(len(a) + len(b))

    def drain(self, a: list[Item], b: list[Item]) -> Iterator[Item]:
        for _ in (*a, *b):
            yield Item(1)


@rel.operator(inputs={"left": Item, "right": Item}, outputs={"both": Item}, state=Seen)
class Both:
    """Gives one tuple for each that meets the other side."""

    def invoke(self, port: str, t: Any, s: Any) -> Iterator[Item]:
        setattr(s, port, getattr(s, port) + 1)
        if (s.left if port == "left" else s.right) <= (s.right if port == "left" else s.left):
            yield Item(t.n)


def failing(t: Item) -> Item:
    if t.n % 11 == 0:
        raise ValueError("eleven")
    return Item(t.n + 3)


KINDS = ["mixed", "barrier", "both", "turns", "hash", "predicates", "divert", "skip", "loop", "map"]


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, int, int, str]]:
    """(kind, number of the first input stream, of the second, lane), each counted from the latest stream."""
    one = st.tuples(
        st.sampled_from(KINDS), st.integers(0, 5), st.integers(0, 5), st.sampled_from(["compiled", "python"])
    )
    return draw(st.lists(one, min_size=1, max_size=6))


def built(drawn: list[tuple[str, int, int, str]]) -> rel.Topology:
    topology = rel.Topology("random")
    table = pa.table({"n": pa.array(range(COUNT), pa.int64())})
    streams: list[Any] = [topology.source(rel.arrow(table, Item), name=name) for name in ("s0", "s1")]
    for number, (kind, first, second, lane) in enumerate(drawn):
        name = f"{kind}{number}"
        a, b = streams[-1 - first % len(streams)], streams[-1 - second % len(streams)]
        streams += made(topology, kind, name, a, b, lane)
    for number, stream in enumerate(streams):
        stream.sink(rel.list(), name=f"out{number}")
    return topology


def made(topology: rel.Topology, kind: str, name: str, a: Any, b: Any, lane: Any) -> list[Any]:
    if kind == "mixed":
        return list(topology.apply(Mixed(), name=name, a=a, b=b))
    if kind == "barrier":
        return [topology.apply(Barrier(), name=name, a=a, b=b)]
    if kind == "both":
        return [topology.apply(Both(), name=name, left=a.key_by("n"), right=b.key_by("n"))]
    if kind == "turns":  # which tuple gets which turn depends on the order between united streams: counted only
        return [
            s.map(lambda t: Item(0 * t.n), name=f"{name}_{i}", schema=Item) for i, s in enumerate(a.split(2, name=name))
        ]
    if kind == "hash":
        return list(a.key_by("n").split(3, name=name))
    if kind == "predicates":
        return list(a.split(name=name, small=lambda t: t.n < 100, odd=lambda t: t.n % 2 == 1, lane=lane))
    if kind == "divert":
        good = a.map(failing, name=name, schema=Item, lane=lane, on_error="divert")
        return [good, good.errors.map(lambda t: Item(t.n), name=f"{name}_bad", schema=Item)]
    if kind == "skip":
        return [a.filter(lambda t: 12 // (t.n % 5) > 3, name=name, lane=lane, on_error="skip")]
    if kind == "loop":
        again = topology.feedback(name=f"{name}_again", like=a)
        parts = a.union(again).split(name=name, more=lambda t: t.n > 9, lane=lane)
        again.close(parts.more.map(lambda t: Item(t.n // 2), name=f"{name}_less", schema=Item, lane=lane))
        return [parts.rest]
    return [a.map(lambda t: Item(t.n + 1), name=name, schema=Item, lane=lane)]


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps())
def test_any_graph_gives_the_same_tuples(drawn: list[tuple[str, int, int, str]]) -> None:
    results = []
    for config in CONFIGS:
        result = rel.run(built(drawn), config)
        results.append({name: Counter(t.n for t in result[name]) for name in result})
    for config, tuples in zip(CONFIGS[1:], results[1:], strict=True):
        assert tuples == results[0], config
