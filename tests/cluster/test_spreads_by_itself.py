"""With nothing but defaults, a job on Ray grows over processes while its load is too much for one, and shrinks then."""

from __future__ import annotations

import itertools
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import Job
from rayelastic.reasons import Code
from tests.cluster.conftest import CPUS
from tests.reasons import codes
from tests.waiting import wait_until

pytestmark = [pytest.mark.alone, pytest.mark.timeout(240)]

ANSWER = 0.004  # seconds that each tuple waits for its answer
LULL = 0.05  # seconds between two tuples when there is little to do
PATIENCE = 90.0  # seconds for the job to find what it needs, on a machine with other work
LOOK = 0.5  # seconds


class Number(NamedTuple):
    value: int


def numbers(folder: Path) -> Iterator[Number]:
    """0, 1, 2, ... as fast as they are taken, few once 'lull' is there, until 'enough' is."""
    pause, value = threading.Event(), 0
    while not (folder / "enough").exists():
        for _ in range(1 if (folder / "lull").exists() else 100):
            yield Number(value)
            value += 1
        if (folder / "lull").exists():
            pause.wait(LULL)


def ask(t: Number) -> Number:
    threading.Event().wait(ANSWER)
    return t


def kept(job: Job) -> bool:
    """Whether it says that an earlier run found its replicas."""
    return any(Code.REPLICAS_KEPT() in one.decision.reasons for one in job.adaptations(every_pass=True))


def reaches(job: Job, replicas: range) -> None:
    """Waits until a number of replicas ask."""
    wait_until(job, lambda: job.plan().region_of("ask").replicas in replicas, look=LOOK)


@pytest.mark.nightly  # test_three_levels goes up and down with state, test_replicas_anywhere_on_ray up without
def test_a_stateless_job_that_waits_spreads_and_comes_back_with_all_defaults(ray_cluster: str, tmp_path: Path) -> None:
    topology = rel.Topology("asks")
    stream = topology.source(rel.callable(lambda: numbers(tmp_path), Number), name="numbers")
    stream.map(ask, name="ask", lane="python").sink(rel.list(), name="out")
    job = rel.submit(topology, address=ray_cluster)
    try:
        assert len(job.status.pes) == 1
        reaches(job, range(2, CPUS + 1))
        assert 2 <= len({status.pid for status in job.status.pes}) <= CPUS
        (tmp_path / "lull").touch()
        reaches(job, range(1, 2))
        assert len(job.status.pes) == 1
        (tmp_path / "enough").touch()
        rows = job.wait(timeout=60)["out"]
        made = job.metrics().operator("numbers").tuples_out
    finally:
        (tmp_path / "enough").touch()
        job.close()
    assert [t.value for t in rows] == list(range(made))
    assert "r1 from 1 replica to " in told(job), "what was adapted is known behind the end"


ROWS = 60_000  # of each source
ROUNDS = 20_000  # of a loop: a millisecond or two


def burning(enough: Path) -> Callable[[Number], Number]:
    """A function that takes its time under the token until a file is there."""

    def burn(t: Number) -> Number:
        if not enough.exists():
            for _ in range(ROUNDS):
                pass
        return t

    return burn


def told(job: Job) -> str:
    return "\n".join(str(one) for one in job.adaptations() if one.pe == "regions")


def test_two_python_objects_in_a_row_get_a_process_each(ray_cluster: str, tmp_path: Path) -> None:
    """Objects that may change have no replicas: the job restores a checkpoint by a plan with two processes."""
    burn = burning(tmp_path / "enough")

    @rel.operator(outputs=Number)
    class Burn:
        def invoke(self, t: Number) -> Number:
            return burn(t)

    topology = rel.Topology("burns")
    first, second = (
        topology.source(rel.generate(lambda n, of=of: 2 * n + of, ROWS, schema=Number), name=name)  # type: ignore[misc]
        for of, name in enumerate(("even", "odd"))
    )
    burned = first.union(second).apply(Burn(), name="first")
    burned.apply(Burn(), name="second").sink(rel.list(), name="out")
    # Of the CPUs that other work leaves here a process may get little: so little is a reason.
    job = rel.submit(topology, rel.JobConfig(elasticity=rel.Elasticity(region_target=0.03)), address=ray_cluster)
    try:
        wait_until(job, lambda: job.plan().pe_of("first") != job.plan().pe_of("second"), look=LOOK)
        apart = Code.GIL_FULL(operators=["second"])
        # Once it is all done.
        wait_until(job, lambda: any(apart in one.decision.reasons for one in job.adaptations()), LOOK)
        (tmp_path / "enough").touch()
        rows = job.wait(timeout=PATIENCE)["out"]
    finally:
        (tmp_path / "enough").touch()
        job.close()
    assert sorted(t.value for t in rows) == list(range(2 * ROWS))
    assert job.status.checkpoints.restarts == 0


KEYS, DRAWN = 97, 20_000
SHARE = 0.61  # that the first of so many keys has by Zipf's law of exponent 2
NAMED = re.compile(r"Key 0 has (\d+) % of the load of r1")


class Visit(NamedTuple):
    key: int


class Seen(NamedTuple):
    times: int = 0


def zipf() -> Iterator[int]:
    """Keys by Zipf's law of exponent 2, without end."""
    return itertools.cycle(random.Random(19).choices(range(KEYS), [1 / r**2 for r in range(1, KEYS + 1)], k=DRAWN))


def visits(folder: Path) -> Iterator[Visit]:
    """As fast as they are taken, until 'enough' is there."""
    keys = zipf()
    while not (folder / "enough").exists():
        yield from map(Visit, itertools.islice(keys, 100))


def ask_by_key(t: Visit, s: Any) -> Visit:
    threading.Event().wait(ANSWER)
    s.times += 1
    return t


def test_a_hot_key_is_named_with_all_defaults(ray_cluster: str, tmp_path: Path) -> None:
    """Routers see it, the policy says it before any trial, and the job's adaptations have the sentence."""
    topology = rel.Topology("hot")
    keyed = topology.source(rel.callable(lambda: visits(tmp_path), Visit), name="visits").key_by("key")
    keyed.map(ask_by_key, name="ask", state=Seen, schema=Visit, lane="python").sink(rel.list(), name="out")
    job = rel.submit(topology, address=ray_cluster)
    try:
        until, shares = time.monotonic() + PATIENCE, list[int]()
        while not shares:
            lines = [str(one) for one in job.adaptations(every_pass=True) if one.pe == "regions"]
            shares = [int(found[1]) for line in lines if (found := NAMED.search(line))]
            assert not job.status.state.is_final, job.status
            assert time.monotonic() < until, "\n".join(lines)
            job.pause(LOOK)
        (tmp_path / "enough").touch()
        rows = job.wait(timeout=PATIENCE)["out"]
        made = job.metrics().operator("visits").tuples_out
    finally:
        (tmp_path / "enough").touch()
        job.close()
    assert shares[0] / 100 == pytest.approx(SHARE, abs=0.1)
    assert Counter(t.key for t in rows) == Counter(itertools.islice(zipf(), made))


@pytest.mark.nightly
def test_a_job_that_starts_again_under_its_name_begins_with_what_paid(ray_cluster: str, tmp_path: Path) -> None:
    """What paid is kept by the coordinator's process, and read by another one."""
    reasons = []
    for run in ("first", "second"):
        folder = tmp_path / run
        folder.mkdir()
        topology = rel.Topology("again")
        stream = topology.source(rel.callable(lambda folder=folder: numbers(folder), Number), name="numbers")  # type: ignore[misc]
        stream.map(ask, name="ask", lane="python").sink(rel.count(), name="out")
        job = rel.submit(topology, rel.JobConfig(elasticity=rel.Elasticity(region_period=1.0)), address=ray_cluster)
        try:
            reaches(job, range(2, CPUS + 1))
            wait_until(job, lambda job=job: kept(job), LOOK)  # type: ignore[misc]
            [first, *_] = [one for one in job.adaptations() if one.pe == "regions" and one.changed]
            reasons.append(codes(first.decision.reasons))
            (folder / "enough").touch()
            job.wait(timeout=60)
        finally:
            (folder / "enough").touch()
            job.close()
    assert Code.REPLICAS_EARLIER not in reasons[0]
    assert Code.REPLICAS_EARLIER in reasons[1], reasons
