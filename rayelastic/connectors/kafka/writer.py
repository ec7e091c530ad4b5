"""Writes a stream to a topic of Kafka.

At least once: an idempotent producer sends messages at once, and a checkpoint waits until all are acknowledged.

Exactly once: a checkpoint stores the messages since the last one (write-ahead), and one transaction writes them once it
is complete, together with its number. A sink has an identity that outlives its processes: that of its first run, stored
in checkpoints. A process that restores a checkpoint first fences the one before. Then it reads which epoch the topic
has, and decides what is to be written.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.kafka.client import SHARED, Client, Explained
from rayelastic.connectors.kafka.declaration import Delivery
from rayelastic.connectors.kafka.messages import Encoder, send
from rayelastic.connectors.kafka.transactions import MOST_RUNS, FencedError, Token, Transactions, raising
from rayelastic.connectors.output.record import Blob, BlobStore, Output, SinkContext
from rayelastic.connectors.problem import Problem
from rayelastic.connectors.secret import read_all
from rayelastic.connectors.sink import NewSink, SinkOperator
from rayelastic.errors import ErrorCode, SinkError, SinkLostError, SinkTakenError, StateError

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.connectors.kafka.declaration import KafkaSink
    from rayelastic.graph.records.schema import Schema

__all__ = ["SendingTopic", "TransactionalTopic", "kafka_sink"]

LOCATION = "kafka:"  # the prefix of the identity in an output's location
PATIENCE = 30_000  # ms for the brokers to acknowledge a message
REQUEST = 10_000  # ms for a broker to answer a request, before librdkafka repeats it
LOOK = 0.1  # seconds between two looks whether a sink has been closed
MESSAGE_BYTES = 1_000_000  # librdkafka's default of message.max.bytes
OVERHEAD = 128  # bytes of a message and its batch besides key and value, at most
ATTEMPTS = 3  # a process that was replaced may fence its successor once more, and writes nothing
REFRESH = 3600.0  # seconds after which a token is written again: the brokers forget those that are days old


def kafka_sink(new: NewSink, body: KafkaSink) -> SinkOperator:
    """Make a sink that writes to a topic.

    Raises:
        SinkError: It can't be written, or the job takes no checkpoints and should write exactly once.
        SinkLostError: No broker answers.
        StateError: The topic isn't what the earlier run left.
    """
    problem = Problem()
    if body.delivery is Delivery.AT_LEAST_ONCE:
        sending = SendingTopic(body, new.schema, new.before)
        native = new.batches(problem.of(sending.write))
        return SinkOperator(native, sending, new.before, sending.abandon, problem=problem, left_out=sending.left_out)
    if not new.past.takes_checkpoints:
        raise SinkError(
            "delivery='exactly-once' needs checkpoints, and this job takes none",
            hint="Pass rel.JobConfig(checkpoint=rel.Checkpoint(...)), or write at least once",
            code=ErrorCode.INVALID_SETTING,
        )
    writer = TransactionalTopic(body, new.schema, new.context)
    native = new.batches(problem.of(writer.write))
    return SinkOperator(
        native,
        writer,
        new.before,
        writer.abandon,
        stops=writer.save,
        begin=writer.begin,
        problem=problem,
        left_out=writer.left_out,
    )


class Topic:
    """A topic to write to: it is checked, and created if asked for.

    Args:
        body: The description of the sink.
        schema: The schema of its tuples.

    Raises:
        SinkError: It can't be written.
        SinkLostError: No broker answers.
    """

    def __init__(self, body: KafkaSink, schema: Schema) -> None:
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
            self.encoder = Encoder(body, schema, limit, partitions, lambda: len(self._client.partitions()))
            self.id = self._client.topic_id()
        except BaseException:
            self._client.close()
            raise

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
        self.left_out = topic.encoder.left_out
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
        messages = self._topic.encoder.of(batch)
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


@dataclass(frozen=True, slots=True)
class Epoch:
    """The messages of an epoch.

    Args:
        number: Its number.
        by: The run that made it.
        batches: See `Encoder`.
    """

    number: int
    by: str
    batches: tuple[pa.RecordBatch, ...]

    @property
    def rows(self) -> int:
        """The number of messages."""
        return sum(batch.num_rows for batch in self.batches)

    def to_bytes(self) -> bytes:
        """Return them as an Arrow IPC stream."""
        import pyarrow as pa

        into = io.BytesIO()
        with pa.ipc.new_stream(into, self.batches[0].schema) as stream:
            for batch in self.batches:
                stream.write_batch(batch)
        return into.getvalue()


@dataclass(frozen=True, slots=True)
class Written:
    """What a checkpoint says of a topic.

    Args:
        topic: The topic's name.
        id: Its id, which a recreated one doesn't share.
        run: The run that took the checkpoint.
        epoch: The epoch that was in the topic.
        by: The run that made it.
        epochs: The epochs whose messages are in the checkpoint, a blob each.
    """

    topic: str
    id: str
    run: str
    epoch: int
    by: str
    epochs: tuple[int, ...] = ()


class TransactionalTopic:
    """Writes each epoch in a transaction, once its checkpoint is complete.

    Its methods except `commit` are called by one thread at a time.

    Args:
        body: The description of the sink.
        schema: The schema of its tuples.
        context: The writer, and the run that it continues.

    Raises:
        SinkError: It can't be written.
        SinkLostError: No broker answers.
        SinkTakenError: Another run has continued from the same checkpoint.
        StateError: The topic isn't what the earlier run left.
    """

    def __init__(self, body: KafkaSink, schema: Schema, context: SinkContext) -> None:
        before = context.outputs.get(context.sink)
        if before is not None and not before.location.startswith(LOCATION):
            before = None  # the sink of that name wrote to another location
        self._body = body
        self._run = context.run
        self._blobs, self._keep = context.blobs, context.keep
        own = hashlib.sha256(f"{context.run}/{context.sink}".encode()).hexdigest()[:16]
        self._location = before.location if before is not None else LOCATION + own
        self._lineage = before.lineage if before is not None else context.run
        self._rows = before.rows if before is not None else 0
        self._epoch = before.epoch if before is not None else 0
        self._topic = topic = Topic(body, schema)
        self.left_out = topic.encoder.left_out
        name = f"rayelastic-{self._location.removeprefix(LOCATION)}"
        self._transactions = Transactions(topic.settings, body.topic, name, topic.explained)
        self._current: list[pa.RecordBatch] = []
        self._showing = threading.Lock()  # held while a transaction is written
        self._lock = threading.Lock()  # guards the fields below
        self._complete = self._epoch  # the newest complete checkpoint
        self._closed = False
        self._token: Token | None = None  # the last one that was written by this process
        self._written_at = 0.0  # when that was
        self._problem: SinkError | None = None  # of the last transaction, if it failed
        self._files: dict[int, tuple[BlobStore, tuple[str, ...]]] = {}  # {epoch: blobs of its checkpoint}
        self._kept: list[int] = []  # complete checkpoints that can be restored
        try:
            self._before = self._written_before(before)
            self._pending = self._restored(before, context)
            with contextlib.suppress(SinkLostError):  # a transaction is open: `begin` ends it
                self._check(self._transactions.token())
        except BaseException:
            self.abandon()
            raise

    def begin(self) -> str:
        """Fence other writers, and write what the restored checkpoint has and the topic lacks.

        Returns:
            An empty text: it removes nothing.

        Raises:
            SinkError: See the constructor.
            StateError: See the constructor.
        """
        with self._showing:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    self._take_over()
                    break
                except FencedError as fenced:
                    if attempt == ATTEMPTS:
                        raise SinkLostError(
                            f"another process writes to topic {self._body.topic!r} at the same moment", hint="Retry"
                        ) from fenced
        return ""

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch to the epoch.

        Raises:
            SinkError: A tuple can't be written.
        """
        messages = self._topic.encoder.of(batch)
        if messages.num_rows:
            self._current.append(messages)
        self._rows += batch.num_rows

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Store the messages that aren't in the topic, in the checkpoint.

        Raises:
            SinkTakenError: Another run writes to the topic instead.
            SinkLostError: No broker answers.
        """
        if self._problem is not None:
            with self._showing:
                self._show()  # or checkpoints would store more and more messages
        return self.save(epoch, store)

    def save(self, epoch: int, store: BlobStore) -> Output:
        """Store them in a savepoint of a job that stops, whether a broker answers or not."""
        with self._lock:
            if self._current:
                self._pending.append(Epoch(epoch, self._run, tuple(self._current)))
                self._current = []
            pending, token = list(self._pending), self._token
            self._epoch = epoch
        assert token is not None
        blobs = []
        for number, waiting in enumerate(pending):
            name = f"{self._blobs}-{epoch:06}-{number}.rows"
            blobs.append(Blob(name, store.write(name, waiting.to_bytes()), waiting.rows))
        with self._lock:
            self._files[epoch] = store, tuple(blob.name for blob in blobs)
        numbers = tuple(waiting.number for waiting in pending)
        state = Written(self._body.topic, self._topic.id, self._run, token.epoch, token.by, numbers)
        return Output(self._location, self._rows, epoch, self._lineage, blobs=tuple(blobs), state=_to_json(state))

    def commit(self, epoch: int) -> None:
        """Write what was prepared for an epoch and those before; safe to repeat, from any thread.

        Raises:
            SinkError: It can't be written now; the next commit writes it, too.
        """
        with self._showing:
            with self._lock:
                if self._closed:
                    return
                self._complete = max(self._complete, epoch)
            self._show()
        self._remove_files(epoch)

    def close(self) -> str:
        """Write the rest; return the topic's name.

        Raises:
            SinkLostError: No broker answers. The last checkpoint or the savepoint has the rest.
        """
        with self._showing:
            with self._lock:
                if self._closed:
                    return self._body.topic
                if self._current:
                    self._pending.append(Epoch(self._epoch + 1, self._run, tuple(self._current)))
                    self._current = []
                self._complete = max([self._complete, *(waiting.number for waiting in self._pending)])
            try:
                self._show()
            except SinkLostError as error:
                left = sum(waiting.rows for waiting in self._pending)
                raise SinkLostError(
                    f"{error.problem}. {left:,} messages aren't in topic {self._body.topic!r}, but in the savepoint",
                    hint="Restore it when a broker answers",
                ) from error
        self.abandon()
        return self._body.topic

    def abandon(self) -> None:
        """Write nothing more. Safe to repeat."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._transactions.close()
        self._topic.close()

    def output(self, rows: int, store: BlobStore) -> Output:  # noqa: ARG002  (it counts them itself)
        """Prepare under the next number."""
        return self.prepare(self._epoch + 1, store)

    # -- what a checkpoint has ------------------------------------------------------------------------------------

    def _written_before(self, before: Output | None) -> Written | None:
        """Return what the restored checkpoint says of the topic.

        Raises:
            StateError: It is another topic.
        """
        if before is None:
            return None
        try:
            held = json.loads(before.state)
            written = Written(**{**held, "epochs": tuple(held["epochs"])})
        except (KeyError, TypeError, ValueError):
            raise StateError("its state in the snapshot is damaged", code=ErrorCode.DAMAGED_POSITION) from None
        if written.topic != self._body.topic:
            raise StateError(
                f"the checkpoint is of topic {written.topic!r}, and it writes to {self._body.topic!r} now",
                hint="Name that topic, or drop the sink from the snapshot: rel.Snapshot(..., drop=['its name'])",
                code=ErrorCode.MISSING_OUTPUT,
            )
        if written.id != self._topic.id:
            raise StateError(
                f"topic {written.topic!r} was deleted and created again since the checkpoint",
                hint="To write to the new topic, drop the sink from the snapshot: rel.Snapshot(..., drop=['its name'])",
                code=ErrorCode.MISSING_OUTPUT,
            )
        return written

    def _restored(self, before: Output | None, context: SinkContext) -> list[Epoch]:
        """Return the epochs of the restored checkpoint.

        Raises:
            StateError: Their messages are missing.
        """
        if before is None or self._before is None or not before.blobs:
            return []
        import pyarrow as pa

        if context.store is None:
            raise StateError(
                "its messages are in a checkpoint that is missing",
                hint="Restore the job from the checkpoint itself",
                code=ErrorCode.MISSING_OUTPUT,
            )
        epochs = []
        files = [(blob.name, blob.digest) for blob in before.blobs]
        for number, data in zip(self._before.epochs, context.store.chunks(files), strict=True):
            with pa.ipc.open_stream(data) as stream:
                epochs.append(Epoch(number, self._before.run, tuple(stream)))
        if context.own:
            self._files[before.epoch] = context.store, tuple(blob.name for blob in before.blobs)
            self._kept.append(before.epoch)
        return epochs

    def _remove_files(self, epoch: int) -> None:
        """Remove the blobs of checkpoints that can't be restored any more, once one is complete."""
        with self._lock:
            if epoch not in self._files or epoch in self._kept:
                return
            self._kept = [*self._kept, epoch][-self._keep :]
            at = self._files[epoch][0].location
            outdated = [number for number in self._files if number < epoch and number not in self._kept]
            removed = [self._files.pop(number) for number in outdated]
        for store, names in removed:
            if store.location == at:  # others belong to a savepoint, which must stay
                for name in names:
                    store.delete(name)

    # -- what the topic has ---------------------------------------------------------------------------------------

    def _check(self, token: Token | None) -> None:
        """Raise unless the topic is what the restored checkpoint, or a new sink, can continue.

        Raises:
            SinkTakenError: Another run writes to it.
            StateError: It has other messages after the checkpoint, or has lost its token.
        """
        before = self._before
        if token is None:
            if before is not None:
                raise StateError(
                    f"topic {self._body.topic!r} has lost the offset that says which messages of the checkpoint it "
                    "has: brokers keep it for offsets.retention.minutes",
                    hint=f"Compare the last message with header 'rayelastic' with epoch {self._epoch} of the "
                    "checkpoint. To continue without the messages in it: rel.Snapshot(..., drop=['its name'])",
                    code=ErrorCode.MISSING_OUTPUT,
                )
            return
        if token.run != self._run and self._run in token.runs:
            raise self._taken("another run")
        expected = {(0, self._run)}
        if before is not None:
            expected = {(before.epoch, before.by), *((number, before.run) for number in before.epochs)}
        if (token.epoch, token.by) not in expected:
            raise StateError(
                f"topic {self._body.topic!r} has messages up to epoch {token.epoch}, and the checkpoint is of epoch "
                f"{self._epoch}: they can't be removed, and would come again",
                hint="Restore the newest checkpoint. To write all messages after this one again: "
                "rel.Snapshot(..., drop=['its name'])",
                code=ErrorCode.OUTPUT_AHEAD,
            )

    def _take_over(self) -> None:
        """Fence other writers, and write what the checkpoint has and the topic lacks, with a token of this run."""
        before = self._transactions.fence()
        self._check(before)
        self._forget(before)
        epoch, by = (0, self._run) if before is None else (before.epoch, before.by)
        if self._pending:
            epoch, by = self._pending[-1].number, self._pending[-1].by
        runs = tuple(run for run in (before.runs if before is not None else ()) if run != self._run)[-MOST_RUNS:]
        due = [batch for waiting in self._pending for batch in waiting.batches]
        self._write(Token(epoch, by, self._run, (*runs, self._run)), due)
        with self._lock:
            self._pending = []

    def _forget(self, token: Token | None) -> None:
        """Drop the epochs that the topic has."""
        with self._lock:
            self._pending = [one for one in self._pending if token is None or one.number > token.epoch]

    def _show(self) -> None:
        """Write the epochs of complete checkpoints.

        Raises:
            SinkError: They can't be written now.
            SinkTakenError: Another run writes to the topic instead.
        """
        if isinstance(self._problem, SinkTakenError):
            raise self._problem
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._show_due()
                self._problem = None
                return
            except FencedError as fenced:
                self._problem = self._after_fence(fenced)
                if attempt == ATTEMPTS or isinstance(self._problem, SinkTakenError):
                    raise self._problem from fenced
            except SinkError as error:
                self._problem = error
                raise

    def _show_due(self) -> None:
        assert self._token is not None
        if self._problem is not None:  # whether the last transaction is in the topic is unknown
            token = self._transactions.fence()
            if token is None or token.run != self._run:
                raise self._taken("another run")
            self._forget(token)
            self._token = token
        with self._lock:
            due = [waiting for waiting in self._pending if waiting.number <= self._complete]
        if due:
            token = replace(self._token, epoch=due[-1].number, by=self._run)
            self._write(token, [batch for waiting in due for batch in waiting.batches])
            self._forget(token)
        elif time.monotonic() > self._written_at + REFRESH:
            self._write(self._token, [])

    def _write(self, token: Token, batches: Iterable[pa.RecordBatch]) -> None:
        self._transactions.write(token, list(batches))
        with self._lock:
            self._token = token
        self._written_at = time.monotonic()

    def _after_fence(self, fenced: FencedError) -> SinkError:
        """Return the error of a transaction that the brokers rejected."""
        try:
            token = self._transactions.token()
        except SinkError as error:
            return error
        if token is None or token.run != self._run:
            return self._taken("another run")
        return SinkLostError(
            f"the brokers ended a transaction of topic {self._body.topic!r}: {fenced}",
            hint="If epochs are long, pass settings={'transaction.timeout.ms': 300000}",
        )

    def _taken(self, by: str) -> SinkTakenError:
        return SinkTakenError(
            f"{by} writes to topic {self._body.topic!r} instead of this one: it restored a checkpoint of this run",
            hint="This run writes nothing more. Use another topic for a job beside it",
        )


def _to_json(written: Written) -> str:
    held: Mapping[str, Any] = {name: getattr(written, name) for name in written.__slots__}
    return json.dumps(held)
