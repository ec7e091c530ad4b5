"""Sources of users that are polled: rows once, from where they were, whatever is lost; their faults are told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors.inputs import Input
from rayelastic.connectors.polled.reader import Poller
from rayelastic.errors import JobFailedError, SourceError
from rayelastic.job import LocalControl, prepare
from rayelastic.job.job import Job
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.values.failure import Failure
from tests.raising import raises

PATIENCE = 60.0
ROWS = 300  # of a partition
ALL = sorted((name, n) for name in ("a", "b") for n in range(ROWS))


class Numbers:
    """Rows (partition, n), seven a poll, with a pause at some of them: at a gate, or for want of rows."""

    idle = 0.01

    def __init__(self, gates: dict[int, testing.Gate] | None = None, names: tuple[str, ...] = ("a", "b")) -> None:
        self.gates, self.names = gates or {}, names
        self.opened: list[tuple[str, Any]] = []
        self.closed: list[str] = []

    def __deepcopy__(self, memo: object) -> Numbers:
        """The test looks at the one that each start has."""
        return self

    def partitions(self) -> Iterator[str]:
        return iter(self.names)

    def open(self, partition: str, position: Any) -> Part:
        self.opened.append((partition, position and dict(position)))
        return Part(self, partition, position or {"next": 0})


class Part:
    def __init__(self, of: Numbers, name: str, position: dict[str, int]) -> None:
        self.of, self.name, self.position = of, name, position

    def poll(self) -> list[tuple[str, int]] | None:
        first = self.position["next"]
        for at, gate in self.of.gates.items():
            if self.name == "b" and first <= at < first + 7 and not gate.is_open:
                gate._reached.set()
                return []
        if first >= ROWS:
            return None
        self.position["next"] = min(ROWS, first + 7)
        return [(self.name, n) for n in range(first, self.position["next"])]

    def close(self) -> None:
        self.of.closed.append(self.name)


SCHEMA = {"name": str, "n": int}


def topology_of(source: Any) -> rel.Topology:
    topology = rel.Topology("polled")
    rows = topology.source(rel.polled(source, SCHEMA), name="rows")
    rows.map(lambda t: (t.name, t.n), name="slow", schema=SCHEMA, lane="python").sink(rel.list(), name="out")
    return topology


def test_all_rows_come_in_the_order_of_each_partition() -> None:
    source = Numbers()
    out = [tuple(t) for t in rel.run(topology_of(source))["out"]]
    assert sorted(out) == ALL
    assert [n for name, n in out if name == "a"] == list(range(ROWS))
    assert sorted(source.closed) == ["a", "b"]


def test_arrow_batches_are_taken() -> None:
    class One:
        position = 0

        def poll(self) -> pa.RecordBatch | None:
            self.position += 1
            return pa.RecordBatch.from_pydict({"n": [1, 2], "name": ["x", None]}) if self.position == 1 else None

    class Source:
        def partitions(self) -> list[str]:
            return ["one"]

        def open(self, partition: str, position: Any) -> One:
            return One()

    topology = rel.Topology("arrow")
    topology.source(rel.polled(Source(), {"name": str | None, "n": int}), name="rows").sink(rel.list(), name="out")
    assert [tuple(t) for t in rel.run(topology)["out"]] == [("x", 1), (None, 2)]


def test_a_job_goes_back_and_opens_its_partitions_where_they_were(tmp_path: Path) -> None:
    gates = {100: testing.Gate(), 200: testing.Gate()}
    source = Numbers(gates)
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "checkpoints", every=600.0))
    topology = topology_of(source)
    coordinator = Coordinator(prepare(topology, config), InProcessHost())
    job = Job("polled", LocalControl(coordinator), topology)
    job._start()
    try:
        for gate in gates.values():
            assert gate.wait_reached(PATIENCE)
            coordinator._checkpoints.loop.take()  # type: ignore[union-attr]
            before = job.status.checkpoints
            coordinator._lose(Failure("PE pe0 was lost"))
            while job.status.checkpoints.restarts == before.restarts or len(source.opened) % 2:
                job.pause(0.01)
            gate.open()
        assert sorted(tuple(t) for t in job.wait(PATIENCE)["out"]) == ALL
    finally:
        for gate in gates.values():
            gate.open()
        job.close()
    assert job.status.checkpoints.restarts == 2
    assert any(position and position["next"] > 0 for _, position in source.opened)


def test_a_partition_that_has_ended_is_not_opened_again(tmp_path: Path) -> None:
    gate = testing.Gate()
    job = rel.start(topology_of(Numbers({100: gate})))
    assert gate.wait_reached(PATIENCE)
    while job.metrics().operator("out").tuples_in < ROWS + 98:
        job.pause(0.01)
    left = [tuple(t) for t in job.stop(tmp_path / "saved")["out"]]
    later = Numbers()
    out = [tuple(t) for t in rel.run(topology_of(later), restore=tmp_path / "saved")["out"]]
    assert sorted(left + out) == ALL
    assert later.opened == [("b", {"next": 98})]


def test_new_partitions_are_begun_and_a_source_without_rows_is_stopped() -> None:
    class Growing(Numbers):
        names: tuple[str, ...] = ()

        def partitions(self) -> Iterator[str]:
            self.names = (*self.names, str(len(self.names))) if len(self.names) < 3 else self.names
            return iter(self.names)

    job = rel.start(topology_of(Growing({ROWS + 1: testing.Gate()}, ())))
    assert sorted({t.name for t in job.wait(PATIENCE)["out"]})[0] == "0"
    gate = testing.Gate()
    job = rel.start(topology_of(Numbers({0: gate})))
    assert gate.wait_reached(PATIENCE)
    job.cancel(drain=False)
    while any(thread.name == "feed-rows" for thread in threading.enumerate()):
        job.pause(0.01)
    job.close()


class Wrong(Numbers):
    def __init__(self, poll: Any, position: Any = 0) -> None:
        super().__init__(names=("a",))
        self.poll, self.position = poll, position

    def open(self, partition: str, position: Any) -> Any:
        return self


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (Wrong(lambda: [(1, 2, 3)]), "2 fields"),
        (Wrong(lambda: "text"), "str"),
        (Wrong(lambda: 1 / 0), "ZeroDivisionError"),
        (Wrong(lambda: [("a", None)]), "'n'"),
        (Wrong(lambda: [("a", "b")]), "Arrow"),
        (Wrong(lambda: [("a", 1)], position=object()), "partition 'a'"),
        (Numbers(names=(3,)), "3"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_fails_the_job_by_name(source: Any, problem: str) -> None:
    with raises(JobFailedError, "source-failed", problem):
        rel.run(topology_of(source))


@pytest.mark.parametrize(("source", "problem"), [(Numbers, "class"), (object(), "partitions()")])
def test_an_object_without_the_methods_is_refused(source: Any, problem: str) -> None:
    with raises(SourceError, "missing-method", problem):
        rel.run(topology_of(source))
    slow = Numbers()
    slow.idle = -1
    with raises(SourceError, "out-of-range"):
        rel.run(topology_of(slow))


class Feeder:
    """Takes all that comes."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = []
        self.marks: list[tuple[int, str]] = []
        self.finished, self.failure = False, ""

    def push(self, batch: pa.RecordBatch) -> bool:
        self.rows += [(row["name"], row["n"]) for row in batch.to_pylist()]
        return True

    def mark_split(self, split: int, change: str) -> None:
        self.marks.append((split, change))

    def finish(self) -> None:
        self.finished = True

    def fail(self, message: str) -> None:
        self.failure = message


class Fives:
    """Rows of two partitions, five a poll; the object changes the position that it was given."""

    ends = 23

    def partitions(self) -> list[str]:
        return ["a", "b"]

    def open(self, partition: str, position: Any) -> Any:
        class Part:
            def __init__(self) -> None:
                self.position = [0] if position is None else position

            def poll(part) -> list[tuple[str, int]] | None:
                first = part.position[0]
                part.position[0] = min(self.ends, first + 5)
                return [(partition, n) for n in range(first, part.position[0])] or None

        return Part()


def poller(source: Fives) -> tuple[Poller, Feeder]:
    feeder = Feeder()
    return Poller("rows", rel.polled(source, {"name": str, "n": int}), feeder), feeder  # type: ignore[arg-type]


@pytest.mark.parametrize("given", range(2 * Fives.ends + 1))
def test_a_polled_source_goes_on_within_a_poll(given: int) -> None:
    first, fed = poller(Fives())
    first.feed()
    for before in range(0, given, 3):
        first.position(before)
    saved = Input("", position=first.position(given))
    second, rest = poller(Fives())
    second.seek(given, saved)
    second.feed()
    assert (fed.finished, rest.finished, rest.failure) == (True, True, "")
    assert sorted(fed.rows[:given] + rest.rows) == sorted(fed.rows)
    middle = len(rest.rows) // 2
    third, last = poller(Fives())
    third.seek(0, Input("", position=second.position(middle)))
    third.feed()
    assert sorted(fed.rows[:given] + rest.rows[:middle] + last.rows) == sorted(fed.rows)


def test_a_polled_source_that_is_shorter_than_it_was_is_refused() -> None:
    first, _ = poller(Fives())
    first.feed()
    shorter = Fives()
    shorter.ends = 1
    second, fed = poller(shorter)
    second.seek(0, Input("", position=first.position(3)))
    second.feed()
    assert "partition 'a' ended 2 rows before its last position" in fed.failure
