"""A job whose result tells whether any change of its regions lost, doubled or reordered a tuple, or state of a key."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import rayelastic as rel
from rayelastic.job import Job
from tests.waiting import wait_until_received

PAUSE = 0.005  # seconds between 256 events: a source without a pause takes the CPU that everybody else needs


class Event(NamedTuple):
    key: int
    sequence: int


class Counted(NamedTuple):
    key: int
    sequence: int
    count: int  # type: ignore[assignment]
    digest: int


class Seen(NamedTuple):
    count: int = 0  # type: ignore[assignment]
    digest: int = 0


def count(t: Event, s: Seen) -> Counted:
    """What the state of a key must be is known from the sequence."""
    s.count += 1  # type: ignore[misc]
    s.digest = (s.digest * 31 + t.sequence + 1) % 1000000007  # type: ignore[misc]
    return Counted(t.key, t.sequence, s.count, s.digest)


def taken(job: Job, operator: str) -> int:
    return job.metrics().operator(operator).tuples_in


def flows(job: Job, operator: str = "out", tuples: int = 200) -> None:
    """Waits until an operator has taken more tuples."""
    wait_until_received(job, operator, taken(job, operator) + tuples)


class Feed:
    """Events of some keys, with a pause (s) after each 256, until told to end."""

    def __init__(self, keys: int, seed: int = 0, pause: float = PAUSE) -> None:
        self.next = [0] * keys
        self.enough = threading.Event()
        self._seed = seed
        self._pause = pause

    def __call__(self) -> Iterator[Event]:
        dice, following, enough, keys = random.Random(self._seed), self.next, self.enough, len(self.next)
        while not enough.wait(self._pause):
            for _ in range(256):
                key = int(dice.random() * keys)
                sequence = following[key]
                following[key] = sequence + 1
                yield Event(key, sequence)


class Events(Feed):
    """So many events, given to the end."""

    def __init__(self, keys: int, rows: int) -> None:
        super().__init__(keys, pause=0.0)
        self.given = list(islice(self(), rows))
        self.next = [0] * keys
        for event in self.given:
            self.next[event.key] += 1


def check(rows: list[Counted], feed: Feed) -> None:
    """0 lost, 0 doubled, in order per key, and the state of each key as if one operator had had it all the time."""
    following, digests = [0] * len(feed.next), [0] * len(feed.next)
    for t in rows:
        assert t.sequence == following[t.key], f"key {t.key}: {t.sequence} came where {following[t.key]} was due"
        following[t.key] += 1
        digests[t.key] = (digests[t.key] * 31 + t.sequence + 1) % 1000000007
        assert (t.count, t.digest) == (following[t.key], digests[t.key]), f"key {t.key}: state was lost before {t}"
    assert following == feed.next, "tuples are missing at the end"


def topology_of(feed: Feed, lane: str) -> rel.Topology:
    topology = rel.Topology("rescaled")
    events = topology.source(rel.callable(feed.__call__, Event), name="events")
    events.key_by("key").map(count, name="count", state=Seen, schema=Counted, lane=lane).sink(rel.list(), name="out")  # type: ignore[call-overload]
    return topology


class Tagged(NamedTuple):
    group: int
    key: int
    sequence: int


class Members(dict[int, int]):
    """{key: tuples of it so far} of a group."""


def in_order(t: Tagged, s: Members) -> Tagged:
    """A key's tuples come in order, whichever replicas they have passed."""
    assert s.get(t.key, 0) == t.sequence, f"{t} came where {s.get(t.key, 0)} was due"
    s[t.key] = t.sequence + 1
    return t


def two_regions(feed: Feed) -> rel.Topology:
    """Counts by key, then watches groups of keys: two regions in a row, with routers in front of each."""
    topology = rel.Topology("two")
    events = topology.source(rel.callable(feed.__call__, Event), name="events")
    counted = events.key_by("key").map(count, name="count", state=Seen, schema=Counted, lane="compiled")
    tagged = counted.map(lambda t: (t.key % 10, t.key, t.sequence), name="tag", schema=Tagged, lane="compiled")
    watched = tagged.key_by("group").map(in_order, name="watch", state=Members, schema=Tagged, lane="python")
    watched.sink(rel.list(), name="out")
    return topology
