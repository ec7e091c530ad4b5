"""A real broker of Kafka for the tests: one a session, and topics of their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from tools import kafka

MISSING = kafka.missing()
needs_kafka = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} isn't here: ./dev programs")

_numbers = itertools.count()


class Topics:
    """Makes topics of a broker, and writes and reads messages by confluent-kafka.

    Args:
        broker: The broker.
        others: The others of its cluster.
    """

    def __init__(self, broker: kafka.Broker, *others: kafka.Broker) -> None:
        import confluent_kafka
        from confluent_kafka.admin import AdminClient

        self.broker = broker
        self.address = ",".join(one.address for one in (broker, *others))
        self._copies = 1 + len(others)
        self._settings: dict[str, Any] = {"bootstrap.servers": self.address, "log_level": 0}
        self._admin = AdminClient(self._settings)
        self._producer = confluent_kafka.Producer({**self._settings, "linger.ms": 2, "enable.idempotence": True})

    def make(self, partitions: int = 1, name: str = "", **settings: str) -> str:
        """Make a topic, and return its name."""
        from confluent_kafka.cimpl import NewTopic

        name = name or f"topic{next(_numbers)}"
        self._admin.create_topics([NewTopic(name, partitions, self._copies, config=settings)])[name].result()
        while self._admin.list_topics(name, 10).topics[name].error is not None:
            continue  # the broker makes it known a little later
        return name

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self._admin.delete_topics([name])[name].result()

    def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        from confluent_kafka.cimpl import NewPartitions

        self._admin.create_partitions([NewPartitions(name, partitions)])[name].result()
        self._producer.list_topics(name, 10)  # or the producer doesn't know them yet

    def committed(self, group: str, topic: str) -> list[int]:
        """Return the offsets that a group has committed; negative where there is none."""
        import confluent_kafka

        consumer = confluent_kafka.Consumer({**self._settings, "group.id": group})
        try:
            partitions = consumer.list_topics(topic, 10).topics[topic].partitions
            asked = [confluent_kafka.TopicPartition(topic, number) for number in partitions]
            return [one.offset for one in consumer.committed(asked, timeout=10)]
        except confluent_kafka.KafkaException:
            return [-1]  # its coordinator has just begun
        finally:
            consumer.close()

    def forget(self, group: str) -> None:
        """Remove the offsets of a group, as the brokers do in time."""
        self._admin.delete_consumer_groups([group])[group].result()

    def delete_before(self, name: str, offset: int) -> None:
        """Delete the messages of the first partition before an offset."""
        import confluent_kafka

        at = confluent_kafka.TopicPartition(name, 0, offset)
        self._admin.delete_records([at])[at].result()

    def write(self, topic: str, messages: Iterable[Any], partition: int = 0, **more: Any) -> None:
        """Write values into a partition."""
        for value in messages:
            self._producer.produce(topic, value, partition=partition, **more)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def read(self, topic: str) -> list[Any]:
        """Return the messages that a consumer with `read_committed` sees, by partition and offset."""
        import confluent_kafka

        own = {"group.id": "readers", "enable.auto.commit": "false", "isolation.level": "read_committed"}
        to_the_end = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
        consumer = confluent_kafka.Consumer({**self._settings, **own, **to_the_end})
        try:
            partitions = sorted(consumer.list_topics(topic, 10).topics[topic].partitions)
            consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
            messages, left = [], set(partitions)
            while left:
                # more than one at a time would wait for all of them, or for the whole time
                for message in [*consumer.consume(1, 1.0), *consumer.consume(10_000, 0)]:
                    error: Any = message.error()
                    if error is None:
                        messages.append(message)
                    else:
                        assert error.name() == "_PARTITION_EOF", error
                        left.discard(message.partition())
            return sorted(messages, key=lambda message: (message.partition(), message.offset()))
        finally:
            consumer.close()

    def transaction(self, topic: str, messages: Iterable[Any], commits: bool) -> None:
        """Write values in a transaction."""
        import confluent_kafka

        producer = confluent_kafka.Producer({**self._settings, "transactional.id": topic})
        producer.init_transactions(60)
        producer.begin_transaction()
        for value in messages:
            producer.produce(topic, value)
        producer.flush()
        producer.commit_transaction(60) if commits else producer.abort_transaction(60)


def part_files(folder: Path) -> list[tuple[Any, ...]]:
    """Return the rows of Parquet part files, in the order in which they were written."""
    files = sorted(folder.glob("*.parquet"), key=lambda file: int(file.name.split("-")[1]))
    return [tuple(row.values()) for file in files for row in parquet.read_table(file).to_pylist()]


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[kafka.Broker]:
    """The broker of this session."""
    with kafka.running() as broker:
        yield broker


@pytest.fixture(scope="session")
def topics(kafka_broker: kafka.Broker) -> Topics:
    """Topics of the session's broker."""
    return Topics(kafka_broker)
