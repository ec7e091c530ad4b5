"""Joins as in SQL on Ray: in replicas that come and go, and across the loss of the process that has a join."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.runtime.values.status import State
from tests.waiting import wait_until, wait_until_received

pytestmark = [pytest.mark.timeout(300), pytest.mark.edges]

KEYS = 5000
PAUSE = 0.005  # seconds after 100 orders: other processes need the CPU, too
KNOWN = [(key, f"number {key}") for key in range(-50, KEYS, 2)]


class Order(NamedTuple):
    user: int
    number: int


def orders(enough: Path | None, count: int = 0) -> Iterator[Order]:
    """Without end, until a file is there, with a pause after each 100; or so many."""
    dice, nobody = random.Random(7), threading.Event()
    number = 0
    while number != count or enough is not None:
        if enough is not None and number % 100 == 0 and enough.exists():
            return
        if enough is not None and number % 100 == 0:
            nobody.wait(PAUSE)
        yield Order(dice.randrange(KEYS), number)
        number += 1


def topology_of(source: Any, name: str) -> rel.Topology:
    """Orders with a table that ends, and with rare orders of the same stream."""
    topology = rel.Topology(name)
    made = topology.source(source, name="orders")
    made.sink(rel.count(), name="count")
    keyed = made.key_by("user")
    known = topology.source(rel.rows(KNOWN, {"user": int, "name": str}), name="known").key_by("user")
    keyed.join(known, name="named", how="full").sink(rel.list(), name="out")
    rare = made.filter(lambda t: t.number % 1000 == 0, name="rare").map(
        lambda t: Order(t.user + 1, t.number), name="next"
    )
    keyed.join(rare.key_by("user"), name="pairs", how="right").sink(rel.list(), name="pairs_out")
    return topology


def flows(job: rel.Job, tuples: int) -> None:
    before = job.metrics().operator("pairs").tuples_in
    wait_until_received(job, "pairs", before + tuples)


def same(result: rel.JobResult, name: str) -> None:
    count = result["count"]
    expected = rel.run(topology_of(rel.callable(lambda: orders(None, count), Order), name))
    for sink in ("out", "pairs_out"):
        assert Counter(map(tuple, result[sink])) == Counter(map(tuple, expected[sink]))
    users = {t.user for t in expected["out"] if t.number is not None}
    assert Counter(t.number is None for t in result["out"]) == {
        False: count,
        True: sum(key not in users for key, _ in KNOWN),
    }


def test_joins_across_the_loss_of_their_process(ray_cluster: str, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    source = rel.callable(lambda: orders(enough), Order)
    pins = {"orders": 0, "known": 0, "named": 1, "pairs": 1}
    config = rel.JobConfig(pes=pins, checkpoint=rel.Checkpoint(every=0.5, restarts=20))
    job = rel.submit(topology_of(source, "joins"), config, address=ray_cluster)
    try:
        taken = job.status.checkpoints.taken
        while job.status.checkpoints.taken == taken:
            flows(job, 100)
        os.kill(next(one.pid for one in job.status.pes if one.pe == job.plan().pe_of("pairs")), signal.SIGKILL)
        wait_until(job, lambda: job.status.checkpoints.restarts != 0 and job.status.state is State.RUNNING)
        flows(job, 1000)
        enough.touch()
        result = job.wait(timeout=120)
    finally:
        enough.touch()
        job.close()
    same(result, "joins-alone")


def test_joins_in_replicas_on_ray(ray_cluster: str, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    source = rel.callable(lambda: orders(enough), Order)
    job = rel.submit(topology_of(source, "joins-wide"), rel.JobConfig(regions="manual"), address=ray_cluster)
    try:
        for operator, replicas in (("named", 2), ("pairs", 2)):
            flows(job, 1000)
            region = job.plan().region_of(operator).region.name
            assert job.rescale(region, replicas).region(region).replicas == replicas
        flows(job, 1000)
        enough.touch()
        result = job.wait(timeout=120)
    finally:
        enough.touch()
        job.close()
    same(result, "joins-wide-alone")
