"""Rows out of a topic of Kafka, on a real broker: each once, in order, whatever is lost when."""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors.json.inference import json_source
from rayelastic.connectors.json.lines import BadLineError, object_of
from rayelastic.connectors.json.values import Lines
from rayelastic.connectors.kafka import client, reader
from rayelastic.connectors.row_files import RowOptions
from rayelastic.errors import GraphError, JobFailedError, SchemaError, SourceError, SourceLostError
from tests.component.checkpoint.test_checkpoints import Losing
from tests.kafka import Topics, kafka_broker, needs_kafka, part_files, topics
from tests.raising import raises
from tests.waiting import wait_until, wait_until_received

__all__ = ["kafka_broker", "topics"]

pytestmark = needs_kafka

PATIENCE = 60.0


class Event(NamedTuple):
    user: str | None
    n: int
    price: float
    ok: bool
    at: dt.datetime


def rows(topics: Topics, topic: str, schema: Any = None, **options: Any) -> list[Any]:
    topology = rel.Topology("read")
    source = rel.kafka(topics.address, topic, schema, **{"stop": "end", **options})
    topology.source(source, name="messages").sink(rel.list(), name="out")
    return [tuple(t) for t in rel.run(topology)["out"]]


def wait_for(job: rel.Job, operator: str, rows: int) -> None:
    wait_until_received(job, operator, rows)


def texts(count: int, start: int = 0) -> list[bytes]:
    return [b"message number %d" % n for n in range(start, start + count)]


def test_values_are_bytes_texts_or_fields_with_what_else_a_message_has(topics: Topics) -> None:
    topic = topics.make(2)
    topics.write(topic, [b"\xff\x00 of more than twelve bytes", b""], key=b"k", timestamp=1_700_000_000_123)
    topics.write(topic, [b"short"], partition=1)
    every = {"key": "k", "timestamp": "at", "partition": "p", "offset": "o"}
    read = rows(topics, topic, bytes, fields=every)
    at = dt.datetime(2023, 11, 14, 22, 13, 20, 123000)  # noqa: DTZ001  (as a stream without a zone has it)
    assert sorted(read, key=lambda t: (t[3], t[4]))[:2] == [
        (b"\xff\x00 of more than twelve bytes", b"k", at, 0, 0), (b"", b"k", at, 0, 1),
    ]  # fmt: skip
    assert next(t for t in read if t[3] == 1)[:2] == (b"short", None)
    assert sorted(rows(topics, topic)) == [(b"",), (b"short",), (b"\xff\x00 of more than twelve bytes",)]
    assert sorted(rows(topics, topic, str, on_bad_row="skip")) == [("",), ("short",)]


def test_headers_are_fields_by_their_names(topics: Topics) -> None:
    topic, long = topics.make(), b"of more than twelve bytes"
    for headers in ([("trace", b"first"), ("other", b"x"), ("trace", long)], [("trace", b"")], [("trace", None)], []):
        topics.write(topic, [b"of about as many bytes"], headers=headers)
    fields = {"header:trace": "trace", "header:other": "o", "header:trace.id": "none"}
    value = b"of about as many bytes"
    assert rows(topics, topic, bytes, fields=fields) == [
        (value, long, b"x", None), (value, b"", None, None), (value, None, None, None), (value, None, None, None)
    ]  # fmt: skip
    assert rows(topics, topic, str, fields={"header:trace": "trace"})[0] == (value.decode(), long.decode())
    schema = {"value": str, "trace": str}
    assert len(rows(topics, topic, schema, fields={"header:trace": "trace"}, on_bad_row="skip")) == 0, (
        "JSON is asked for"
    )
    topics.write(topic, [b'{"n": 1}', b'{"n": 2}'], headers=[("trace", b"\xff")])
    topics.write(topic, [b'{"n": 3}'], headers=[("trace", b"\xc3\xa9")])
    read = rows(topics, topic, {"n": int, "trace": str}, fields={"header:trace": "trace"}, on_bad_row="skip")
    assert read == [(3, "\u00e9")], "a header that isn't UTF-8, or is missing, makes a bad message"
    with pytest.raises(JobFailedError, match=r"header 'trace'"):
        rows(topics, topic, {"n": int, "trace": str}, fields={"header:trace": "trace"}, start={0: 4})


def test_fields_of_objects_go_into_the_users_own_class(topics: Topics) -> None:
    topic = topics.make()
    sent = {"n": 3, "more": [{"n": 4}], "price": 1.5e2, "ok": True}
    topics.write(topic, [json.dumps(sent)], key="someone with a long name", timestamp=1000)
    assert rows(topics, topic, Event, fields={"key": "user", "timestamp": "at"}) == [
        ("someone with a long name", 3, 150.0, True, dt.datetime(1970, 1, 1, 0, 0, 1))  # noqa: DTZ001
    ]


SAMPLES = [
    '{"a": 1, "b": 2.5, "c": "x", "d": true}',
    ' {"d":false,"c":"longer than twelve bytes","b":1e3,"a":-0}\r',
    '{"a": 9223372036854775807}',
    '{"a": 9223372036854775808}',
    '{"a": 1.0}',
    '{"a": 1e2}',
    '{"a": "1"}',
    '{"a": true}',
    '{"a": null, "b": null}',
    '{"a": 1, "a": 2}',
    '{"x": 1, "x": 2, "a": 3}',
    '{"b": NaN}',
    '{"b": -Infinity}',
    '{"b": 1e999}',
    '{"b": 1e-999}',
    '{"b": 12345678901234567890123}',
    '{"b": "1"}',
    '{"b": 0.1}',
    '{"c": 1.50}',
    '{"c": NaN}',
    '{"c": true}',
    '{"c": null}',
    r'{"c": "a\n\"\\\/\u00e4\ud83d\ude00 and more of it"}',
    r'{"c": "\ud83d"}',
    r'{"\u0061": 5}',
    '{"c": []}',
    '{"d": 1}',
    '{"d": "true"}',
    '{"d": null}',
    "{}",
    "[]",
    "1",
    "",
    "null",
    '{"a": 1} 2',
    '{"a": 01}',
    '{"a": +1}',
    "{'a': 1}",
    '{"a": 1,}',
    '{"a" 1}',
    '{"a": 1',
    '{"c": "\x01"}',
    '{"e": ' + "[" * 59 + "]" * 59 + "}",
    '{"e": ' + "[" * 61 + "]" * 61 + "}",
    '{"a": -9223372036854775808}',
    '{"a": 00}',
    '{"a": -1, "c": "ü"}',
]


def test_objects_are_read_as_from_files(topics: Topics, tmp_path: Path) -> None:
    schema = {"a": int | None, "b": float | None, "c": str | None, "d": bool | None}
    topic, sent = topics.make(), [one.encode() for one in SAMPLES] + [b'{"c": "\xff"}']
    topics.write(topic, sent)
    (tmp_path / "empty.json").touch()
    options = RowOptions(rel.Schema.of(schema))
    lines = Lines(json_source(str(tmp_path / "empty.json"), options, None, "files"))
    expected = []
    for number, line in enumerate(sent):
        try:
            expected.append((*lines.row(object_of(line)), number))
        except BadLineError:
            continue
    read = rows(topics, topic, schema, on_bad_row="skip", fields={"offset": "number"})
    for ours, files in zip(read, expected, strict=True):
        floats = [None if value is None else float(value) for value in (ours[1], files[1])]
        assert f"{(ours[0], floats[0], *ours[2:])}" == f"{(files[0] and int(files[0]), floats[1], *files[2:])}"


def test_a_message_that_is_not_of_the_schema_fails_the_job_or_is_counted(topics: Topics) -> None:
    topic = topics.make()
    topics.write(topic, [b'{"n": 1}', b'{"n": "x"}', b'{"n": null}', b'{"n": 2}', None])
    with raises(JobFailedError, "malformed-record", topic, "offset 1", "'n'", operator="messages"):
        rows(topics, topic, {"n": int})
    topology = rel.Topology("skip")
    source = rel.kafka(topics.address, topic, {"n": int}, stop="end", on_bad_row="skip")
    topology.source(source, name="messages").sink(rel.list(), name="out")
    job = rel.start(topology)
    assert [t.n for t in job.wait(PATIENCE)["out"]] == [1, 2]
    assert sum(job.metrics().operator("messages").dropped.values()) == 3
    job.close()
    assert rows(topics, topic, str | None)[-1] == (None,)
    with raises(JobFailedError, "malformed-record", "offset 4"):
        rows(topics, topic, str)


Letter = tuple[str, int, int, bytes | None, bytes | None, str]


def diverting(topics: Topics, topic: str, **options: Any) -> rel.Topology:
    topology = rel.Topology("diverts")
    source = rel.kafka(topics.address, topic, {"n": int}, on_bad_row="divert", **options)
    read = topology.source(source, name="messages")
    read.sink(rel.list(), name="out")
    read.errors.sink(rel.list(), name="bad")
    return topology


def letters(result: Any) -> list[Letter]:
    assert {t.operator for t in result} <= {"messages"}
    return sorted((t.topic, t.partition, t.offset, t.key, t.value, t.error) for t in result)


def test_messages_that_are_not_of_the_schema_are_diverted_with_their_place(topics: Topics) -> None:
    topic = topics.make(2)
    wrong = [b'{"n": "a text longer than twelve bytes"}', b"\xff", None]
    topics.write(topic, [b'{"n": 1}', wrong[0], b'{"n": 2}'])
    topics.write(topic, [*wrong[1:], b'{"n": 3}'], partition=1, key=b"a key longer than twelve bytes")
    with closing(rel.start(diverting(topics, topic, stop="end"))) as job:
        result = job.wait(PATIENCE)
        assert job.metrics().operator("messages").dropped == {"bad_row": 3}
    assert sorted(t.n for t in result["out"]) == [1, 2, 3]
    key = b"a key longer than twelve bytes"
    assert letters(result["bad"]) == [
        (topic, 0, 1, None, wrong[0], "\"a text longer than twelve bytes\" of field 'n' doesn't fit the int"),
        (topic, 1, 0, key, b"\xff", "it isn't UTF-8"),
        (topic, 1, 1, key, None, "it has no value"),
    ]
    assert rel.run(diverting(topics, topic, stop="end", start={0: 2, 1: 2}))["bad"] == []


def test_dead_letters_continue_where_a_job_was_stopped(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make(2)
    topics.write(topic, [b'{"n": 0}'] * 3)
    topics.write(topic, [b"bad", b'{"n": 1}', b"bad", b'{"n": 2}'], partition=1)
    job = rel.start(diverting(topics, topic))
    wait_for(job, "bad", 2)
    wait_for(job, "out", 5)
    wait_until(job, lambda: job.metrics().operator("messages_errors").lag == 0)
    assert [t.offset for t in job.stop(tmp_path / "saved")["bad"]] == [0, 2]
    topics.delete_before(topic, 3)  # what was read needn't be there any more, good or bad
    topics.write(topic, [b"bad", b'{"n": 3}'], partition=1)
    job = rel.start(diverting(topics, topic), restore=tmp_path / "saved")
    wait_for(job, "bad", 1)
    wait_for(job, "out", 1)
    result = job.stop(tmp_path / "again")
    assert ([t.n for t in result["out"]], [t.offset for t in result["bad"]]) == ([3], [4])


def test_it_begins_where_it_is_told(topics: Topics) -> None:
    topic = topics.make(2)
    for n in range(10):
        topics.write(topic, texts(1, n), partition=n % 2, timestamp=1000 * n + 1)
    assert len(rows(topics, topic)) == 10
    assert rows(topics, topic, start="latest") == []
    assert sorted(rows(topics, topic, start={0: 4})) == [(texts(1, n)[0],) for n in (1, 3, 5, 7, 8, 9)]
    at = dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=dt.UTC)
    assert sorted(rows(topics, topic, start=at)) == [(text,) for text in texts(5, 5)]
    assert rows(topics, topic, start=dt.datetime(2100, 1, 1)) == []  # noqa: DTZ001
    with raises(JobFailedError, "offsets-gone", "99"):
        rows(topics, topic, start={1: 99})
    with raises(JobFailedError, "offsets-gone", "7"):
        rows(topics, topic, start={7: 0})


def test_transactions_are_read_once_they_are_committed(topics: Topics) -> None:
    topic = topics.make()
    topics.transaction(topic, texts(3), commits=True)
    topics.transaction(topic, texts(3, 10), commits=False)
    topics.write(topic, texts(3, 20))
    topics.transaction(topic, texts(3, 30), commits=False)  # also the end, where no message can be read
    assert [t[0] for t in rows(topics, topic)] == [*texts(3), *texts(3, 20)]


@pytest.mark.guarantee(source="a topic of Kafka", sink="Parquet files", lost="a PE, whenever that is", rows="each once")
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_job_that_goes_back_reads_each_message_once(topics: Topics, lost: int, tmp_path: Path) -> None:
    topic, count = topics.make(3), 3000
    for partition in range(3):
        topics.write(topic, [b'{"n": %d}' % (3 * n + partition) for n in range(count)], partition)
    gates = [testing.Gate(), testing.Gate()]
    passed = testing.script([(0,), gates[0], (1,), gates[1], (2,)], {"n": int})
    topology = rel.Topology("recovers")
    source = rel.kafka(topics.address, topic, {"n": int}, fields={"partition": "p", "offset": "o"}, stop="end")
    topology.source(source, name="messages").sink(rel.parquet(str(tmp_path / "out")), name="out")
    topology.source(passed, name="script").sink(rel.list(), name="steps")
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    losing = Losing(topology, config)
    try:
        for number, gate in enumerate(gates):
            assert gate.wait_reached(PATIENCE)
            losing.take()
            if lost in (number, 2):
                losing.lose(gate)
            gate.open()
        losing.job.wait(PATIENCE)
    finally:
        for gate in gates:
            gate.open()
        losing.job.close()
    read = part_files(tmp_path / "out")
    assert sorted(read) == [(n, n % 3, n // 3) for n in range(3 * count)]
    for partition in range(3):
        offsets = [o for _, p, o in read if p == partition]
        assert offsets == sorted(offsets)


@pytest.mark.parametrize("least", [1, 60, 130])
def test_positions_are_exact_wherever_a_job_is_stopped(topics: Topics, least: int, tmp_path: Path) -> None:
    topic = topics.make(2)
    for partition in range(2):
        topics.write(topic, [b'{"n": %d}' % n for n in range(50)], partition)
        topics.write(topic, [b"bad"], partition)
        topics.write(topic, [b'{"n": %d}' % n for n in range(50, 100)], partition)
    topology = rel.Topology("stopped")
    source = rel.kafka(topics.address, topic, {"n": int}, fields={"partition": "p"}, on_bad_row="skip")
    paced = topology.source(source, name="messages").throttle(300, name="paced")
    paced.sink(rel.list(), name="out")
    job = rel.start(topology)
    wait_for(job, "out", least)
    left = [tuple(t) for t in job.stop(tmp_path / "saved")["out"]]
    job = rel.start(topology, restore=tmp_path / "saved")
    wait_for(job, "out", 200 - len(left))
    left += [tuple(t) for t in job.stop(tmp_path / "again")["out"]]
    assert sorted(left) == sorted((n, p) for n in range(100) for p in range(2))


def test_each_partition_has_a_watermark_of_its_own(topics: Topics) -> None:
    topic = topics.make(2)
    topics.write(topic, [b'{"at": %d}' % at for at in range(0, 20_000, 2)], 0)
    topics.write(topic, [b'{"at": %d}' % at for at in range(1, 20_000, 2)], 1)
    topology = rel.Topology("times")
    source = rel.kafka(topics.address, topic, {"at": int}, stop="end", fields={"partition": "p"})
    times = topology.source(source, name="messages").event_time("at", lateness=0, unit="ms")
    counts = times.window(seconds=1).aggregate(name="counts", n=rel.count())
    counts.sink(rel.list(), name="out")
    assert sum(t.n for t in rel.run(topology)["out"]) == 20_000, "some were late"


def test_a_topic_that_was_made_again_is_not_read_on(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make()
    topics.write(topic, texts(10))
    topology = rel.Topology("again")
    topology.source(rel.kafka(topics.address, topic), name="messages").sink(rel.list(), name="out")
    job = rel.start(topology)
    wait_for(job, "out", 10)
    job.stop(tmp_path / "saved")
    topics.delete(topic)
    topics.make(name=topic)
    topics.write(topic, texts(20))
    with raises(JobFailedError, "changed-input", topic):
        rel.run(topology, restore=tmp_path / "saved")


def test_offsets_that_were_deleted_are_an_error(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make()
    topics.write(topic, texts(10))
    topology = rel.Topology("gone")
    topology.source(rel.kafka(topics.address, topic), name="messages").sink(rel.list(), name="out")
    job = rel.start(topology)
    wait_for(job, "out", 10)
    job.stop(tmp_path / "saved")
    topics.write(topic, texts(20))
    topics.delete_before(topic, 15)
    with raises(JobFailedError, "offsets-gone", "10", "15"):
        rel.run(topology, restore=tmp_path / "saved")


def test_new_partitions_are_read_from_their_first_message(
    topics: Topics, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reader, "DISCOVERY", 0.0)
    topic = topics.make()
    topics.write(topic, texts(1))
    topology = rel.Topology("grows")
    topology.source(rel.kafka(topics.address, topic), name="messages").sink(rel.list(), name="out")
    job = rel.start(topology)
    wait_for(job, "out", 1)
    topics.grow(topic, 2)
    topics.write(topic, texts(2, 10), partition=1)
    wait_for(job, "out", 3)
    assert [t.value for t in job.stop(tmp_path / "saved")["out"]] == texts(1) + texts(2, 10)


def test_a_broker_that_is_killed_and_returns_costs_no_row(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make()
    topics.write(topic, texts(100))
    topology = rel.Topology("killed")
    topology.source(rel.kafka(topics.address, topic), name="messages").sink(rel.list(), name="out")
    job = rel.start(topology)
    wait_for(job, "out", 100)
    topics.broker.kill()
    topics.broker.start()
    topics.write(topic, texts(100, 100))
    wait_for(job, "out", 200)
    assert [t.value for t in job.stop(tmp_path / "saved")["out"]] == texts(200)


def test_wrong_arguments_are_errors_at_the_declaration() -> None:
    def declared(*given: Any, **options: Any) -> None:
        rel.Topology("wrong").source(rel.kafka(*given, **options), name="messages")

    with raises(SourceError, "wrong-type", operator="messages"):
        declared("", "topic")
    with raises(SourceError, "wrong-type", operator="messages"):
        declared("localhost:9092", None)
    with raises(SourceError, "conflicting-arguments", "enable.auto.commit"):
        declared("localhost:9092", "t", settings={"enable.auto.commit": True})
    with raises(SourceError, "unknown-choice", "'headers'"):
        declared("localhost:9092", "t", fields={"headers": "h"})
    with raises(SourceError, "unknown-choice", "'header:'"):
        declared("localhost:9092", "t", fields={"header:": "h"})
    with raises(SchemaError, "wrong-field-type", "header:h"):
        declared("localhost:9092", "t", {"h": int}, fields={"header:h": "h"})
    with raises(GraphError, "unknown-choice", "start"):
        declared("localhost:9092", "t", start="now")
    with raises(GraphError, "unknown-choice", "stop"):
        declared("localhost:9092", "t", stop=5)
    with raises(GraphError, "conflicting-arguments", "group.id"):
        declared("localhost:9092", "t", start="committed")
    with raises(GraphError, "conflicting-arguments", "'latest'"):
        declared("localhost:9092", "t", start="latest", on_bad_row="divert")
    with raises(SchemaError, "unsupported-type", "tags"):
        declared("localhost:9092", "t", {"tags": list[str]})
    with raises(SchemaError, "wrong-field-type", "at"):
        declared("localhost:9092", "t", {"at": int}, fields={"timestamp": "at"})


def test_a_password_is_shown_nowhere() -> None:
    topology = rel.Topology("secret")
    settings = {"sasl.password": "hunter2", "sasl.username": "u"}
    source = rel.kafka("localhost:9092", "t", settings=settings)
    topology.source(source, name="messages").sink(rel.list(), name="out")
    assert "hunter2" not in f"{source!r} {topology.explain()} {topology.operators}"


def test_what_is_wrong_with_the_brokers_is_an_error_before_anything_starts(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TIMEOUT", 2.0)
    with raises(SourceError, "unknown-topic", "nowhere", operator="messages"):
        rows(topics, "nowhere")
    with raises(SourceError, "invalid-setting", "group.idd", operator="messages"):
        rows(topics, "nowhere", settings={"group.idd": "x"})
    topology = rel.Topology("nobody")
    topology.source(rel.kafka("127.0.0.1:1", "t"), name="messages").sink(rel.list(), name="out")
    with raises(SourceLostError, "source-unreachable", "127.0.0.1:1", operator="messages"):
        rel.run(topology)


OPENED = threading.Event()
MANY = 60_000  # messages, more than queues hold


def waits(t: Any) -> int:
    return OPENED.wait(PATIENCE) and len(t.value)


def test_lag_and_time_behind_are_shown_and_offsets_are_committed(topics: Topics) -> None:
    topic = topics.make(2)
    topics.write(topic, texts(MANY), timestamp=int(1000 * (time.time() - 500)))
    topics.transaction(topic, [b"committed"], commits=True)
    topology = rel.Topology("lags")
    read = topology.source(rel.kafka(topics.address, topic), name="messages")
    read.map(waits, name="waits", schema={"length": int}, lane="python").sink(rel.count(), name="out")
    with closing(rel.start(topology, metrics_port=0)) as job:
        while not (source := job.metrics().operator("messages")).behind_seconds:
            job.pause(0.01)
        assert 0 < source.lag < MANY + 3
        assert 500 <= source.behind_seconds < 500 + PATIENCE
        topics.write(topic, texts(MANY), partition=1)
        while (more := job.metrics().operator("messages").lag) < source.lag + MANY // 2:  # the brokers are asked again
            job.pause(0.01)
        text = urllib.request.urlopen(f"http://127.0.0.1:{job.metrics_port}/metrics").read().decode()
        shown = re.search(r'^rayelastic_operator_lag\{.*operator="messages".*\} (\d+)', text, re.M)
        assert shown is not None
        assert 0 < int(shown[1]) <= more
        OPENED.set()
        wait_for(job, "out", 2 * MANY + 1)
        while (source := job.metrics().operator("messages")).lag:  # marks of transactions are no messages
            job.pause(0.01)
        assert source.behind_seconds == 0
        wait_until(job, lambda: sum(topics.committed("rayelastic-lags-messages", topic)) >= 2 * MANY + 1)


PASSED = threading.Event()


def passes(t: Any) -> bool:
    return t.value != b"stuck" or PASSED.wait(PATIENCE)


def test_offsets_of_checkpoints_are_committed_and_another_job_begins_there(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages that the source has emitted, and no checkpoint has, are read by a job that begins at the offsets."""
    topic, tries = topics.make(2), list[dict[int, int]]()
    commit = client.Client.commit

    def noted(self: client.Client, group: str, offsets: Any) -> None:
        tries.append(dict(offsets))
        commit(self, group, offsets)

    monkeypatch.setattr(client.Client, "commit", noted)
    topics.write(topic, texts(10))
    group = f"of {topic}"
    own: dict[str, Any] = {"settings": {"group.id": group}}
    with raises(JobFailedError, "offsets-gone", group, "committed-or-earliest"):
        rows(topics, topic, start="committed", **own)
    assert rows(topics, topic, start="committed-or-latest", **own) == []
    topology = rel.Topology("commits")
    source = rel.kafka(topics.address, topic, start="committed-or-earliest", **own)
    topology.source(source, name="messages").filter(passes, name="passes", lane="python").sink(rel.list(), name="out")
    with closing(rel.start(topology, rel.JobConfig(checkpoint=rel.Checkpoint(every=0.2)))) as job:
        wait_until(job, lambda: topics.committed(group, topic) == [10, 0], look=0.1)
        topics.write(topic, [b"stuck", b"after"])
        wait_for(job, "passes", 11)
        before = len(tries)
        wait_until(job, lambda: len(tries) > before + 1)  # one may have begun before the messages came
        assert tries[-1] == {0: 10, 1: 0}
        topics.grow(topic, 3)
        topics.write(topic, [b"new"], partition=2)
        assert sorted(rows(topics, topic, start="committed", **own)) == [(b"after",), (b"new",), (b"stuck",)]
        PASSED.set()
