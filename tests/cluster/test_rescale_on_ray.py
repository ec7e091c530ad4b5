"""Word count goes from one to two replicas and back while it runs, each replica in an actor of its own.

And such actors share the CPUs of their host fairly, as their coordinator tells them.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import rayelastic as rel
from rayelastic.reasons import Code
from rayelastic.runtime.values.adaptation import Adaptation
from rayelastic.topologies.word_count import Line, Word, words
from tests.component.policy.computing import computing
from tests.waiting import wait_until_received

pytestmark = pytest.mark.timeout(180)

PAUSE = 0.005  # seconds after 100 lines: other processes need the CPU, too
VOCABULARY = ["alpha", "beta", "naïve", "日本語", "a-word-longer-than-twelve-bytes", *map(str, range(200))]


def lines(seed: int, enough: Path, pause: float = 0.0) -> Iterator[Line]:
    """Lines without end, until a file is there, with a pause (s) after each 100; the same for the same seed."""
    dice, nobody = random.Random(seed), threading.Event()
    while True:
        nobody.wait(pause)
        for _ in range(100):
            yield Line(" ".join(dice.choices(VOCABULARY, k=8)))
        if enough.exists():
            return


def expected(seed: int, count: int, enough: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for _, line in zip(range(count), lines(seed, enough), strict=False):
        found.update(line.line.split())
    return found


def word_count(enough: Path) -> rel.Topology:
    topology = rel.Topology("elastic-words")
    split = topology.source(rel.callable(lambda: lines(3, enough, PAUSE), Line), name="lines").flat_map(
        words, name="words", schema=Word
    )
    split.key_by("word").aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    return topology


def flows(job: rel.Job, tuples: int = 5000) -> None:
    before = job.metrics().operator("counts").tuples_in
    wait_until_received(job, "counts", before + tuples)


def test_word_count_goes_to_two_replicas_and_back(ray_cluster: str, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    job = rel.submit(word_count(enough), rel.JobConfig(regions="manual"), address=ray_cluster)
    try:
        region = next(planned.region.name for planned in job.plan().regions if planned.region.keys)
        processes = set()
        for replicas in (2, 1, 2):
            flows(job)
            job.rescale(region, replicas)
            processes.add(frozenset(status.pid for status in job.status.pes))
            assert len(job.status.pes) == replicas
        assert len(processes) == 3, "each new replica is a process of its own"
        flows(job)
        made = tmp_path / "not there"
        enough.touch()
        rows = job.wait(timeout=60)["out"]
        count = job.metrics().operator("lines").tuples_out
        assert {t.word: t.n for t in rows} == expected(3, count, made)
    finally:
        enough.touch()
        job.close()


def test_an_element_keeps_neither_sockets_nor_threads_of_replicas_that_left(ray_cluster: str, tmp_path: Path) -> None:
    enough, rounds = tmp_path / "enough", 5
    job = rel.submit(word_count(enough), rel.JobConfig(regions="manual"), address=ray_cluster)
    try:
        region = next(planned.region.name for planned in job.plan().regions if planned.region.keys)
        flows(job)
        stays = psutil.Process(job.status.pes[0].pid)
        taken: list[tuple[int, int]] = []  # open files and threads, with one replica
        for _ in range(rounds):
            for replicas in (2, 1):
                job.rescale(region, replicas)
            taken.append((stays.num_fds(), stays.num_threads()))
        # The first round warms up; without the mend each round leaves two links: four files and four threads.
        until = time.monotonic() + 20
        while any(now > then + rounds for now, then in zip(taken[-1], taken[0], strict=True)):
            assert time.monotonic() < until, taken
            job.pause(0.1)
            taken.append((stays.num_fds(), stays.num_threads()))
    finally:
        enough.touch()
        job.close()


def test_two_elements_share_their_host_as_their_coordinator_says(ray_cluster: str) -> None:
    """With all defaults but the period, which would be five seconds, and two processes in place of one."""
    job = rel.submit(
        computing(8), rel.JobConfig(pes=2, elasticity=rel.Elasticity(thread_period=0.2)), address=ray_cluster
    )
    try:
        for done in job.adaptations(follow=True, every_pass=True):
            if isinstance(done, Adaptation) and done.observation.budget is not None:
                break
        assert done.decision.reasons[0].code is Code.CPU_BUDGET
        while None in (budgets := [pe.budget for pe in job.status.pes]):  # it is asked for every two seconds
            job.pause(0.2)
        shares = [budget for budget in budgets if budget is not None]  # two or more: it may have grown by itself
        assert len({share.of for share in shares}) == 1
        assert sum(share.cpus for share in shares) >= shares[0].of
        assert not any(share.one_process for share in shares)
    finally:
        job.cancel(drain=False)
        job.close()
