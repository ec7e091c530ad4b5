"""Writes a stream to a topic of Kafka.

At least once: an idempotent producer sends messages at once, and a checkpoint waits until all are acknowledged.

Exactly once: `EpochSink` with a transaction for each epoch.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.kafka.client import SHARED, Client, Explained
from rayelastic.connectors.kafka.declaration import Delivery
from rayelastic.connectors.kafka.messages import Encoder, send
from rayelastic.connectors.kafka.transactions import TopicTransactions, raising
from rayelastic.connectors.output.epochs import EpochSink, FencedError, Target
from rayelastic.connectors.output.record import BlobStore, Output, SinkContext
from rayelastic.connectors.problem import Problem
from rayelastic.connectors.secret import read_all
from rayelastic.connectors.sink import NewSink, SinkOperator
from rayelastic.errors import ErrorCode, SinkError, SinkLostError, StateError

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.connectors.kafka.declaration import KafkaSink
    from rayelastic.graph.records.schema import Schema

__all__ = ["SendingTopic", "TransactionalTopic", "kafka_sink"]

PATIENCE = 30_000  # ms for the brokers to acknowledge a message
REQUEST = 10_000  # ms for a broker to answer a request, before librdkafka repeats it
LOOK = 0.1  # seconds between two looks whether a sink has been closed
MESSAGE_BYTES = 1_000_000  # librdkafka's default of message.max.bytes
OVERHEAD = 128  # bytes of a message and its batch besides key and value, at most


def kafka_sink(new: NewSink, body: KafkaSink) -> SinkOperator:
    """Make a sink that writes to a topic.

    Raises:
        SinkError: It can't be written, or the job takes no checkpoints and should write exactly once.
        SinkLostError: No broker answers.
        StateError: The topic isn't what the earlier run left.
    """
    if body.delivery is Delivery.AT_LEAST_ONCE:
        problem = Problem()
        sending = SendingTopic(body, new.schema, new.before)
        native = new.batches(problem.of(sending.write))
        return SinkOperator(native, sending, new.before, sending.abandon, problem=problem, left_out=sending.left_out)
    if not new.past.takes_checkpoints:
        raise SinkError(
            "delivery='exactly-once' needs checkpoints, and this job takes none",
            hint="Pass rel.JobConfig(checkpoint=rel.Checkpoint(...)), or write at least once",
            code=ErrorCode.INVALID_SETTING,
        )
    return new.by_epoch(TransactionalTopic(body, new.schema, new.context))


class Topic(Target):
    """A topic to write to: it is checked, and created if asked for.

    Args:
        body: The description of the sink.
        schema: The schema of its tuples.

    Raises:
        SinkError: It can't be written.
        SinkLostError: No broker answers.
    """

    scheme = "kafka:"
    kind = "topic"
    unit = "messages"
    refresh = 3600.0  # the brokers forget offsets that are days old

    def __init__(self, body: KafkaSink, schema: Schema) -> None:
        self.name = body.topic
        self.explained = Explained(body.brokers, body.topic, SinkError, SinkLostError)
        self.settings = {
            "bootstrap.servers": body.brokers,
            "client.id": "rayelastic",
            "log_level": "0",
            "partitioner": "murmur2_random",  # as the clients in Java
            "linger.ms": "5",
            "message.timeout.ms": f"{PATIENCE}",
            "socket.timeout.ms": f"{REQUEST}",
            **read_all(SinkError, dict(body.settings)),
            "enable.idempotence": "true",
        }
        shared = {name: value for name, value in self.settings.items() if name.startswith(SHARED)}
        self._client = Client({**shared, "group.id": "rayelastic"}, body.topic, self.explained)
        try:
            if body.create:
                self._client.create(body.create)
            partitions = len(self._client.partitions())  # raises if there is no such topic
            limit = int(self.settings.get("message.max.bytes", MESSAGE_BYTES))
            if "compression.type" not in self.settings and "compression.codec" not in self.settings:
                limit = min(limit, self._client.message_bytes() - OVERHEAD)
            self._encoder = Encoder(body, schema, limit, partitions, lambda: len(self._client.partitions()))
            self.left_out = self._encoder.left_out
            self._id = self._client.topic_id()
        except BaseException:
            self._client.close()
            raise

    @property
    def id(self) -> str:
        """Its id, which a recreated one doesn't share."""
        return self._id

    def encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the messages of a batch; see `Encoder`."""
        return self._encoder.of(batch)

    def transactions(self, identity: str, run: str) -> TopicTransactions:  # noqa: ARG002  (tokens have all runs)
        """Return the transactions of a sink."""
        return TopicTransactions(self.settings, self.name, identity, self.explained)

    def lost(self, epoch: int) -> StateError:
        """Return the error of an offset that is missing."""
        return StateError(
            f"topic {self.name!r} has lost the offset that says which messages of the checkpoint it has: brokers keep "
            "it for offsets.retention.minutes",
            hint=f"Compare the last message with header 'rayelastic' with epoch {epoch} of the checkpoint. To continue "
            "without the messages in it: rel.Snapshot(..., drop=['its name'])",
            code=ErrorCode.MISSING_OUTPUT,
        )

    def ended(self, fenced: FencedError) -> SinkLostError:
        """Return the error of a transaction that the brokers ended."""
        return SinkLostError(
            f"the brokers ended a transaction of topic {self.name!r}: {fenced}",
            hint="If epochs are long, pass settings={'transaction.timeout.ms': 300000}",
        )

    def close(self) -> None:
        """End the connections."""
        self._client.close()


class SendingTopic:
    """Sends messages at once: at least once.

    Args:
        body: The description of the sink.
        schema: The schema of its tuples.
        before: The rows that it had received up to the restored checkpoint.

    Raises:
        SinkError: It can't be written.
        SinkLostError: No broker answers.
    """

    def __init__(self, body: KafkaSink, schema: Schema, before: int) -> None:
        import confluent_kafka

        self._body = body
        self._rows = before
        self._topic = topic = Topic(body, schema)
        self.left_out = topic.left_out
        self._failed: list[tuple[str, str]] = []  # errors of messages that aren't acknowledged
        self._closed = threading.Event()
        with raising(topic.explained):
            settings: dict[str, Any] = {**topic.settings, "delivery.report.only.error": True}
            settings["on_delivery"] = self._report
            self._producer = confluent_kafka.Producer(settings)

    def write(self, batch: pa.RecordBatch) -> None:
        """Send a batch.

        Raises:
            SinkError: A message can't be written, this one or one before.
            SinkLostError: No broker answers.
        """
        messages = self._topic.encode(batch)
        with raising(self._topic.explained):
            send(self._producer, self._body.topic, messages, self._check)
            self._producer.poll(0)
        self._check()
        self._rows += batch.num_rows

    def prepare(self, epoch: int, store: BlobStore) -> Output:  # noqa: ARG002  (the rows are in the topic)
        """Wait until all messages are acknowledged."""
        self._flush()
        return Output("", self._rows, epoch)

    def commit(self, epoch: int) -> None:
        """Do nothing: there is nothing to show."""

    def close(self) -> str:
        """Wait until all messages are acknowledged; return the topic's name."""
        if not self._closed.is_set():
            self._flush()
            self.abandon()
        return self._body.topic

    def abandon(self) -> None:
        """Send nothing more. Safe to repeat."""
        if not self._closed.is_set():
            self._closed.set()
            self._producer.purge()
            self._topic.close()

    def output(self, rows: int, store: BlobStore) -> Output:  # noqa: ARG002  (the rows are in the topic)
        """Wait until all messages are acknowledged, for a stopped job."""
        self._flush()
        return Output("", self._rows)

    # -- implementation -------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        with raising(self._topic.explained):
            while self._producer.flush(LOOK):
                self._check()
        self._check()

    def _report(self, error: Any, message: object) -> None:  # noqa: ARG002  (librdkafka's signature)
        if error is not None:
            self._failed.append((error.name(), error.str()))

    def _check(self) -> None:
        if self._failed:
            raise self._topic.explained.of(*self._failed[0])
        if self._closed.is_set():
            raise SinkLostError("the sink has been closed")


class TransactionalTopic(EpochSink):
    """Writes each epoch in a transaction, once its checkpoint is complete.

    Args:
        body: The description of the sink.
        schema: The schema of its tuples.
        context: The writer, and the run that it continues.

    Raises:
        SinkError: It can't be written; see also `EpochSink`.
    """

    def __init__(self, body: KafkaSink, schema: Schema, context: SinkContext) -> None:
        super().__init__(Topic(body, schema), context)
