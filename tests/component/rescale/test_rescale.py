"""Regions get more and fewer replicas while the job runs, in this process: real schedulers, links, data ports (R3)."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import _native
from rayelastic.errors import ConfigError
from rayelastic.job import start
from rayelastic.plan import fusion
from rayelastic.plan.exec_plan import RegionPlan
from rayelastic.plan.hash_ring import HashRing
from rayelastic.plan.settings.threads import ModelName
from rayelastic.runtime.element import routing
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.topologies.word_count import Line, Word, words
from tests.component.rescale.rescaling import Counted, Event, Feed, Seen, check, count, flows, topology_of, two_regions
from tests.raising import raises

ELASTIC = rel.JobConfig(regions="manual", elasticity="off")


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("model", [None, "dynamic"])
def test_a_region_goes_from_one_to_three_replicas_and_back(lane: str, model: ModelName | None) -> None:
    feed = Feed(keys=500)
    config = rel.JobConfig(regions="manual", elasticity="off", threads=rel.Threads(count=2, model=model))
    job = start(topology_of(feed, lane), config)
    try:
        assert job.plan().region("r1").replicas == 1
        for replicas in (2, 3, 1, 2, 1):
            flows(job)
            assert job.rescale("r1", replicas).region("r1").replicas == replicas
            assert job.plan().region("r1").replicas == replicas
            assert len(job.status.pes) == replicas
        flows(job)
        feed.enough.set()
        check(job.wait()["out"], feed)
    finally:
        feed.enough.set()
        job.close()


def test_a_job_goes_on_with_the_partitions_that_its_journal_names(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(keys=500)
    monkeypatch.setattr(fusion, "RegionPlan", partial(RegionPlan, partitions=271))
    job = start(topology_of(feed, "compiled"), ELASTIC)
    monkeypatch.undo()
    try:
        for replicas in (3, 2, 1):
            flows(job)
            job.rescale("r1", replicas)
            assert job.plan().region("r1").ring == HashRing.of(replicas, 271)
        with raises(ConfigError, "out-of-range", "271"):
            job.rescale("r1", 272)
        flows(job)
        feed.enough.set()
        check(job.wait()["out"], feed)
    finally:
        feed.enough.set()
        job.close()


def test_what_cant_be_rescaled_is_said() -> None:
    feed = Feed(keys=5)
    job = start(topology_of(feed, "compiled"), ELASTIC)
    try:
        with raises(ConfigError, "fixed-region", "r0", operator="events"):
            job.rescale("r0", 2)
        with raises(ConfigError, "out-of-range", "4096"):
            job.rescale("r1", 4097)
        feed.enough.set()
        check(job.wait()["out"], feed)
    finally:
        feed.enough.set()
        job.close()
    fixed = start(topology_of(Feed(keys=1), "compiled"))
    with raises(ConfigError, "fixed-region", "fixed", "regions="):
        fixed.rescale("r1", 2)
    fixed.close()


def test_two_regions_in_a_row_change_under_each_other() -> None:
    feed = Feed(keys=300)
    job = start(two_regions(feed), ELASTIC)
    try:
        regions = [planned.region.name for planned in job.plan().regions if planned.region.keys]
        assert len(regions) == 2, job.plan().text()
        dice = random.Random(5)
        for _ in range(10):
            flows(job)
            region = dice.choice(regions)
            job.rescale(region, dice.choice([n for n in (1, 2, 3) if n != job.plan().region(region).replicas]))
        feed.enough.set()
        following = [0] * len(feed.next)
        for t in job.wait()["out"]:
            assert t.sequence == following[t.key]
            following[t.key] += 1
        assert following == feed.next
    finally:
        feed.enough.set()
        job.close()


def test_words_are_counted_as_if_nothing_had_moved() -> None:
    enough, counted = threading.Event(), Counter[str]()
    vocabulary = ["alpha", "beta", "naïve", "日本語", "a-word-longer-than-twelve-bytes", *map(str, range(200))]

    def lines() -> Iterator[Line]:
        dice = random.Random(3)
        while not enough.is_set():
            words_of_line = dice.choices(vocabulary, k=8)
            counted.update(words_of_line)
            yield Line(" ".join(words_of_line))

    topology = rel.Topology("words")
    split = topology.source(rel.callable(lines, Line), name="lines").flat_map(words, name="words", schema=Word)
    split.key_by("word").aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    job = start(topology, ELASTIC)
    try:
        region = next(planned.region.name for planned in job.plan().regions if planned.region.keys)
        for replicas in (2, 3, 1, 2):
            flows(job, "counts", 2000)
            job.rescale(region, replicas)
        flows(job, "counts", 2000)
        enough.set()
        rows = job.wait()["out"]
    finally:
        enough.set()
        job.close()
    assert len(rows) == len({t.word for t in rows})
    assert {t.word: t.n for t in rows} == counted


ANSWER = 0.0002  # seconds that a tuple of the slow operator waits
PATIENCE = 100.0  # seconds
WAITING = 8000  # tuples of the key that come while it moves
KEY = native_schema(rel.Schema.of({"key": int}))
BUSY = 0.5  # seconds that a router has for a command; a run of tuples takes a fraction of it


class Hot(Feed):
    """Nearly all events are of one key, which goes to a second replica as soon as there is one."""

    def __init__(self, keys: int) -> None:
        super().__init__(keys)
        ring = HashRing.of(2)
        owners = [ring.owner_of(_native.key_hash(KEY, (key,))) for key in range(keys)]
        self.stays, self.hot = owners.index(0), owners.index(1)

    def __call__(self) -> Iterator[Event]:
        while not self.enough.is_set():
            for turn in range(256):
                key = self.hot if turn else self.stays
                self.next[key] += 1
                yield Event(key, self.next[key] - 1)


def slow(t: Event, s: Seen) -> Counted:
    threading.Event().wait(ANSWER)
    return count(t, s)


@pytest.mark.timeout(200)
def test_a_change_waits_for_what_a_hot_key_has_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source goes on while the key moves; what has come then is taken as slowly as always, and nothing is wrong."""
    monkeypatch.setattr(routing, "COMMAND_TIMEOUT", BUSY)
    feed = Hot(keys=50)

    def passing(step: str) -> None:
        """The state takes a while to be copied."""
        until = feed.next[feed.hot] + WAITING
        while step == "copy" and feed.next[feed.hot] < until:
            threading.Event().wait(ANSWER)

    topology = rel.Topology("hot")
    events = topology.source(rel.callable(feed, Event), name="events").key_by("key")
    events.map(slow, name="count", state=Seen, schema=Counted, lane="python").sink(rel.list(), name="out")
    job = start(topology, ELASTIC)
    control: Any = job._control
    control._coordinator._rescaling._performer._passing = passing
    try:
        flows(job)
        assert job.rescale("r1", 2).region("r1").replicas == 2
        moved = job.metrics().regions["r1"]
        feed.enough.set()
        rows = job.wait(PATIENCE)["out"]
        check(rows, feed)
    finally:
        feed.enough.set()
        job.close()
    assert moved.undone == 0
    assert moved.longest_hold > WAITING * ANSWER > 3 * BUSY, "so much waited that a router was late"
