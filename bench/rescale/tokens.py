"""What a second replica brings an operator that needs the Python token, each replica being a process of its own."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from types import SimpleNamespace
from typing import Any, NamedTuple

import rayelastic as rel
from bench.micro.row import Row

KEYS = 1000
SETTLE = 1.0  # seconds after a change that aren't measured
PATIENCE = 40.0  # seconds for the job to find two replicas by itself
ROUNDS_OF_LOOP = 300  # of plain Python: some 20 us a tuple


class Keyed(NamedTuple):
    key: int


class Kept(NamedTuple):
    n: int = 0


def slow(t: Keyed, s: Any) -> Keyed:
    x = t.key
    for _ in range(ROUNDS_OF_LOOP):
        x = x * 31 % 65537
    s.n += x >= 0
    return t


def topology() -> rel.Topology:
    made = rel.Topology("token")
    keyed = made.source("numbers", rel.sequence(1 << 60)).map("keyed", lambda t: t.value % KEYS, schema=Keyed)
    keyed.key_by("key").map("slow", slow, state=Kept, schema=Keyed, lane="python").sink("out", rel.count())
    return made


def turns(seconds: float) -> float:
    """How often a second the operator's loop goes round in this process, with nothing around it."""
    count, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        slow(Keyed(count % KEYS), SimpleNamespace(n=0))
        count += 1
    return count / (time.monotonic() - began)


def machine(rounds: int, seconds: float) -> Row:
    """Two processes that share nothing against one, in turns: no two replicas can be better than that."""
    one, two = [], []
    with ProcessPoolExecutor(2) as processes:
        for _ in range(rounds):
            one.append(processes.submit(turns, seconds).result())
            two.append(sum(processes.map(turns, [seconds] * 2)))
    return Row("rescale.machine", "the same loop alone, in two processes", "tuples/s", two, one, "one process")


def rate(job: rel.Job, seconds: float) -> float:
    """Tuples/s that the operator takes."""
    job.pause(SETTLE)
    before, began = job.metrics().operator("slow").tuples_in, time.monotonic()
    job.pause(seconds)
    return (job.metrics().operator("slow").tuples_in - before) / (time.monotonic() - began)


def measure(rounds: int, seconds: float) -> list[Row]:
    """Two replicas against one, in turns, in one job."""
    job = rel.submit(topology(), rel.JobConfig(regions="manual", elasticity="off"))
    one, two = [], []
    try:
        region = job.plan().region_of("slow").region.name
        for _ in range(rounds):
            job.rescale(region, 1)
            one.append(rate(job, seconds))
            job.rescale(region, 2)
            two.append(rate(job, seconds))
    finally:
        job.cancel(drain=False)
        job.close()
    return [Row("rescale.token", "Python operator, two replicas", "tuples/s", two, one, "one replica")]


def by_itself() -> list[str]:
    """What the job did on its own to get there."""
    job = rel.submit(topology(), rel.JobConfig(regions="elastic", region_period=1.0), name="token-by-itself")
    try:
        region = job.plan().region_of("slow").region.name
        until = time.monotonic() + PATIENCE
        kept = False
        while time.monotonic() < until and not kept:
            job.pause(SETTLE)
            passes = list(job.adaptations(every_pass=True))
            kept = job.plan().region(region).replicas > 1 and any("kept" in str(one) for one in passes)
        return [str(one) for one in passes if one.pe == "regions" and (one.changed or "kept" in str(one))]
    finally:
        job.cancel(drain=False)
        job.close()
