"""What checkpoints cost: throughput and latency with and without, in turn, while a tenth of the state changes."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import rayelastic as rel
from bench.survival.load import PARTS, keys_of, topology, wait_for
from rayelastic.runtime.values.status import OperatorSample

TURN = 2_000_000  # rows for which one tenth of the keys is touched while the rate isn't known yet
ROUND = 10.0  # seconds in which each tenth is touched once
LOOK = 0.002  # seconds between two looks
SAMPLE = 1000  # one row in so many goes to the sink


@dataclass(frozen=True, slots=True)
class Round:
    """One run of a job.

    Args:
        rate: rows/s.
        p50: seconds from the source to the sink.
        p99: the same; both are powers of two of microseconds.
        taken: checkpoints that were complete meanwhile.
        abandoned: that weren't.
        seconds: that the last one took.
        still: seconds for which the operator with the state took nothing, the longest time; LOOK is added to it.
    """

    rate: float
    p50: float
    p99: float
    still: float
    taken: int = 0
    abandoned: int = 0
    seconds: float = 0.0


def measured(megabytes: int, every: float, seconds: float, turn: int, *, python: bool = False) -> Round:
    """Fill the state, then count for a while.

    Args:
        megabytes: of state.
        every: seconds between two checkpoints; 0: none are taken.
        seconds: that are measured, about: as many rows as that takes, so that each tenth of the keys, some of which are
            faster to reach, has the same part of it.
        turn: rows a second, about, as an earlier round had them.
        python: whether a key has a Python value instead of a record.
    """
    keys = keys_of(megabytes)
    with tempfile.TemporaryDirectory() as folder:
        saving = rel.Checkpoint(Path(folder) / "saved", every=every) if every else False
        made = topology("cost", keys, turn, rel.count(), SAMPLE, python=python)
        job = rel.start(made, rel.JobConfig(checkpoint=saving))
        try:
            wait_for(job, lambda: job.metrics().operator("touch").tuples_in > keys, "the state isn't filled")
            if every:
                before = job.status.checkpoints.taken
                wait_for(job, lambda: job.status.checkpoints.taken > before, "no checkpoint is complete")
            counted, first = job.status.checkpoints, job.metrics()
            all_keys = first.operator("touch").tuples_in + round(PARTS * turn * seconds / ROUND)
            still = longest_standstill(job, all_keys)
            last, now = job.metrics(), job.status.checkpoints
        finally:
            job.close()
    marks = [b - a for a, b in zip(first.operator("out").latency, last.operator("out").latency, strict=True)]
    latency = OperatorSample("out", "", 0, 0, 0, latency=tuple(marks))
    passed = last.operator("touch").tuples_in - first.operator("touch").tuples_in
    return Round(
        passed / (last.seconds - first.seconds),
        latency.latency_quantile(0.5) or 0.0,
        latency.latency_quantile(0.99) or 0.0,
        still,
        now.taken - counted.taken,
        now.abandoned - counted.abandoned,
        now.seconds,
    )


def longest_standstill(job: rel.Job, until: int) -> float:
    """Return the longest time, s, in which the operator with the state took no rows, until it has taken so many."""
    changed, longest, before = time.monotonic(), 0.0, 0
    while before < until:
        job.pause(LOOK)
        taken, now = job.metrics().operator("touch").tuples_in, time.monotonic()
        if taken != before:
            before, changed = taken, now
        longest = max(longest, now - changed)
    return longest


def compare(
    megabytes: int, every: float, seconds: float, rounds: int, *, python: bool = False
) -> tuple[list[Round], list[Round]]:
    """Rounds without and with checkpoints, in turn; one before says how many rows a second has."""
    without: list[Round] = []
    with_them: list[Round] = []
    turn = max(1, round(measured(megabytes, 0.0, seconds, TURN, python=python).rate))
    for _ in range(rounds):
        without.append(measured(megabytes, 0.0, seconds, turn, python=python))
        with_them.append(measured(megabytes, every, seconds, turn, python=python))
    return without, with_them
