"""A job on Ray whose last operator fails it if any change lost, doubled or reordered a tuple, or state of a key.

Its load is what a file says, so that whoever has the folder steers it: tuples a second; below zero, the stream ends.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import rayelastic as rel
from tests.component.rescale.rescaling import Counted, Event, Seen, count
from tests.waiting import wait_until_received

T = TypeVar("T")
KEYS = 400
GROUPS = 20
PRIME = 1000000007
TICK = 0.01  # seconds between two bursts
ROUNDS = 400  # of plain Python: what makes a tuple dear


class Load:
    """How many tuples there are a second.

    Args:
        folder: where it is written down.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "rate"

    def set(self, rate: float) -> None:
        made = self._file.with_suffix(".new")
        made.write_text(str(rate))
        made.rename(self._file)

    def end(self) -> None:
        self.set(-1.0)

    @property
    def rate(self) -> float:
        return float(self._file.read_text())

    def paced(self, events: Iterator[T]) -> Iterator[T]:
        """As many of some events as there are to be."""
        clock, due, now = threading.Event(), 0.0, time.monotonic()
        while (rate := self.rate) >= 0:
            clock.wait(TICK)
            before, now = now, time.monotonic()
            due += rate * (now - before)
            yield from itertools.islice(events, int(due))
            due -= int(due)

    def events(self) -> Iterator[Event]:
        return self.paced(events())


def events() -> Iterator[Event]:
    following = [0] * KEYS
    for turn in itertools.count(1):
        key = turn * 7919 % KEYS
        following[key] += 1
        yield Event(key, following[key] - 1)


class Tagged(NamedTuple):
    group: int
    key: int
    sequence: int
    count: int  # type: ignore[assignment]
    digest: int


def tag(t: Counted) -> Tagged:
    return Tagged(t.key % GROUPS, t.key, t.sequence, t.count, t.digest)


class Members(dict[int, tuple[int, int]]):
    """{key: (tuples of it so far, digest of their sequences)} of a group."""


def verified(t: Tagged, s: Members) -> Tagged:
    following, digest = s.get(t.key, (0, 0))
    assert t.sequence == following, f"{t} came where {following} was due"
    digest = (digest * 31 + t.sequence + 1) % PRIME
    assert (t.count, t.digest) == (following + 1, digest), f"state was lost before {t}"
    s[t.key] = (following + 1, digest)
    return t


def dear(t: Event, s: Seen) -> Counted:
    spent = t.sequence
    for _ in range(ROUNDS):
        spent = spent * 31 % 65537
    return count(t, s)


def topology(folder: Path, *, costs: bool = False) -> rel.Topology:
    """Counts by key, then verifies by group: two regions in a row, each of which can have replicas."""
    load = Load(folder)
    made = rel.Topology("verified")
    keyed = made.source(rel.callable(load.events, Event), name="events").key_by("key")
    lane = "python" if costs else "compiled"
    counted = keyed.map(dear if costs else count, name="count", state=Seen, schema=Counted, lane=lane)  # type: ignore[call-overload]
    tagged = counted.map(tag, name="tag", schema=Tagged, lane="compiled")
    tagged.key_by("group").map(verified, name="verify", state=Members, schema=Tagged, lane="python").sink(
        rel.count(), name="out"
    )
    return made


def flows(job: rel.Job, tuples: int = 300, operator: str = "out") -> None:
    """Waits until more tuples have been verified, or have come to an operator."""
    before = job.metrics().operator(operator).tuples_in
    wait_until_received(job, operator, before + tuples)


def finish(job: rel.Job, load: Load) -> int:
    """Ends the stream and tells how many tuples there were: as many came through as were made."""
    load.end()
    arrived: int = job.wait(timeout=120)["out"]
    assert arrived == job.metrics().operator("events").tuples_out
    return arrived
