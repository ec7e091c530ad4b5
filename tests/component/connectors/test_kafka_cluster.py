"""A cluster of three brokers of Kafka, of which one after the other is killed and returns."""

from __future__ import annotations

import json
import os
import random
from contextlib import closing
from pathlib import Path

import pytest

import rayelastic as rel
from tests.kafka import Topics, needs_kafka
from tests.waiting import wait_until
from tools import kafka

pytestmark = [needs_kafka, pytest.mark.nightly]

KILLS = int(os.environ.get("KILLS", "10"))
KEYS = 7
BATCH = 2000  # messages for each kill
PATIENCE = 300.0  # seconds; a killed broker is only missed after its session


@pytest.mark.timeout(1800)
@pytest.mark.guarantee(
    source="a topic of Kafka",
    sink="a topic of Kafka, `delivery='exactly-once'`",
    lost="one of three brokers, again and again",
    rows="each once",
)
def test_each_count_is_there_once_though_brokers_are_killed(tmp_path: Path) -> None:
    dice = random.Random(KILLS)
    with kafka.cluster(3) as brokers:
        topics = Topics(*brokers)
        numbers, counts = topics.make(3), topics.make(3)
        topology = rel.Topology("through_three_brokers")
        source = rel.kafka(topics.address, numbers, {"k": int, "n": int})
        counted = (
            topology.source(source, name="messages")
            .key_by("k")
            .aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count())
        )
        into = rel.to_kafka(topics.address, counts, fields={"key": "k"}, delivery="exactly-once")
        counted.sink(into, name="out")
        written = 0

        def write() -> None:
            nonlocal written
            for n in range(written, written + BATCH):
                topics.write(numbers, [b'{"k": %d, "n": %d}' % (n % KEYS, n)], n % KEYS % 3)
            written += BATCH

        config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "checkpoints", every=0.5, restarts=100))
        with closing(rel.start(topology, config)) as job:
            write()
            for _ in range(KILLS):
                wait_until(job, lambda: topics.read(counts), look=0.2, patience=PATIENCE)
                victim = dice.choice(brokers)
                victim.kill()
                write()
                taken = job.status.checkpoints.taken
                wait_until(job, lambda taken=taken: job.status.checkpoints.taken > taken, look=0.2, patience=PATIENCE)  # type: ignore[misc]
                victim.start()
            wait_until(job, lambda: len(topics.read(counts)) >= written, look=0.5, patience=PATIENCE)
        read = [json.loads(message.value()) for message in topics.read(counts)]
    assert sorted((one["n"], one["all"]) for one in read) == [(n, n // KEYS + 1) for n in range(written)]
    for key in range(KEYS):
        mine = [one["all"] for one in read if one["k"] == key]
        assert mine == sorted(mine)
