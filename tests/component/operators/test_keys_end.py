"""Keys that come once don't stay: in every keyed operator, in each mode, saved, restored and moved (A3)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.fluent.joining import JoinMethods
from rayelastic.fluent.keyed import KeyedMethods
from rayelastic.fluent.windowed import WindowedStream
from rayelastic.graph.spec.operator_spec import StateKind
from tests.component.operators.keys_once import (
    ALIVE,
    LIVES,
    OPERATORS,
    WITHOUT_END,
    Row,
    row_of,
)
from tests.component.rescale.rescaling import flows

pytestmark = pytest.mark.edges

PATIENCE = 60.0
KEY = b"0123456789abcdef"
KEYS = 4_000
MANUAL = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")


def topology_of(names: list[str], source: Any) -> rel.Topology:
    topology = rel.Topology("once")
    timed = topology.source(source, name="rows").event_time("at", name="time").key_by("key")
    for number, name in enumerate(names):
        OPERATORS[name](timed, f"op{number}").sink(rel.count(), name=f"out{number}")
    return topology


def at_gate(job: rel.Job, gate: testing.Gate, rows: int) -> Any:
    """The metrics when so many rows have gone through all operators."""
    assert gate.wait_reached(PATIENCE)
    while True:
        assert not job.status.state.is_final
        metrics = job.metrics()
        queued = sum(one.queued for pe in metrics.pes for one in pe.operators)
        if metrics.operator("time").tuples_in >= rows and queued == 0:
            return metrics


def test_keys_that_come_once_are_freed_in_all_operators() -> None:
    names = list(OPERATORS)
    gate = testing.Gate()
    topology = topology_of(names, testing.script([*map(row_of, range(KEYS)), gate], Row))
    job = rel.start(topology, MANUAL)
    try:
        metrics = at_gate(job, gate, KEYS)
        kept = {name: metrics.operator(f"op{number}").state_keys for number, name in enumerate(names)}
        gate.open()
        result = job.wait(PATIENCE)
    finally:
        job.close()
    assert {name: keys for name, keys in kept.items() if keys > ALIVE} == {}
    nothing = {"match", "count window aggregate", "count window combine"}
    given = {name: result[f"out{number}"] for number, name in enumerate(names)}
    assert {name for name, rows in given.items() if rows < KEYS} == nothing


def test_no_keyed_operator_is_left_out() -> None:
    """Each method that declares an operator with state of keys is tried above, or named with what ends its keys."""
    methods = {
        name
        for owner in (KeyedMethods, JoinMethods, WindowedStream)
        for name, member in vars(owner).items()
        if callable(member) and member.__name__ == name and not name.startswith("_")  # no second name
    }
    tried = {word for name in OPERATORS for word in name.replace(",", "").split()}
    assert methods - tried == set(WITHOUT_END) - {"cross_join", "fold"}
    topology = topology_of(list(OPERATORS), rel.rows([row_of(0)]))
    stateless = [
        name
        for number, name in enumerate(OPERATORS)
        if topology.operators[f"op{number}"].state_kind is not StateKind.PARTITIONED
    ]
    assert stateless == []


FREED = [
    "process forgets, python",
    "process ttl, python",
    "process ttl, compiled",
    "window fold",
    "session collect",
    "batch top",
    "map values",
    "count window aggregate",
    "apply",
    "join as of a time",
    "window aggregate, assigned",
    "apply, two inputs",
]
RUN = dict.fromkeys(FREED, 310) | {
    "map values": 560,
    "apply": 560,
    "apply, two inputs": 560,
}  # a run sees the watermark before it
NOT_SHOWN = {"process ttl, compiled", "count window aggregate", "join as of a time", "window aggregate, assigned"}
SHOWN = [name for name in FREED if name not in NOT_SHOWN]  # by job.state


def test_a_key_that_was_freed_stays_so_in_snapshots(tmp_path: Path) -> None:
    rows = [row_of(number) for number in range(3000)]
    gate = testing.Gate()
    job = rel.start(topology_of(FREED, testing.script([*rows, gate], Row)), MANUAL)
    snapshot = rel.Snapshot(tmp_path / "snapshot", key=KEY)
    try:
        at_gate(job, gate, len(rows))
        shown = [f"op{number}" for number, name in enumerate(FREED) if name in SHOWN]
        live = [len(list(job.state(operator).keys(limit=10_000))) for operator in shown]
        job.stop(snapshot)
    finally:
        job.close()
    assert {name: keys for name, keys in zip(SHOWN, live, strict=True) if not 290 <= keys <= RUN[name]} == {}
    gate = testing.Gate()
    rows += [row_of(number) for number in range(3000, 3400)]
    job = rel.start(topology_of(FREED, testing.script([*rows, gate], Row)), MANUAL, restore=snapshot)
    try:
        metrics = at_gate(job, gate, 400)
        kept = [metrics.operator(f"op{number}").state_keys for number in range(len(FREED))]
        gate.open()
        result = job.wait(PATIENCE)
    finally:
        job.close()
    assert [keys <= ALIVE for keys in kept] == [True] * len(FREED), dict(zip(FREED, kept, strict=True))
    assert 400 + 290 <= result["out0"] <= 400 + 310, "those alive when it was saved, and those that came behind"


class Endless:
    """Keys that come once, until the test ends it."""

    def __init__(self) -> None:
        self.given = 0
        self.enough = threading.Event()

    def __call__(self) -> Iterator[Row]:
        while not self.enough.is_set():
            yield row_of(self.given)
            self.given += 1


@pytest.mark.parametrize("name", ["process forgets, python", "join as of a time"])
def test_a_key_that_was_freed_does_not_go_to_another_replica(name: str) -> None:
    feed = Endless()
    topology = rel.Topology("moved")
    timed = topology.source(rel.callable(feed, Row), name="rows").event_time("at", name="time").key_by("key")
    OPERATORS[name](timed, "told").sink(rel.count(), name="out")
    job = rel.start(topology, rel.JobConfig(regions="manual", elasticity="off"))
    try:
        region = job.plan().region_of("told").region
        for replicas in (2, 3, 1):
            flows(job)
            assert job.rescale(region.name, replicas).region(region.name).replicas == replicas
        flows(job)
        feed.enough.set()
        result = job.wait(PATIENCE)
        kept = job.metrics().operator("told").state_keys
    finally:
        feed.enough.set()
        job.close()
    assert result["out"] == feed.given
    assert kept == 0


# --- a million keys ---------------------------------------------------------------------------------------------------


MILLION = 1_000_000
GROWTH = 24 << 20  # bytes from a quarter of the keys on: 32 a key


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", OPERATORS)
def test_memory_is_flat_over_a_million_keys(name: str) -> None:
    sizes: list[int] = []

    def rows() -> Iterator[Row]:
        for number in range(MILLION):
            if number in (MILLION // 4, MILLION - 1):
                sizes.append(resident())
            yield row_of(number)

    result = rel.run(topology_of([name], rel.callable(rows, Row)), MANUAL)
    kept = result.metrics.operator("op0").state_keys
    assert sizes[1] - sizes[0] < GROWTH, f"{sizes[0] >> 20} MiB at {MILLION // 4:,} keys, {sizes[1] >> 20} at the end"
    assert kept <= ALIVE


def test_lives_are_those_of_the_rows() -> None:
    assert row_of(LIVES).at - row_of(0).at == 2 * LIVES
