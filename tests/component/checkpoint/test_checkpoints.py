"""Checkpoints of running jobs, in this process: with replicas, while these change, and the way back to one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import JobCancelledError, JobFailedError
from rayelastic.job import LocalControl, prepare
from rayelastic.job.job import Job
from rayelastic.runtime.checkpoint.protocol import is_empty
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import State
from rayelastic.web.events import EventKind
from rayelastic.web.sampling import Sampler
from tests.component.rescale.rescaling import Counted, Event, Events, Feed, Seen, check, count, flows, topology_of
from tests.waiting import wait_until

PATIENCE = 60.0
KEYS, ROWS = 200, 6000


def counting(rows: Any) -> rel.Topology:
    topology = rel.Topology("rescaled")
    keyed = topology.source(rows, name="events").key_by("key")
    keyed.map(count, name="count", state=Seen, schema=Counted, lane="compiled").sink(rel.list(), name="out")
    return topology


def test_a_job_with_three_replicas_is_stopped_and_goes_on_with_one_and_with_five(tmp_path: Path) -> None:
    feed, first, second = Events(KEYS, ROWS), testing.Gate(), testing.Gate()
    given, config = feed.given, rel.JobConfig(regions="manual", elasticity="off")
    rows = testing.script([*given[:2000], first, *given[2000:4000], second], Event)
    job = rel.start(counting(rows), config)
    try:
        assert first.wait_reached(PATIENCE)
        assert job.rescale("r1", 3).region("r1").replicas == 3
        first.open()
        assert second.wait_reached(PATIENCE)
        left = list(job.stop(tmp_path / "saved")["out"])
    finally:
        first.open()
        second.open()
        job.close()
    third = testing.Gate()
    rows = testing.script([*given[:5000], third, *given[5000:]], Event)
    job = rel.start(counting(rows), config, restore=tmp_path / "saved")
    try:
        assert third.wait_reached(PATIENCE)
        assert job.plan().region("r1").replicas == 1
        assert job.rescale("r1", 5).region("r1").replicas == 5
        third.open()
        check([*left, *job.wait(PATIENCE)["out"]], feed)
    finally:
        third.open()
        job.close()


def test_the_page_has_a_marker_for_each_checkpoint(tmp_path: Path) -> None:
    feed = Feed(KEYS)
    job = rel.start(topology_of(feed, "compiled"), rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path, every=0.2)))
    try:
        sampler = Sampler(job)
        while not any(event.kind is EventKind.CHECKPOINT for event in sampler.history.events):
            assert not sampler.over
            flows(job)
            sampler.keep(sampler.read())
        feed.enough.set()
        job.wait(PATIENCE)
    finally:
        feed.enough.set()
        job.close()


def test_checkpoints_and_changes_of_replicas_take_turns(tmp_path: Path) -> None:
    feed = Feed(KEYS)
    config = rel.JobConfig(
        regions="manual", elasticity="off", checkpoint=rel.Checkpoint(tmp_path / "checkpoints", every=0.2)
    )
    job = rel.start(topology_of(feed, "compiled"), config)
    try:
        for replicas in (2, 3, 1):
            before = job.status.checkpoints.taken
            while job.status.checkpoints.taken == before:
                assert not job.status.state.is_final
                flows(job)
            assert job.rescale("r1", replicas).region("r1").replicas == replicas
        feed.enough.set()
        check(job.wait(PATIENCE)["out"], feed)
        assert job.status.checkpoints.abandoned == 0
        blobs = len(list((tmp_path / "checkpoints" / "rows").iterdir()))
        assert blobs <= 2 * job.status.checkpoints.taken.bit_length()  # those of two checkpoints
        assert len(list((tmp_path / "checkpoints").glob("0*"))) == 2  # that many are kept
    finally:
        feed.enough.set()
        job.close()


class Losing:
    """A job in this process that loses an element when told to; as its watcher would tell."""

    def __init__(self, topology: rel.Topology, config: rel.JobConfig) -> None:
        self.coordinator = Coordinator(prepare(topology, config), InProcessHost())
        self.job = Job("losing", LocalControl(self.coordinator), topology)
        self.job._start()

    def take(self) -> None:
        wait_until(self.job, lambda: self.job.status.state is State.RUNNING)  # its new elements run already
        assert self.coordinator._checkpoints is not None
        self.coordinator._checkpoints.loop.take()

    def lose(self, gate: testing.Gate) -> None:
        """Loses an element while its source stands at a gate, which is opened then."""
        before = self.job.status.checkpoints.restarts
        self.coordinator._lose(Failure("PE pe1 was lost"))
        wait_until(self.job, lambda: self.job.status.checkpoints.restarts != before)
        gate.open()


@pytest.fixture
def losing(tmp_path: Path) -> Iterator[tuple[Losing, Feed, list[testing.Gate]]]:
    """Its source stops at 2,000 and at 4,000 events, each time that it comes there, until the gate is opened."""
    feed, gates = Events(KEYS, ROWS), [testing.Gate(), testing.Gate()]
    given = feed.given
    rows = testing.script([*given[:2000], gates[0], *given[2000:4000], gates[1], *given[4000:]], Event)
    config = rel.JobConfig(
        pes={"events": 0, "count": 1, "out": 2}, checkpoint=rel.Checkpoint(tmp_path / "checkpoints", every=600.0)
    )
    made = Losing(counting(rows), config)
    yield made, feed, gates
    for gate in gates:
        gate.open()
    made.job.close()


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_a_job_goes_back_to_its_last_checkpoint(
    losing: tuple[Losing, Feed, list[testing.Gate]], taken: int, tmp_path: Path
) -> None:
    made, feed, gates = losing
    for number, gate in enumerate(gates):
        assert gate.wait_reached(PATIENCE)
        if number < taken:
            made.take()
            assert made.job.status.checkpoints.taken == number + 1
        made.lose(gate)
    check(made.job.wait(PATIENCE)["out"], feed)
    assert made.job.status.checkpoints.restarts == 2
    assert made.job.status.checkpoints.called_again == ("events",)


@pytest.mark.parametrize("damaged", ["manifest.json", "*.state"])
def test_of_two_checkpoints_the_earlier_one_counts_if_the_newer_is_damaged(
    losing: tuple[Losing, Feed, list[testing.Gate]], damaged: str, tmp_path: Path
) -> None:
    made, feed, gates = losing
    for gate in gates:
        assert gate.wait_reached(PATIENCE)
        made.take()
        if gate is gates[0]:
            gate.open()
    newest = max((tmp_path / "checkpoints").glob("0*"))
    for file in newest.glob(damaged):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    made.lose(gates[1])
    check(made.job.wait(PATIENCE)["out"], feed)


def test_an_element_that_has_ended_takes_part(tmp_path: Path) -> None:
    gate = testing.Gate()
    topology = rel.Topology("ends")
    topology.source(rel.rows([(n,) for n in range(10)], schema={"n": int}), name="few").sink(rel.list(), name="first")
    many = topology.source(testing.script([*([(n,) for n in range(100)]), gate, (100,)], {"n": int}), name="many")
    many.sink(rel.parquet(str(tmp_path / "out")), name="second")
    config = rel.JobConfig(pes={"few": 0, "many": 1}, checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    made = Losing(topology, config)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until(made.job, lambda: any(pe.state.is_final for pe in made.job.status.pes))
        made.take()
        counted = made.job.status.checkpoints
        assert (counted.taken, counted.last, counted.problem) == (1, 1, "")
        made.lose(gate)
        result = made.job.wait(PATIENCE)
    finally:
        gate.open()
        made.job.close()
    assert [t.n for t in result["first"]] == list(range(10))
    assert sorted(parquet.read_table(tmp_path / "out").column("n").to_pylist()) == list(range(101))


def test_a_job_that_is_cancelled_while_it_goes_back_ends(losing: tuple[Losing, Feed, list[testing.Gate]]) -> None:
    made, _, gates = losing
    assert gates[0].wait_reached(PATIENCE)
    made.coordinator._lose(Failure("PE pe1 was lost"))
    made.job.cancel()
    gates[0].open()
    with pytest.raises((JobCancelledError, JobFailedError)):
        made.job.wait(PATIENCE)


def test_a_link_that_one_side_alone_knows_is_left_out() -> None:
    assert is_empty({"pe0": {"to one that left": (3, 0)}})
    assert not is_empty({"pe0": {"a": (3, 0)}, "pe1": {"a": (0, 2)}})
