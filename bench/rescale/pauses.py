"""What a change costs: how long tuples of moving keys and of others wait, how throughput dips, in all (C003-8).

Tuples carry the time at which they were made; behind the region the time is taken again, in another process on the same
machine, whose monotonic clock is the same. The state is filled first, so that there is something to move.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

import rayelastic as rel
from bench.rescale.keys import moved_partitions, partition
from bench.survival.load import STATE_BYTES, State

TICK = 0.001  # seconds between two bursts of a paced source
LOOK = 0.05  # seconds between two looks whether it is enough
SAMPLED = 256  # of so many tuples one is timed where the source isn't paced
BEFORE, AFTER = 3.0, 4.0  # seconds that are looked at
BUCKET = 0.25  # seconds over which throughput is averaged
BACK = 0.9  # of the throughput before: it is back
FILL_TIMEOUT = 120.0  # seconds
SECOND = 1e9  # ns


class Event(NamedTuple):
    key: int
    sent: int  # ns; 0: not timed


class Kept(NamedTuple):
    who: int  # the key, by another name: so what follows isn't in the region
    sent: int


class Timed(NamedTuple):
    who: int
    sent: int
    arrived: int


@dataclass(frozen=True, slots=True)
class Change:
    """What was measured of one change.

    Args:
        what: which one.
        seconds: from the command to its answer.
        others: ms that a tuple of a key that stays waited at most.
        moving: ms that a tuple of a key that moves waited at most.
        usual: ms that one waited at most before, in as much time.
    """

    what: str
    seconds: float
    others: float
    moving: float
    usual: float


@dataclass(frozen=True, slots=True)
class Dip:
    """How throughput went while a region changed, on average over some such changes.

    A machine that is shared may be half as fast from one quarter of a second to the next: one change shows nothing.

    Args:
        what: which change.
        before: tuples/s.
        usual: tuples/s, the least of a quarter of a second before.
        deepest: tuples/s, the same from its beginning on.
        after: tuples/s in the last second that was looked at: what the other number of replicas gives.
        back: seconds until it was back where it was, or at what it gives from then on if that is less; infinite: not
            while it was looked at.
    """

    what: str
    before: float
    usual: float
    deepest: float
    after: float
    back: float


def touch(t: Event, s: State) -> Kept:
    s.n += 1  # type: ignore[attr-defined]
    return Kept(t.key, t.sent)


def stamp(run: np.ndarray) -> dict[str, np.ndarray]:
    return {"who": run["who"], "sent": run["sent"], "arrived": np.full(len(run), time.monotonic_ns())}


def events(keys: int, rate: float, enough: Path) -> Iterator[Event]:
    """Each key once, then keys at random: so many a second, or as fast as it can for 0."""
    for key in range(keys):
        yield Event(key, 0)
    dice, looked, turn = random.Random(1), time.monotonic(), 0
    due = looked
    while True:
        now = time.monotonic()
        if now - looked > LOOK:
            looked = now
            if enough.exists():
                return
        if rate:
            due += TICK
            time.sleep(max(0.0, due - now))
            for _ in range(round(rate * TICK)):
                yield Event(int(dice.random() * keys), time.monotonic_ns())
            continue
        for _ in range(SAMPLED):
            turn = (turn + 7919) % keys
            yield Event(turn, 0)
        yield Event(turn, time.monotonic_ns())


def topology(keys: int, rate: float, enough: Path) -> rel.Topology:
    made = rel.Topology("rescale-cost")
    source = made.source(rel.callable(lambda: events(keys, rate, enough), Event), name="events")
    kept = source.key_by("key").map(touch, name="touch", state=State, schema=Kept, lane="compiled")
    timed = kept.filter(lambda t: t.sent > 0, name="timed").map(stamp, name="stamp", schema=Timed)
    timed.sink(rel.list(), name="out")
    return made


def play(keys: int, rate: float, steps: tuple[int, ...], *, on_ray: bool) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Run a job through changes; return (key, sent, arrived) of the timed tuples, and when each change was (ns)."""
    with tempfile.TemporaryDirectory() as folder:
        enough = Path(folder) / "enough"
        begin = rel.submit if on_ray else rel.start
        job = begin(topology(keys, rate, enough), rel.JobConfig(regions="manual"))
        changes = []
        try:
            region = job.plan().region_of("touch").region.name
            until = time.monotonic() + FILL_TIMEOUT
            while job.metrics().operator("touch").tuples_in < keys:
                if time.monotonic() > until:
                    raise TimeoutError("the state isn't filled")
                job.pause(LOOK)
            job.pause(BEFORE)
            for replicas in steps:
                began = time.monotonic_ns()
                job.rescale(region, replicas)
                changes.append((began, time.monotonic_ns()))
                job.pause(AFTER)
            enough.touch()
            rows = job.wait(timeout=FILL_TIMEOUT)["out"]
        finally:
            enough.touch()
            job.close()
    return np.array(rows, dtype=np.int64), changes


def pauses(megabytes: int, rate: float, *, on_ray: bool) -> list[Change]:
    """One replica to two and back, with so much state."""
    keys = megabytes * 1_000_000 // STATE_BYTES
    steps = (2, 1)
    rows, changes = play(keys, rate, steps, on_ray=on_ray)
    key, sent, arrived = rows.T
    waited = (arrived - sent) / 1e6
    found, at = [], 1
    for replicas, (began, ended) in zip(steps, changes, strict=True):
        going = moved_partitions(at, replicas)
        during = np.flatnonzero((arrived >= began) & (sent <= ended))
        before = (arrived >= began - BEFORE * SECOND / 2) & (arrived < began)
        moves = np.array([partition(int(k)) in going for k in key[during]], dtype=bool)
        found.append(
            Change(
                f"{at} -> {replicas} replicas, {megabytes} MB",
                (ended - began) / SECOND,
                float(waited[during][~moves].max(initial=0.0)),
                float(waited[during][moves].max(initial=0.0)),
                float(waited[before].max(initial=0.0)),
            )
        )
        at = replicas
    return found


def dips(megabytes: int, rounds: int, *, on_ray: bool) -> list[Dip]:
    """Return the same, again and again, while the source makes what it can."""
    steps = (2, 1)
    rows, changes = play(megabytes * 1_000_000 // STATE_BYTES, 0.0, steps * rounds, on_ray=on_ray)
    arrived = np.sort(rows[:, 2])
    offsets = np.arange(-BEFORE, AFTER, BUCKET)
    found = []
    for first, (old, new) in enumerate(((1, 2), (2, 1))):
        curves = [
            np.histogram(arrived, began + np.append(offsets, AFTER) * SECOND)[0] * (SAMPLED + 1) / BUCKET
            for began, _ in changes[first :: len(steps)]
        ]
        curve = np.mean(curves, axis=0)
        before, during = curve[offsets < 0], curve[offsets >= 0]
        level = float(before.mean())
        after = float(curve[offsets >= AFTER - 1].mean())
        low = np.flatnonzero(during < BACK * min(level, after))
        back = 0.0 if not len(low) else (low[-1] + 1) * BUCKET if low[-1] + 1 < len(during) else float("inf")
        what = f"{old} -> {new} replicas, {megabytes} MB"
        found.append(Dip(what, level, float(before.min()), float(during.min()), after, float(back)))
    return found
