"""With all defaults, functions and classes without state get replicas on several nodes, anywhere in a graph."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel

pytestmark = [pytest.mark.alone, pytest.mark.timeout(240)]

ANSWER = 0.002  # seconds that each tuple waits for its answer
NODES, CPUS = 3, 4
ROWS = 40_000  # of each source: more than can be answered before all shapes have replicas
PATIENCE = 90.0  # seconds, beside other work
KEYS = 7


class Row(NamedTuple):
    part: int
    value: int


@pytest.fixture
def nodes(no_ray: None) -> Iterator[str]:
    """Several raylets of this machine."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": CPUS})
    try:
        for _ in range(NODES - 1):
            cluster.add_node(num_cpus=CPUS)
        cluster.wait_for_nodes()
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


def newest(t: Row, s: dict[str, int]) -> Row:
    s["n"] = s.get("n", 0) + 1
    return t


class Seen(dict[str, int]):
    """How many tuples of a key came."""


Source = Callable[[str, int], Any]


def throttled(source: Source) -> Any:
    return source("throttled", 1).throttle(1e7, name="throttle")


def split(source: Source) -> Any:
    even, odd = source("split_rows", 1).split(2, name="split")
    odd.sink(rel.count(), name="odd")
    return even


def union(source: Source) -> Any:
    return source("left", 0).union(source("right", 1))


def keyed(source: Source) -> Any:
    kept = source("keyed_rows", KEYS).key_by("part").map(newest, name="keyed", state=Seen, schema=Row, lane="python")
    return kept.map(lambda t: Row(t.part + 0, t.value), name="rekey", schema=Row, lane="python")


def joined(source: Source) -> Any:
    names = source("names", -1).filter(lambda t: t.value < KEYS, name="few").key_by("value")
    each = source("join_rows", KEYS).key_by("part").join(names, name="join", how="left")
    return each.map(lambda t: Row(t.part, t.value), name="narrow", schema=Row)


def loose(source: Source) -> Any:
    return source("loose_rows", 1)


def by_key(source: Source) -> Any:
    return source("kept_rows", KEYS).key_by("part")


ORDERED = {"loose": False, "by_key": "key", "throttle": True}
SHAPES: dict[str, Callable[[Source], Any]] = {
    "throttle": throttled, "split": split, "union": union, "keyed": keyed, "join": joined,
    "loose": loose, "by_key": by_key,
}  # fmt: skip


@pytest.mark.parametrize(
    "shapes",
    [
        ("union", "split"),
        pytest.param(("loose", "by_key"), marks=pytest.mark.nightly),
        pytest.param(("throttle", "keyed", "join"), marks=pytest.mark.nightly),
    ],
)
def test_shapes_get_replicas_by_themselves_and_lose_nothing_under_a_kill(
    nodes: str, tmp_path: Path, shapes: tuple[str, ...]
) -> None:
    enough = tmp_path / "enough"

    def answered(t: Row) -> Row:
        if not enough.exists():
            threading.Event().wait(ANSWER)
        return t

    @rel.operator(outputs=Row, stateless=True)
    class Ask:
        def invoke(self, t: Row) -> Iterator[Row]:
            yield answered(t)

    topology = rel.Topology("shapes")

    def source(name: str, parts: int) -> Any:
        if parts == -1:
            return topology.source(rel.generate(lambda n: Row(0, n), ROWS, schema=Row), name=name)
        if parts in (0, 1):
            return topology.source(rel.generate(lambda n: Row(parts, n), ROWS, schema=Row), name=name)
        return topology.source(rel.generate(lambda n: Row(n % parts, n), ROWS, schema=Row), name=name)

    for shape in shapes:
        asked = SHAPES[shape](source)
        if shape == "split":
            asked = asked.apply(Ask(), name=f"ask_{shape}")
        else:
            ordered: Any = ORDERED.get(shape)
            asked = asked.map(answered, name=f"ask_{shape}", schema=Row, lane="python", ordered=ordered)
        asked.sink(rel.list(), name=f"out_{shape}")
    job = rel.submit(topology, address=nodes)
    try:
        until, missing = time.monotonic() + PATIENCE, set(shapes)
        while missing:
            plan = job.plan()
            missing -= {shape for shape in missing if plan.region_of(f"ask_{shape}").replicas > 1}
            assert not job.status.state.is_final, job.status
            told = "\n".join(str(one) for one in job.adaptations(every_pass=True) if one.pe == "regions")
            assert time.monotonic() < until, f"{missing} in\n{told}"
            job.pause(0.5)
        victim = next(pe for pe in job.status.pes if pe.pe != "pe0")
        os.kill(victim.pid, signal.SIGKILL)
        enough.touch()
        results = job.wait(timeout=PATIENCE)
    finally:
        enough.touch()
        job.close()
    for shape in shapes:
        by_part: dict[int, list[int]] = {}
        for t in results[f"out_{shape}"]:
            by_part.setdefault(t.part, []).append(t.value)
        if shape == "split":
            assert by_part == {1: list(range(0, ROWS, 2))}
        elif shape == "loose":
            assert sorted(by_part[1]) == list(range(ROWS))
        elif shape in ("keyed", "join", "by_key"):
            assert by_part == {part: list(range(part, ROWS, KEYS)) for part in range(KEYS)}
        else:
            assert by_part == {part: list(range(ROWS)) for part in ([0, 1] if shape == "union" else [1])}
