"""Jobs on Ray that read and write topics of Kafka, and whose processes are killed: no row is lost or doubled."""

from __future__ import annotations

import functools
import json
import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest
import ray
from pyarrow import parquet

import rayelastic as rel
from tests.cluster.test_recovery import kill, wait_for_checkpoint
from tests.kafka import Topics, kafka_broker, needs_kafka, part_files, topics
from tests.waiting import wait_until

__all__ = ["kafka_broker", "topics"]

pytestmark = [pytest.mark.cluster, needs_kafka]

NIGHTLY_KILLS = int(os.environ.get("KILLS", "20"))
KEYS = 7
PARTITIONS, EARLY, ALL = 3, 4000, 5000  # messages of a partition, before the kills and in all


@pytest.mark.guarantee(
    source="a topic of Kafka",
    sink="Parquet files",
    lost="the PE that reads, then the one that writes",
    rows="each once",
)
def test_each_message_is_read_once_though_processes_are_killed(
    ray_cluster: None, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make(PARTITIONS)
    for partition in range(PARTITIONS):
        topics.write(topic, [b'{"n": %d}' % n for n in range(EARLY)], partition)
    topology = rel.Topology("kafka_to_files")
    source = rel.kafka(topics.address, topic, {"n": int}, fields={"partition": "p", "offset": "o"})
    paced = topology.source(source, name="messages").throttle(2000, name="paced")
    paced.sink(rel.parquet(str(tmp_path / "out")), name="out")
    pes = {"messages": 0, "paced": 0, "out": 1}
    job = rel.submit(topology, rel.JobConfig(pes=pes, checkpoint=rel.Checkpoint(every=0.5, restarts=100)))
    try:
        for pe in ("pe0", "pe1"):
            wait_for_checkpoint(job)
            kill(job, pe)
        for partition in range(PARTITIONS):
            topics.write(topic, [b'{"n": %d}' % n for n in range(EARLY, ALL)], partition)
        while _shown(tmp_path / "out") < PARTITIONS * ALL:
            job.pause(0.1)
        job.stop(tmp_path / "saved")
    finally:
        job.close()
    read = part_files(tmp_path / "out")
    assert sorted(read) == [(n, p, n) for n in range(ALL) for p in range(PARTITIONS)]
    for partition in range(PARTITIONS):
        offsets = [o for _, p, o in read if p == partition]
        assert offsets == sorted(offsets)
    assert job.status.checkpoints.restarts >= 2


@pytest.mark.guarantee(
    source="Parquet files, then a topic of Kafka",
    sink="Parquet files",
    lost="the PE that reads, in either part",
    rows="each once",
)
def test_a_topic_continues_files_though_the_process_that_reads_is_killed(
    ray_cluster: None, topics: Topics, tmp_path: Path
) -> None:
    topic, out, past = topics.make(PARTITIONS), tmp_path / "out", 4000
    for partition in range(PARTITIONS):
        topics.write(topic, [b'{"n": %d}' % n for n in range(EARLY)], partition)
    columns = {"n": range(past), "p": [-1] * past, "o": range(past)}
    parquet.write_table(pa.table(columns), tmp_path / "past.parquet", row_group_size=500)
    topology = rel.Topology("history_and_kafka")
    history = rel.parquet(tmp_path / "past.parquet", {"n": int, "p": int, "o": int})
    live = rel.kafka(topics.address, topic, {"n": int}, fields={"partition": "p", "offset": "o"})
    both = topology.source(rel.history(history).then(live), name="both")
    both.throttle(2000, name="paced").sink(rel.parquet(str(out)), name="out")
    pes = {"both": 0, "paced": 0, "out": 1}
    job = rel.submit(topology, rel.JobConfig(pes=pes, checkpoint=rel.Checkpoint(every=0.5, restarts=100)))
    try:
        wait_for_checkpoint(job)
        assert _shown(out) < past
        kill(job, "pe0")
        for rows in (past + 1, past + PARTITIONS * EARLY // 2):
            wait_until(job, functools.partial(_has_shown, out, rows))
            kill(job, "pe0")
        for partition in range(PARTITIONS):
            topics.write(topic, [b'{"n": %d}' % n for n in range(EARLY, ALL)], partition)
        wait_until(job, functools.partial(_has_shown, out, past + PARTITIONS * ALL))
        job.stop(tmp_path / "saved")
    finally:
        job.close()
    read = part_files(out)
    assert read[:past] == [(n, -1, n) for n in range(past)]
    assert sorted(read[past:]) == [(n, p, n) for n in range(ALL) for p in range(PARTITIONS)]
    assert job.status.checkpoints.restarts >= 3


def _has_shown(folder: Path, rows: int) -> bool:
    return _shown(folder) >= rows


def _shown(folder: Path) -> int:
    files = list(folder.glob("*.parquet"))
    return sum(parquet.read_metadata(file).num_rows for file in files)


@pytest.mark.parametrize("kills", [2, pytest.param(NIGHTLY_KILLS, marks=pytest.mark.nightly)])
@pytest.mark.guarantee(
    source="a topic of Kafka",
    sink="a topic of Kafka, `delivery='exactly-once'`",
    lost="the PE that writes, and the coordinator, again and again",
    rows="each once",
)
def test_a_consumer_sees_each_count_once_though_processes_are_killed(
    ray_cluster: None, topics: Topics, kills: int
) -> None:
    topic, counts = topics.make(2), topics.make(2)
    written = 0

    def write() -> None:
        nonlocal written
        for n in range(written, written + 1000):
            topics.write(topic, [b'{"k": %d, "n": %d}' % (n % KEYS, n)], n % KEYS % 2)
        written += 1000

    topology = rel.Topology(f"kafka_to_kafka_{kills}")
    keyed = topology.source(rel.kafka(topics.address, topic, {"k": int, "n": int}), name="messages").key_by("k")
    counted = keyed.aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count())
    into = rel.to_kafka(topics.address, counts, fields={"key": "k"}, delivery="exactly-once")
    counted.sink(into, name="out")
    pes = {"messages": 0, "counts": 0, "out": 1}
    job = rel.submit(topology, rel.JobConfig(pes=pes, checkpoint=rel.Checkpoint(every=0.5, restarts=1000)))
    try:
        for number in range(kills):
            write()
            wait_for_checkpoint(job)
            kill_coordinator(job) if number % 2 else kill(job, "pe1")
        write()
        while (seen := len(topics.read(counts))) < written:
            job.pause(0.2)
        assert seen == written
    finally:
        job.close()
    read = [json.loads(message.value()) for message in topics.read(counts)]
    assert sorted((one["n"], one["all"]) for one in read) == [(n, n // KEYS + 1) for n in range(written)]
    for key in range(KEYS):
        mine = [one["all"] for one in read if one["k"] == key]
        assert mine == sorted(mine)


def kill_coordinator(job: rel.Job) -> None:
    os.kill(ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)  # type: ignore[attr-defined]
    job.plan()  # waits for the next one
