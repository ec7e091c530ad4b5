"""A topic into `count`, by one system, in a process of its own: `reads.py SYSTEM BROKERS TOPIC RECORDS`.

Prints the records after the first look, and their seconds and CPU seconds of this process. All systems have the same
back-off of librdkafka's fetch. It runs in the environment of its system, so it imports nothing else.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

TUNED = {"fetch.queue.backoff.ms": "2"}
BATCH = 10_000  # messages
LOOK = 0.001  # seconds; what is fetched before the first look costs no CPU time here


class Clock:
    """Times records from the first ones on."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.seen, self.first = wanted, 0, 0
        self.began = self.began_cpu = self.seconds = self.cpu = 0.0

    def add(self, records: int) -> bool:
        """Count records; return whether all are there."""
        self.seen += records
        if not self.first and self.seen:
            self.first, self.began, self.began_cpu = self.seen, time.perf_counter(), time.process_time()
        if self.seen >= self.wanted and not self.seconds:
            self.seconds, self.cpu = time.perf_counter() - self.began, time.process_time() - self.began_cpu
        return self.seen >= self.wanted


def ours(clock: Clock, brokers: str, topic: str, schema: Any = bytes) -> None:
    import rayelastic as rel

    topology = rel.Topology("reads")
    topology.source(rel.kafka(brokers, topic, schema, stop="end"), name="messages").sink(rel.count(), name="out")
    job = rel.start(topology)
    try:
        while not job.metrics().operator("out").tuples_in:
            job.pause(LOOK)
        clock.add(job.metrics().operator("out").tuples_in)
        clock.add(job.wait()["out"] - clock.seen)
    finally:
        job.close()


def ours_json(clock: Clock, brokers: str, topic: str) -> None:
    ours(clock, brokers, topic, {"user": str, "n": int, "price": float, "ok": bool})


def confluent(clock: Clock, brokers: str, topic: str) -> None:
    import confluent_kafka

    settings = {"bootstrap.servers": brokers, "group.id": "reads", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": False, **TUNED})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
    while not clock.add(len(consumer.consume(BATCH, 0.1))):
        pass
    consumer.close()


def bytewax(clock: Clock, brokers: str, topic: str) -> None:
    import bytewax.operators as op
    from bytewax.connectors.kafka import KafkaSource
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, run_main

    def counted(batch: list[Any]) -> list[Any]:
        clock.add(len(batch))
        return []

    flow = Dataflow("reads")
    source = KafkaSource([brokers], [topic], tail=False, batch_size=BATCH, add_config=TUNED)
    op.output("out", op.flat_map_batch("count", op.input("in", flow, source), counted), TestingSink([]))
    run_main(flow)


def quixstreams(clock: Clock, brokers: str, topic: str) -> None:
    from quixstreams import Application

    application = Application(
        broker_address=brokers,
        consumer_group=f"{uuid.uuid4()}",
        auto_offset_reset="earliest",
        consumer_extra_config=TUNED,
        loglevel="ERROR",
    )

    def counted(_: Any) -> None:
        if clock.add(1):
            application.stop()

    application.dataframe(application.topic(topic, value_deserializer="bytes")).update(counted)
    application.run()


READS: dict[str, Callable[[Clock, str, str], None]] = {
    "rayelastic": ours,
    "rayelastic_json": ours_json,
    "confluent_kafka": confluent,
    "bytewax": bytewax,
    "quixstreams": quixstreams,
}

if __name__ == "__main__":
    system, brokers, topic, records = sys.argv[1:]
    clock = Clock(int(records))
    READS[system](clock, brokers, topic)
    print(json.dumps({"records": clock.seen - clock.first, "seconds": clock.seconds, "cpu": clock.cpu}))
