"""What a second replica brings an operator that needs the Python token, each replica being a process of its own.

Two processes that share nothing do the same in turns with the job, and aren't twice one either: what a tuple costs
depends on what the other CPU does. So beside the rates stands the CPU time that the operator got: the engine's affair.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from types import SimpleNamespace
from typing import Any, NamedTuple

import rayelastic as rel
from bench.harness import Row

KEYS = 1000
SETTLE = 3.0  # seconds after a change that aren't measured: another process starts for the next change
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
    keyed = made.source(rel.sequence(1 << 60), name="numbers").map(lambda t: t.value % KEYS, name="keyed", schema=Keyed)
    keyed.key_by("key").map(slow, name="slow", state=Kept, schema=Keyed, lane="python").sink(rel.count(), name="out")
    return made


def turns(seconds: float) -> float:
    """How often a second the operator's loop goes round in this process, with nothing around it."""
    count, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        slow(Keyed(count % KEYS), SimpleNamespace(n=0))
        count += 1
    return count / (time.monotonic() - began)


class Pace(NamedTuple):
    """Of the operator: tuples/s, and CPUs that it used."""

    rate: float
    cpus: float


def pace(job: rel.Job, seconds: float) -> Pace:
    """How the operator goes, once what a change brought about is over."""
    job.pause(SETTLE)
    before, began = job.metrics().operator("slow"), time.monotonic()
    job.pause(seconds)
    after, took = job.metrics().operator("slow"), time.monotonic() - began
    return Pace((after.tuples_in - before.tuples_in) / took, (after.cpu_seconds - before.cpu_seconds) / took)


def one_and_two(seconds: float) -> tuple[Pace, Pace]:
    """One replica, then two, in one job."""
    job = rel.submit(topology(), rel.JobConfig(regions="manual", elasticity="off"))
    try:
        one = pace(job, seconds)
        job.rescale(job.plan().region_of("slow").region.name, 2)
        return one, pace(job, seconds)
    finally:
        job.cancel(drain=False)
        job.close()


def measure(rounds: int, seconds: float) -> list[Row]:
    """Two replicas against one, the CPUs that they got, and two processes that share nothing, all in turns."""
    jobs, alone = [], []
    with ProcessPoolExecutor(2) as processes:
        for _ in range(rounds):
            jobs.append(one_and_two(seconds))
            one = processes.submit(turns, seconds).result()
            alone.append((one, sum(processes.map(turns, [seconds] * 2))))
    one_rate, two_rate = [one.rate for one, _ in jobs], [two.rate for _, two in jobs]
    one_cpus, two_cpus = [one.cpus for one, _ in jobs], [two.cpus for _, two in jobs]
    one_alone, two_alone = [one for one, _ in alone], [two for _, two in alone]
    return [
        Row("rescale.token", "Python operator, two replicas", "tuples/s", two_rate, one_rate, "one replica"),
        Row("rescale.token_cpus", "CPUs that the operator got", "CPUs", two_cpus, one_cpus, "one replica"),
        Row("rescale.machine", "that loop alone, in two processes", "tuples/s", two_alone, one_alone, "one process"),
    ]


def by_itself() -> list[str]:
    """What the job did on its own to get there."""
    job = rel.submit(
        topology(),
        rel.JobConfig(regions="elastic", elasticity=rel.Elasticity(region_period=1.0)),
        name="token-by-itself",
    )
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
