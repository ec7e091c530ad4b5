"""Operators whose state belongs to no key go back to a checkpoint with it: delays, switches, gates, classes, splits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError, StateError
from rayelastic.fluent.stream import Stream
from tests.component.checkpoint.test_checkpoints import Losing
from tests.raising import raises

PATIENCE = 60.0


class Row(NamedTuple):
    n: int
    text: str | None


ROWS = [Row(n, None if n % 7 == 0 else f"a text of row number {n}" if n % 2 else "short") for n in range(600)]
CUTS = (200, 401)


class Numbered(NamedTuple):
    number: int
    n: int
    text: str | None


@rel.operator(outputs={"out": Numbered})
class Attributes:
    """Keeps everything in attributes; what it opens can't be pickled."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def initialize(self) -> None:
        self.lock = threading.Lock()
        self.count = 0

    def invoke(self, t: Row) -> Iterator[Numbered]:
        with self.lock:
            self.count += 1
            self.seen.append(t.n)
            yield Numbered(self.count + sum(self.seen[-3:]), t.n, t.text)


@rel.operator(outputs={"out": Numbered})
class Pair:
    """Says what it keeps."""

    __slots__ = ("lock", "passed")

    def __init__(self) -> None:
        self.passed = 0

    def initialize(self) -> None:
        self.lock = threading.Lock()

    def invoke(self, t: Row) -> Iterator[Numbered]:
        self.passed += 1
        yield Numbered(self.passed, t.n, t.text)

    def snapshot(self) -> dict[str, int]:
        return {"passed": self.passed}

    def restore(self, kept: dict[str, int]) -> None:
        self.passed = kept["passed"]


@rel.operator(inputs={"one": rel.exactly(1), "two": rel.exactly(2)}, outputs={"out": Numbered})
class Barrier:
    """Waits for a row and two numbers, of which there are more than fit into its queue."""

    def __init__(self) -> None:
        self.fired = 0

    def invoke(self, one: list[Row], two: list[Any]) -> Iterator[Numbered]:
        self.fired += 1
        yield Numbered(self.fired + 10 * two[0].value + 1000 * two[1].value, one[0].n, one[0].text)


def delayed(rows: Stream) -> Stream:
    return rows.delay(name="wait", seconds=1.5)


def switched(rows: Stream) -> Stream:
    return rows.switch(rows.filter(lambda t: t.n == ROWS[-1].n, name="last"), lambda t: True, name="wait", start=False)


def gated(rows: Stream) -> Stream:
    return rows.gate(rows.filter(lambda t: t.n % 5 == 0, name="some"), name="wait", most=3)


def waiting(rows: Stream) -> Any:
    topology = rows.topology
    assert isinstance(topology, rel.Topology)
    return topology.apply(Barrier(), name="wait", one=rows, two=topology.source(rel.sequence(200_000), name="numbers"))


def in_turns(rows: Stream) -> Stream:
    first, *others = rows.split(3, name="deal")
    for number, other in enumerate(others):
        other.sink(rel.count(), name=f"other {number}")
    return first


BUILT: dict[str, Callable[[Stream], Stream]] = {
    "delay": delayed,
    "switch": switched,
    "gate": gated,
    "attributes": lambda rows: rows.apply(Attributes(), name="wait"),
    "snapshot and restore": lambda rows: rows.apply(Pair(), name="wait"),
    "barrier": waiting,
    "split": in_turns,
}


def declare(built: str, source: Any) -> rel.Topology:
    topology = rel.Topology("whole")
    BUILT[built](topology.source(source, name="rows")).sink(rel.list(), name="out")
    return topology


def expected(built: str) -> list[tuple[Any, ...]]:
    return [tuple(t) for t in rel.run(declare(built, rel.rows(ROWS, schema=Row)))["out"]]


def in_order(built: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Between two inputs of an operator there is no order."""
    return sorted(rows, key=repr) if built in ("switch", "gate") else rows


@pytest.mark.parametrize("built", BUILT)
def test_they_go_back_to_a_checkpoint(built: str, tmp_path: Path) -> None:
    gates = [testing.Gate(), testing.Gate()]
    script = testing.script([*ROWS[: CUTS[0]], gates[0], *ROWS[CUTS[0] : CUTS[1]], gates[1], *ROWS[CUTS[1] :]], Row)
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    made = Losing(declare(built, script), config)
    try:
        for number, gate in enumerate(gates, 1):
            assert gate.wait_reached(PATIENCE)
            made.take()
            counted = made.job.status.checkpoints
            assert (counted.taken, counted.abandoned, counted.problem) == (number, 0, "")
            made.lose(gate)
        out = [tuple(t) for t in made.job.wait(PATIENCE)["out"]]
        assert made.job.status.checkpoints.restarts == 2
    finally:
        for gate in gates:
            gate.open()
        made.job.close()
    assert in_order(built, out) == in_order(built, expected(built))


@pytest.mark.parametrize("built", BUILT)
def test_they_are_stopped_and_go_on(built: str, tmp_path: Path) -> None:
    gate = testing.Gate()
    job = rel.start(declare(built, testing.script([*ROWS[: CUTS[1]], gate], Row)))
    try:
        assert gate.wait_reached(PATIENCE)
        saved = rel.Snapshot(tmp_path / "saved", key=b"0123456789abcdef")
        out = [tuple(t) for t in job.stop(saved)["out"]]
    finally:
        gate.open()
        job.close()
    out += [tuple(t) for t in rel.run(declare(built, rel.rows(ROWS, schema=Row)), restore=saved)["out"]]
    assert in_order(built, out) == in_order(built, expected(built))


def test_an_attribute_that_cannot_be_pickled_is_named_and_the_job_goes_on(tmp_path: Path) -> None:
    @rel.operator(outputs={"out": Row})
    class Opens:
        def invoke(self, t: Row) -> list[Row]:
            self.opened = threading.Lock()
            return [t]

    gate, topology = testing.Gate(), rel.Topology("opens")
    topology.source(testing.script([*ROWS[:50], gate, *ROWS[50:]], Row), name="rows").apply(Opens(), name="keeps").sink(
        rel.count(), name="out"
    )
    job = rel.start(topology)
    try:
        assert gate.wait_reached(PATIENCE)
        with raises(StateError, "not-saveable", "Opens", operator="keeps"):
            job.snapshot(rel.Snapshot(tmp_path / "saved", key=b"0123456789abcdef"))
        gate.open()
        assert job.wait(PATIENCE)["out"] == len(ROWS)
    finally:
        gate.open()
        job.close()


def test_one_of_the_pair_alone_is_refused() -> None:
    with raises(GraphError, "missing-method"):

        @rel.operator(outputs={"out": Row})
        class Half:
            def invoke(self, t: Row) -> list[Row]:
                return [t]

            def snapshot(self) -> int:
                return 1
