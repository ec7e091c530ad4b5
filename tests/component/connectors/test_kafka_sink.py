"""Rows into a topic of Kafka, on a real broker: each at least once or once, in order, whatever is lost when."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors.kafka import messages, transactions
from rayelastic.connectors.kafka.declaration import Delivery, KafkaSink
from rayelastic.connectors.kafka.messages import Encoder
from rayelastic.connectors.kafka.writer import TransactionalTopic
from rayelastic.connectors.output.epochs import Token
from rayelastic.connectors.output.record import Output
from rayelastic.errors import GraphError, JobFailedError, SinkError, SinkLostError, SinkTakenError, StateError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.testing import check_sink
from tests.component.connectors.test_sinks_by_epoch import SCHEMA, Trial, batch, row
from tests.component.connectors.test_sinks_checked import OfWriter
from tests.kafka import Topics, kafka_broker, needs_kafka, topics
from tests.kafka_proxy import PATIENCE, Fate, Proxy
from tests.raising import raises
from tests.waiting import wait_until, wait_until_received

__all__ = ["kafka_broker", "topics"]

pytestmark = needs_kafka


def write(topics: Topics, topic: str, rows: Sequence[Any], schema: Any, **options: Any) -> rel.JobResult:
    topology = rel.Topology("write")
    into = rel.to_kafka(topics.address, topic, **options)
    topology.source(rel.rows(rows, schema), name="rows").sink(into, name="out")
    return rel.run(topology)


def numbers(topics: Topics, topic: str) -> list[int]:
    """The numbers that a consumer with `read_committed` sees, by partition and offset."""
    return [json.loads(message.value())["n"] for message in topics.read(topic)]


# --- what a message is ----------------------------------------------------------------------------------------------


def test_messages_are_objects_texts_or_bytes_with_key_time_and_partition(topics: Topics) -> None:
    topic = topics.make(3)
    at = dt.datetime(2024, 5, 1, 12, 0, 0, 123000)  # noqa: DTZ001  (as a stream without a zone has it)
    schema = {"n": int, "user": str | None, "at": dt.datetime, "p": int}
    fields = {"key": "user", "timestamp": "at", "partition": "p"}
    assert write(topics, topic, [(1, "someone", at, 2), (2, None, at, 0)], schema, fields=fields)["out"] == topic
    second, first = topics.read(topic)
    assert (first.partition(), first.key(), second.partition(), second.key()) == (2, b"someone", 0, None)
    assert first.timestamp()[1] == dt.datetime(2024, 5, 1, 12, 0, 0, 123000, dt.UTC).timestamp() * 1000
    assert json.loads(first.value()) == {"n": 1, "user": "someone", "at": "2024-05-01T12:00:00.123000", "p": 2}

    texts = topics.make()
    write(topics, texts, [("a", 1), (None, 2)], {"text": str | None, "k": int}, form="text", fields={"key": "k"})
    assert [(one.value(), one.key()) for one in topics.read(texts)] == [(b"a", b"1"), (None, b"2")]
    write(topics, topics.make(name="raw"), [(b"\xff\x00",)], {"value": bytes}, form="bytes")
    assert [one.value() for one in topics.read("raw")] == [b"\xff\x00"]


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_fields_are_headers_of_messages(topics: Topics, delivery: str, tmp_path: Path) -> None:
    topic = topics.make()
    rows = [("a", "first", 1), ("b", None, 2), ("c", "", 3)]
    topology = rel.Topology("write")
    into = rel.to_kafka(
        topics.address,
        topic,
        fields={"header:trace": "trace", "header:n": "n"},
        delivery=delivery,  # type: ignore[arg-type]
    )
    topology.source(rel.rows(rows, {"text": str, "trace": str | None, "n": int}), name="rows").sink(into, name="out")
    rel.run(topology, rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "checkpoints")))
    own = [[pair for pair in one.headers() or [] if pair[0] != "rayelastic"] for one in topics.read(topic)]
    assert own == [[("trace", b"first"), ("n", b"1")], [("n", b"2")], [("trace", b""), ("n", b"3")]]
    with raises(SinkError, "unknown-field", "header:trace"):
        write(topics, topic, [(1,)], {"n": int}, fields={"header:trace": "trace"})
    with raises(SinkError, "wrong-field-type", "header:n"):
        write(topics, topic, [(1.5,)], {"n": float}, fields={"header:n": "n"})


def test_a_key_keeps_its_order_and_its_partition(topics: Topics) -> None:
    topic = topics.make(4)
    write(topics, topic, [(n, f"user{n % 10}") for n in range(2000)], {"n": int, "k": str}, fields={"key": "k"})
    seen: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for one in topics.read(topic):
        seen[one.key()].append((one.partition(), json.loads(one.value())["n"]))
    assert len(seen) == 10
    for number, key in enumerate(sorted(seen)):
        assert len({partition for partition, _ in seen[key]}) == 1
        assert [n for _, n in seen[key]] == list(range(number, 2000, 10))


def test_what_is_written_is_read_back(topics: Topics) -> None:
    topic = topics.make(name="created_here") and "made_by_the_sink"
    rows = [(n, f"text {n}") for n in range(500)]
    write(topics, topic, rows, {"n": int, "text": str}, create=2)
    topology = rel.Topology("read")
    source = rel.kafka(topics.address, topic, {"n": int, "text": str}, stop="end")
    topology.source(source, name="messages").sink(rel.list(), name="out")
    assert sorted(tuple(t) for t in rel.run(topology)["out"]) == rows


def test_rows_that_can_not_be_written_fail_the_job_or_are_counted(topics: Topics) -> None:
    topic = topics.make(2)
    rows = [("a", 0), ("b" * 2_000_000, 0), ("c", 7), ("d", 1)]
    schema: Any = {"text": str, "p": int}
    options: Any = {"form": "text", "fields": {"partition": "p"}}
    with pytest.raises(JobFailedError, match=r"tuple 1 can't be written .*2,000,000 bytes") as failed:
        write(topics, topic, rows, schema, **options)
    assert "'out'" in str(failed.value)
    topic = topics.make(2)  # the first one may have got the tuple before
    topology = rel.Topology("skips")
    into = rel.to_kafka(topics.address, topic, on_bad_row="skip", **options)
    topology.source(rel.rows(rows, schema), name="rows").sink(into, name="out")
    with closing(rel.start(topology)) as job:
        job.wait(PATIENCE)
        assert job.metrics().operator("out").dropped == {"bad_row": 2}
    assert [one.value() for one in topics.read(topic)] == [b"a", b"d"]


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_message_that_the_brokers_reject_fails_the_job_and_names_the_topic(topics: Topics, delivery: str) -> None:
    topic = topics.make(1, "", **{"cleanup.policy": "compact"})  # a message without a key has no place there
    topology = rel.Topology("rejected")
    into = rel.to_kafka(topics.address, topic, delivery=delivery)  # type: ignore[arg-type]
    topology.source(rel.rows([(1,)], {"n": int}), name="rows").sink(into, name="out")
    config = rel.JobConfig(checkpoint=rel.Checkpoint(every=0.2, restarts=0))
    with raises(JobFailedError, "unwritable-value", "'out'", topic, operator="out"):
        rel.run(topology, config)
    assert topics.read(topic) == []


def test_a_text_that_is_no_json_is_found_in_its_batch() -> None:
    schema = Schema.of({"it": rel.Json})
    sink = KafkaSink("", "topic", "json", (), Delivery.AT_LEAST_ONCE, 0, OnError.SKIP, ())
    encoder = Encoder(sink, schema, 1000, 1, lambda: 1)
    made = encoder.of(pa.RecordBatch.from_pydict({"it": ["{}", "{", "[1]"]}, schema=schema.to_arrow()))
    assert made.to_pydict() == {"value": [b'{"it": {}}', b'{"it": [1]}']}
    assert encoder.left_out.count == 1
    with raises(SinkError, "unwritable-value", "tuple 1"):
        Encoder(replace(sink, on_bad_row=OnError.FAIL), schema, 1000, 1, lambda: 1).of(
            pa.RecordBatch.from_pydict({"it": ["{}", "{"]}, schema=schema.to_arrow())
        )


# --- wrong declarations and brokers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "options", "error", "code"),
    [
        ({"n": int}, {"form": "avro"}, GraphError, "unknown-choice"),
        ({"n": int}, {"delivery": "once"}, GraphError, "unknown-choice"),
        ({"n": int}, {"on_bad_row": "divert"}, GraphError, "unknown-choice"),
        ({"n": int}, {"create": -1}, GraphError, "out-of-range"),
        ({"n": int}, {"fields": {"offset": "n"}}, SinkError, "unknown-choice"),
        ({"n": int}, {"fields": {"key": "m"}}, SinkError, "unknown-field"),
        ({"n": float}, {"fields": {"key": "n"}}, SinkError, "wrong-field-type"),
        ({"n": int}, {"form": "text"}, SinkError, "wrong-field-type"),
        ({"n": int}, {"settings": {"transactional.id": "mine"}}, SinkError, "conflicting-arguments"),
    ],
)
def test_wrong_arguments_are_errors_at_the_declaration(schema: Any, options: Any, error: Any, code: str) -> None:
    numbers = rel.Topology("wrong").source(rel.rows([], schema), name="rows")
    with raises(error, code):
        numbers.sink(rel.to_kafka("localhost:1", "topic", **options), name="out")


def test_what_is_wrong_with_the_brokers_is_an_error_at_the_start(topics: Topics) -> None:
    with raises(SinkError, "unknown-topic"):
        write(topics, "nowhere", [(1,)], {"n": int})
    with raises(SinkError, "invalid-setting"):
        write(topics, topics.make(), [(1,)], {"n": int}, settings={"linger.ms": "soon"})
    with raises(SinkError, "invalid-setting", "checkpoints"):
        write(topics, topics.make(), [(1,)], {"n": int}, delivery="exactly-once")


# --- exactly once ---------------------------------------------------------------------------------------------------


class Ending(TransactionalTopic):
    """Waits for the end of each transaction, which a broker reports before all readers see it.

    The next producer can be made only then.
    """

    _transactions: transactions.TopicTransactions

    def _write(self, token: Token, batches: Iterable[pa.RecordBatch]) -> None:
        super()._write(token, batches)
        if (made := self._transactions._next) is not None:
            made.exception(PATIENCE)


class Committed(Trial):
    """A topic that is written by transactions."""

    topics: ClassVar[Topics]
    settings: ClassVar[tuple[tuple[str, str], ...]] = ()
    address: ClassVar[str] = ""

    def body(self) -> KafkaSink:
        address = self.address or self.topics.address
        name = f"once_{self.folder.parent.name}_{self.folder.name}"
        return KafkaSink(address, name, "json", (), Delivery.EXACTLY_ONCE, 1, OnError.FAIL, self.settings)

    def made(self, before: Output | None, run: str = "run") -> TransactionalTopic:
        context = self.context(before, run)  # ids of transactions are made of runs: another one for each test
        kind = Ending if not self.address else TransactionalTopic  # a proxy holds what it waits for
        return kind(self.body(), SCHEMA, replace(context, run=f"{self.body().topic}-{run}"))

    def abandon(self, writer: TransactionalTopic) -> None:
        writer.abandon()

    def seen(self) -> list[dict[str, Any]]:
        return [json.loads(message.value()) for message in self.topics.read(self.body().topic)]


@pytest.fixture
def trial(topics: Topics, tmp_path: Path) -> Committed:
    Committed.topics = topics
    return Committed(tmp_path)


class OfTopic(OfWriter):
    kind = Committed


@pytest.mark.nightly
def test_the_sink_keeps_the_protocol(trial: Committed) -> None:
    def read(folder: Path) -> list[int]:
        return [one["n"] for one in Committed(folder).seen()]

    assert check_sink(OfTopic, read, range(4)).exactly_once


def test_each_row_is_there_once_whatever_is_lost_when(trial: Committed) -> None:
    """Each line: complete, and committed; complete only; prepared only; the process is lost after it."""
    position = 0
    saved: tuple[Output, int] | None = None
    writer = trial.begun(None)
    lives = ("committed", "lost, committed", "prepared", "lost, complete", "complete", "lost, prepared", "committed")
    for epoch, fate in enumerate(lives, 1):
        writer.write(batch(position, position + 10))
        position += 10
        prepared = trial.prepare(writer, epoch)
        if "prepared" not in fate:
            saved = prepared, position
        if "committed" in fate:
            writer.commit(epoch)
            writer.commit(epoch)
            assert trial.seen() == [row(n) for n in range(position)]
        if "lost" in fate:
            assert saved is not None
            trial.abandon(writer)
            output, position = saved
            writer = trial.begun(output)
            assert trial.seen() == [row(n) for n in range(position)]
    assert writer.close() == trial.body().topic
    assert trial.seen() == [row(n) for n in range(position)]


def test_two_jobs_from_one_checkpoint_and_older_checkpoints_are_rejected(trial: Committed) -> None:
    first = trial.begun(None)
    first.write(batch(0, 10))
    old = trial.prepare(first, 1)
    first.commit(1)
    second = trial.made(old, "other")
    second.begin()
    first.write(batch(10, 20))
    trial.prepare(first, 2)
    late = first._transactions
    late._next = late._beside.submit(late._made)  # it fences its successor, and writes nothing all the same
    with raises(SinkTakenError, "output-taken"):
        first.commit(2)
    with raises(SinkTakenError, "output-taken"):
        trial.prepare(first, 3)
    with raises(SinkTakenError, "output-taken"):  # its process is lost and recovers
        trial.made(old)
    second.write(batch(10, 15))
    trial.prepare(second, 12)
    with contextlib.suppress(SinkLostError):
        second.commit(12)
    second.commit(12)
    with raises(StateError, "output-ahead"):
        trial.made(old, "third")
    assert trial.seen() == [row(n) for n in range(15)]
    for one in (first, second):
        trial.abandon(one)


def test_a_topic_that_was_made_again_or_lost_its_token_is_rejected(trial: Committed) -> None:
    writer = trial.begun(None)
    writer.write(batch(0, 10))
    output = trial.prepare(writer, 1)
    writer.commit(1)
    trial.abandon(writer)
    trial.topics.forget(f"rayelastic-{output.location.removeprefix('kafka:')}")
    with raises(StateError, "missing-output", "offsets.retention.minutes"):
        trial.made(output)
    trial.topics.delete(trial.body().topic)
    with raises(StateError, "missing-output", "created again"):
        trial.made(output)


def test_files_of_checkpoints_that_can_not_be_restored_are_removed(trial: Committed) -> None:
    writer = trial.begun(None)
    for epoch in range(1, 6):
        writer.write(batch(epoch, epoch + 1))
        output = trial.prepare(writer, epoch)
        if epoch != 3:
            writer.commit(epoch)
    assert {file.name for file in trial.blobs.folder.iterdir()} == {blob.name for blob in output.blobs}
    trial.abandon(writer)


@pytest.fixture
def proxy(topics: Topics) -> Iterator[Proxy]:
    with closing(Proxy(topics.broker)) as proxy:
        yield proxy


HELD = [2, pytest.param(20, marks=pytest.mark.nightly)]


@pytest.mark.parametrize("count", [2, pytest.param(30, marks=pytest.mark.nightly)])
def test_a_late_end_of_a_transaction_ends_no_later_one(
    trial: Committed, proxy: Proxy, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is held back beyond the socket's time-out, and delivered when half of the next epoch is written."""
    monkeypatch.setattr(Committed, "address", trial.topics.broker.proxied)
    monkeypatch.setattr(Committed, "settings", (("socket.timeout.ms", "2000"),))
    send, late = messages.send, list[int]()

    def half(producer: Any, *arguments: Any) -> None:
        send(producer, *arguments)
        assert producer.flush(PATIENCE) == 0
        late.extend(proxy.release())

    monkeypatch.setattr(transactions, "send", half)
    writer = trial.begun(None)
    for epoch in range(1, 2 * count + 1):
        writer.write(batch(10 * epoch, 10 * epoch + 5))
        writer.write(batch(10 * epoch + 5, 10 * epoch + 10))
        trial.prepare(writer, epoch)
        if epoch % 2:
            proxy.next(Fate.HOLD_REQUEST)
        writer.commit(epoch)
    assert len(late) == count
    assert 0 not in late, "a late request was accepted"
    assert trial.seen() == [row(n) for n in range(10, 20 * count + 10)]
    trial.abandon(writer)


@pytest.mark.parametrize("count", HELD)
@pytest.mark.parametrize("fate", [Fate.CUT, Fate.HOLD_ANSWER])
def test_an_answer_that_is_lost_or_late_costs_no_row(
    trial: Committed, proxy: Proxy, fate: Fate, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Committed, "address", trial.topics.broker.proxied)
    monkeypatch.setattr(Committed, "settings", (("socket.timeout.ms", "2000"),))
    writer = trial.begun(None)
    for epoch in range(count):
        writer.write(batch(10 * epoch, 10 * epoch + 10))
        trial.prepare(writer, epoch + 1)
        proxy.next(fate)
        writer.commit(epoch + 1)
        assert proxy.fated.acquire(timeout=PATIENCE)
        proxy.release()
    assert trial.seen() == [row(n) for n in range(10 * count)]
    trial.abandon(writer)


def test_a_broker_that_is_away_makes_the_next_checkpoint_wait(
    trial: Committed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "TIMEOUT", 2.0)
    writer = trial.begun(None)
    writer.write(batch(0, 10))
    trial.prepare(writer, 1)
    trial.topics.broker.pause()
    try:
        with raises(SinkLostError, "sink-unreachable"):
            writer.commit(1)
        with raises(SinkLostError, "sink-unreachable"):
            trial.prepare(writer, 2)
    finally:
        trial.topics.broker.resume()
    monkeypatch.undo()
    writer.write(batch(10, 20))
    trial.prepare(writer, 3)
    writer.commit(3)
    assert trial.seen() == [row(n) for n in range(20)]
    trial.abandon(writer)


class Away:
    """A job that writes 100 rows for each gate that is open, and 100 before."""

    ROWS = 300

    def __init__(self, topics: Topics) -> None:
        self.topics, self.topic = topics, topics.make()
        self.gates = [testing.Gate(), testing.Gate()]
        events: list[Any] = [(n,) for n in range(self.ROWS)]
        events[200:200], events[100:100] = [self.gates[1]], [self.gates[0]]
        self.topology = rel.Topology("away")
        into = rel.to_kafka(topics.address, self.topic, delivery="exactly-once")
        self.topology.source(testing.script(events, {"n": int}), name="rows").sink(into, name="out")
        self.config = rel.JobConfig(checkpoint=rel.Checkpoint(every=0.2))

    def pause(self, job: rel.Job, patience: float, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have the broker stand still when it has 100 rows, and have the job receive more; the sink waits so long."""
        wait_until(job, lambda: len(self.topics.read(self.topic)) == 100, look=0.1)
        monkeypatch.setattr(transactions, "TIMEOUT", patience)
        self.topics.broker.pause()
        self.gates[0].open()

    def resume(self) -> None:
        """Have the broker continue, and wait until its controller lets it have topics again."""
        import confluent_kafka

        self.topics.broker.resume()
        while True:
            with contextlib.suppress(confluent_kafka.KafkaException):
                self.topics.make()
                return

    def check(self) -> None:
        assert numbers(self.topics, self.topic) == list(range(self.ROWS))


def test_a_job_is_stopped_while_its_broker_is_away(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its savepoint has what the topic lacks; a producer with an open transaction doesn't wait for the broker."""
    away = Away(topics)
    with closing(rel.start(away.topology, away.config)) as job:
        try:
            away.pause(job, 2.0, monkeypatch)
            wait_until_received(job, "out", 200)
            with raises(
                JobFailedError, "sink-unreachable", "'out'", topics.address, "100 messages", "in the savepoint"
            ):
                job.stop(tmp_path / "saved")
        finally:
            away.resume()
    monkeypatch.undo()
    assert numbers(topics, away.topic) == list(range(100))
    away.gates[1].open()
    rel.run(away.topology, away.config, restore=tmp_path / "saved")
    away.check()


@pytest.mark.guarantee(
    source="rows",
    sink="a topic of Kafka, `delivery='exactly-once'`",
    lost="the broker, for a while",
    rows="each once",
)
def test_a_broker_that_is_away_for_longer_costs_and_doubles_no_row(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(topics)
    with closing(rel.start(away.topology, away.config)) as job:
        try:
            away.pause(job, 1.0, monkeypatch)
            wait_until(job, lambda: job.status.outage)  # it waits for the end of it, up to `outage_timeout`
            outage = f"{job.status.outage}"
            assert "'out'" in outage, outage
            assert topics.address in outage, outage
        finally:
            away.resume()
        monkeypatch.undo()
        away.gates[1].open()
        job.wait(PATIENCE)
    away.check()
