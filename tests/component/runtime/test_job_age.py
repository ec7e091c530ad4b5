"""How old a job is, through coordinators: its counters and the records of its checkpoints go on where they were."""

from __future__ import annotations

import time
from pathlib import Path

import rayelastic as rel
from rayelastic import testing
from rayelastic.job import Job, LocalControl, prepare, start
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.web.events import EventKind
from rayelastic.web.sampling import Sampler
from tests.component.runtime.dying_coordinator import bury
from tests.file_store import FileStore
from tests.waiting import wait_until

PATIENCE = 60.0  # seconds
LONG_AGO = 1000.0  # seconds since the job began, as the coordinators believe
NEVER = 600.0  # seconds between two checkpoints: they are taken when the test says so


def take(coordinator: Coordinator) -> None:
    assert coordinator._checkpoints is not None
    coordinator._checkpoints.loop.take()


def test_checkpoints_behind_the_death_of_a_coordinator_have_the_jobs_time(tmp_path: Path) -> None:
    gate = testing.Gate()
    topology = rel.Topology("ages")
    rows = topology.source(testing.script([(1,), gate, (2,)], {"n": int}), name="rows")
    rows.key_by("n").aggregate(name="counts", all=rel.count()).sink(rel.list(), name="out")
    spec = prepare(topology, rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=NEVER)))
    host = InProcessHost()
    first = Coordinator(spec, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
    first._life.wall = lambda: time.time() - LONG_AGO
    job = Job("ages", LocalControl(first), topology)
    try:
        job._start()
        assert gate.wait_reached(PATIENCE)
        take(first)
        (record,) = job.status.checkpoints.recent
        assert record.at <= job.metrics().seconds < LONG_AGO
        sampler = Sampler(job)
        sampler.keep(sampler.read())

        bury(first)
        second = Coordinator(spec, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
        second.resume()
        sampler.job = job = Job("ages", LocalControl(second), topology)
        take(second)
        (later,) = job.status.checkpoints.recent
        assert later.number > record.number
        assert LONG_AGO < later.at <= job.metrics().seconds

        sampler.keep(sampler.read())  # whoever looks sees both, and numbers that go on
        told = [event for event in sampler.history.events if event.kind is EventKind.CHECKPOINT]
        assert [event.title for event in told] == [f"checkpoint {one.number}" for one in (record, later)]
        assert sampler.history.series()["seconds"][-1] > LONG_AGO
        gate.open()
        job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()


def test_what_a_late_element_adapts_is_told_at_the_jobs_time() -> None:
    topology = rel.Topology("late")
    keyed = topology.source(rel.sequence(10_000_000_000), name="numbers").key_by("value")
    keyed.window(count=1000).aggregate(name="sums", total=rel.sum("value")).sink(rel.count(), name="out")
    job = start(topology, rel.JobConfig(regions="manual", elasticity=rel.Elasticity(thread_period=0.1)))
    try:
        sampler = Sampler(job)
        wait_until(job, lambda: job.metrics().seconds >= 1.0)
        job.rescale(job.plan().region_of("sums").region.name, 2)
        late = next(pe for pe in job.plan().pes if pe != "pe0")
        while not any(event.where == late and event.reason for event in sampler.history.events):
            job.pause(0.1)
            sampler.keep(sampler.read())
        assert all(event.seconds >= 1.0 for event in sampler.history.events if event.where == late and event.reason)
    finally:
        job.close()
