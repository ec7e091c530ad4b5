"""Running jobs go on by another plan: operators in other processes, pipelines split and merged, with exact results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import ChangeError, ConfigError
from rayelastic.job import Job
from tests.component.rescale.rescaling import Counted, Event, Events, Seen, check, count
from tests.raising import raises

PATIENCE = 60.0
KEYS, ROWS = 200, 6000
STOPS = (1500, 3000, 4500)  # rows after which the source waits to be let on


def twice(t: Counted) -> Counted:
    return t


class Changing:
    """A job in this process whose source stops now and then: counted by key, then passed through two functions."""

    def __init__(self, folder: Path, **config: object) -> None:
        self.feed = Events(KEYS, ROWS)
        self.gates = [testing.Gate() for _ in STOPS]
        script: list[object] = []
        for start, stop, gate in zip((0, *STOPS), STOPS, self.gates, strict=False):
            script += [*self.feed.given[start:stop], gate]
        script += self.feed.given[STOPS[-1] :]
        topology = rel.Topology("changing")
        keyed = topology.source(testing.script(script, Event), name="events").key_by("key")
        counted = keyed.map(count, name="count", state=Seen, schema=Counted, lane="compiled")
        counted.map(twice, name="first", lane="python").map(twice, name="second", lane="python").sink(
            rel.list(), name="out"
        )
        self.saved = folder / "checkpoints"
        checkpoint = rel.Checkpoint(self.saved, every=600.0)
        settings = {"regions": "manual", "checkpoint": checkpoint, "elasticity": "off"} | config
        self.job: Job = rel.start(topology, rel.JobConfig(**settings))  # type: ignore[arg-type]

    def at(self, number: int) -> Job:
        """The job, once its source stands at a gate; of those before it all are open."""
        for gate in self.gates[:number]:
            gate.open()
        assert self.gates[number].wait_reached(PATIENCE)
        return self.job

    def finish(self) -> None:
        for gate in self.gates:
            gate.open()
        check(self.job.wait(PATIENCE)["out"], self.feed)


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Changing]:
    made = Changing(tmp_path)
    yield made
    for gate in made.gates:
        gate.open()
    made.job.close()


def test_a_region_is_split_over_processes_moved_and_merged_again(changing: Changing) -> None:
    job = changing.at(0)
    region = job.plan().region_of("count").region.name
    split = job.change(job.plan().with_split(region, "first", ["pe1"]).with_split(region, "second", ["pe2"]))
    assert (split.pe_of("count"), split.pe_of("first"), split.pe_of("second")) == ("pe0", "pe1", "pe2")
    assert {status.pe for status in job.status.pes} == {"pe0", "pe1", "pe2"}
    job = changing.at(1)
    joined = job.change(job.plan().with_merge(region, "second").with_merge(region, "first"))
    assert set(joined.pes) == {"pe0"}
    job = changing.at(2)
    moved = job.change(job.plan().with_replicas(region, 1, ["pe7"]))
    assert moved.pe_of("count") == "pe7"
    assert job.rescale(region, 3).region(region).replicas == 3  # it can grow from where it is
    changing.finish()
    assert job.status.checkpoints.restarts == 0


def test_a_replica_is_moved_to_another_process(changing: Changing) -> None:
    job = changing.at(0)
    region = job.plan().region_of("count").region.name
    pes = job.rescale(region, 3).region(region).pipelines[0].pes
    job = changing.at(1)
    assert job.change(job.plan().with_replicas(region, 3, [*pes[:2], "pe9"])).region(region).pipelines[0].pes == (
        *pes[:2],
        "pe9",
    )
    job = changing.at(2)
    assert job.rescale(region, 2).region(region).replicas == 2
    changing.finish()


def test_a_loss_after_a_change_leads_back_to_the_new_plan(changing: Changing) -> None:
    job = changing.at(0)
    region = job.plan().region_of("count").region.name
    taken = job.status.checkpoints.taken
    job.change(job.plan().with_split(region, "first", ["pe1"]))
    assert job.status.checkpoints.taken == taken + 2  # before and behind it
    changing.finish()


def test_a_plan_that_cannot_be_had_is_refused_and_the_job_goes_on(changing: Changing) -> None:
    job = changing.at(0)
    plan = job.plan()
    region = plan.region_of("count").region.name
    with raises(ConfigError, "bad-change"):
        job.change(plan.with_replicas(region, 2, ["pe0", "pe0"]))
    with raises(ConfigError, "bad-change"):
        job.change(plan.with_replicas(region, 2, ["pe3", "pe4"]))
    with raises(ConfigError, "bad-change"):
        job.change(replace(plan, regions=plan.regions[1:]))
    with raises(ConfigError, "unknown-node"):
        job.change(plan.with_nodes({"pe0": "mars"}))
    with raises(ConfigError, "unknown-node", "mars"):
        job.leave("mars")
    with raises(ConfigError, "no-room"):
        job.leave(job.status.pes[0].node)
    assert job.plan().regions == plan.regions
    changing.finish()


def test_without_checkpoints_operators_stay_where_they_are(tmp_path: Path) -> None:
    made = Changing(tmp_path, checkpoint=False)
    try:
        job = made.at(0)
        region = job.plan().region_of("count").region.name
        with raises(ChangeError, "no-checkpoint"):
            job.change(job.plan().with_split(region, "first", ["pe1"]))
        made.finish()
    finally:
        made.job.close()


def test_a_change_that_fails_half_way_leads_back_to_the_plan_before(
    changing: Changing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where one of the new processes is lost as soon as it runs."""
    job = changing.at(0)
    region = job.plan().region_of("count").region.name
    coordinator = job._control._coordinator  # type: ignore[attr-defined]
    start = coordinator._cluster.start

    def once(*arguments: object) -> None:
        monkeypatch.undo()
        start(*arguments)
        raise ChangeError("a process couldn't be had")

    monkeypatch.setattr(coordinator._cluster, "start", once)
    with raises(ChangeError, "change-failed"):
        job.change(job.plan().with_split(region, "first", ["pe1"]))
    changing.finish()
    assert set(job.plan().pes) == {"pe0"}
    assert job.status.checkpoints.restarts == 1
