"""A job on Ray that reads a topic of Kafka, and whose processes are killed: no row is lost or doubled in files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet

import rayelastic as rel
from tests.cluster.test_recovery import kill, wait_for_checkpoint
from tests.kafka import Topics, kafka_broker, needs_kafka, part_files, topics

__all__ = ["kafka_broker", "topics"]

pytestmark = [pytest.mark.cluster, needs_kafka]

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


def _shown(folder: Path) -> int:
    files = list(folder.glob("*.parquet"))
    return sum(parquet.read_metadata(file).num_rows for file in files)
