"""Makes Kafka messages of Arrow batches, and passes them to a producer. Knows neither checkpoints nor transactions."""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.bad_rows import BadRow, LeftOut
from rayelastic.connectors.json.writer import JsonFormat
from rayelastic.connectors.kafka.declaration import HEADER
from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.spec.dead_letters import OnError

if TYPE_CHECKING:
    import confluent_kafka
    import pyarrow as pa

    from rayelastic.connectors.kafka.declaration import KafkaSink
    from rayelastic.graph.records.schema import Schema

__all__ = ["Encoder", "send"]

ANY = -1  # the partition that librdkafka chooses
NOW = 0  # the timestamp that librdkafka sets
FULL = 0.02  # seconds between two tries to add a message to a full queue


class Encoder:
    """Makes messages of batches: a column for `value`, and one for each part that is declared.

    Args:
        body: The description of the sink.
        schema: The schema of its tuples.
        limit: The largest sum of the bytes of a value, key and headers.
        partitions: The number of partitions.
        ask: Asks the brokers for that number.
    """

    def __init__(self, body: KafkaSink, schema: Schema, limit: int, partitions: int, ask: Callable[[], int]) -> None:
        self._body = body
        self._fields = dict(body.fields)
        self._form = JsonFormat(schema)
        self._value = "" if body.form == "json" else body.value_field(schema).name
        self._limit = limit
        self._known, self._ask = partitions, ask
        self._received = 0  # rows
        self.left_out = LeftOut()

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the messages of a batch.

        Raises:
            SinkError: A tuple can't be written, and `on_bad_row` is FAIL.
        """
        import pyarrow as pa

        bad: dict[int, str] = {}
        columns = {"value": self._values(batch, bad)}
        for part, name in self._fields.items():
            if part == "key" or part.startswith(HEADER):
                text = batch.column(name)
                columns[part] = (text.cast(pa.string()) if pa.types.is_integer(text.type) else text).cast(pa.binary())
        if (timestamp := self._part(batch, "timestamp")) is not None:
            columns["timestamp"] = timestamp.cast(pa.timestamp("ms", timestamp.type.tz), safe=False).cast(pa.int64())
        if (partition := self._part(batch, "partition")) is not None:
            columns["partition"] = partition.cast(pa.int64())
            self._check_partitions(columns["partition"], bad)
        self._check_sizes(columns, bad)
        messages = pa.RecordBatch.from_pydict(columns)
        if bad:
            messages = self._without(messages, bad)
        self._received += batch.num_rows
        return messages

    # -- implementation -------------------------------------------------------------------------------------------

    def _part(self, batch: pa.RecordBatch, part: str) -> Any:
        return batch.column(self._fields[part]) if part in self._fields else None

    def _values(self, batch: pa.RecordBatch, bad: dict[int, str]) -> pa.Array:
        import pyarrow as pa

        if self._value:
            return batch.column(self._value).cast(pa.binary())
        try:
            return pa.array(self._objects(batch), pa.binary())
        except SinkError:
            values: list[bytes | None] = []
            for number in range(batch.num_rows):
                try:
                    values += self._objects(batch.slice(number, 1))
                except SinkError as error:
                    bad[number] = error.problem
                    values.append(None)
            return pa.array(values, pa.binary())

    def _objects(self, batch: pa.RecordBatch) -> list[bytes]:
        lines = io.BytesIO()
        self._form.begin(lines).write_batch(batch)
        return lines.getvalue().split(b"\n")[:-1]

    def _check_partitions(self, numbers: pa.Array, bad: dict[int, str]) -> None:
        import pyarrow.compute as pc

        if len(numbers) and pc.max(numbers).as_py() >= self._known:
            self._known = self._ask()  # it may have more by now
        for number in pc.indices_nonzero(
            pc.or_(pc.less(numbers, 0), pc.greater_equal(numbers, self._known))
        ).to_pylist():
            bad[number] = f"its partition is {numbers[number]}, and the topic has {self._known} partitions"

    def _check_sizes(self, columns: dict[str, Any], bad: dict[int, str]) -> None:
        import pyarrow.compute as pc

        texts = [column for part, column in columns.items() if part not in ("timestamp", "partition")]
        sizes = functools.reduce(pc.add, [pc.fill_null(pc.binary_length(text), 0) for text in texts])
        for number in pc.indices_nonzero(pc.greater(sizes, self._limit)).to_pylist():
            bad.setdefault(number, f"its message has {sizes[number].as_py():,} bytes, and at most {self._limit:,} fit")

    def _without(self, messages: pa.RecordBatch, bad: dict[int, str]) -> pa.RecordBatch:
        """Return the messages without bad ones, which are counted.

        Raises:
            SinkError: `on_bad_row` is FAIL.
        """
        import pyarrow as pa

        topic = self._body.topic
        for number, problem in sorted(bad.items()):
            if self._body.on_bad_row is not OnError.SKIP:
                raise SinkError(
                    f"tuple {self._received + number:,} can't be written to topic {topic!r}: {problem}",
                    hint="Check it in a function before, pass on_bad_row='skip', or raise the topic's limit",
                    code=ErrorCode.UNWRITABLE_VALUE,
                )
            self.left_out.add(BadRow(topic, self._received + number, "", problem))
        return messages.filter(pa.array([number not in bad for number in range(messages.num_rows)]))


def send(
    producer: confluent_kafka.Producer,
    topic: str,
    messages: pa.RecordBatch,
    wait: Callable[[], None],
    last: Mapping[str, str] = {},
) -> None:
    """Pass messages to a producer, in order.

    Args:
        producer: It sends them by itself.
        topic: Their topic.
        messages: See `Encoder`.
        wait: Called while the producer's queue is full; raises if nothing can be sent any more.
        last: More headers of the last message.
    """
    count = messages.num_rows
    names = messages.schema.names
    values, keys, partitions, timestamps = (
        messages.column(part).to_pylist() if part in names else itertools.repeat(default, count)
        for part, default in (("value", None), ("key", None), ("partition", ANY), ("timestamp", NOW))
    )
    headers = _headers(messages)
    if count:
        headers[-1] = [*headers[-1], *last.items()]
    produce = producer.produce
    for value, key, partition, timestamp, more in zip(values, keys, partitions, timestamps, headers, strict=True):
        while True:
            try:
                produce(topic, value, key, partition, timestamp=timestamp, headers=more)
                break
            except BufferError:
                producer.poll(FULL)
                wait()


def _headers(messages: pa.RecordBatch) -> list[list[tuple[str, Any]]]:
    """Return the headers of each message; a header of None is left out."""
    names = [part for part in messages.schema.names if part.startswith(HEADER)]
    if not names:
        return [[]] * messages.num_rows
    rows = zip(*(messages.column(part).to_pylist() for part in names), strict=True)
    heads = [part.removeprefix(HEADER) for part in names]
    return [[(head, value) for head, value in zip(heads, row, strict=True) if value is not None] for row in rows]
