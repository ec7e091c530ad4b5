"""Reads a topic of Kafka: a native consumer decodes, a thread decides where it begins and what its errors mean.

A checkpoint has the next offset of each partition, the ends of a bounded source, and the topic's id. So a restored
source reads on exactly there, and notices a topic that was deleted and created again.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.connectors.files.bad_rows import SHOWN_ROWS
from rayelastic.connectors.kafka.client import AWAY, CREDENTIALS, TOPICS, Client, Explained, library_file
from rayelastic.connectors.kafka.declaration import COMMITTED
from rayelastic.connectors.problem import Problem
from rayelastic.connectors.secret import read_all
from rayelastic.connectors.source import SourceOperator
from rayelastic.errors import ErrorCode, SourceError, SourceLostError, StateError
from rayelastic.graph.spec.dead_letters import OnError

if TYPE_CHECKING:
    from rayelastic.connectors.inputs import Input
    from rayelastic.connectors.kafka.declaration import BadMessages, KafkaSource
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["TopicReader", "bad_messages", "kafka_source"]

LOOK = 1.0  # seconds between looks at the broker while it is away, at the ends, and between two clearings of positions
DISCOVERY = 30.0  # seconds between looks for new partitions
PATIENCE = 30.0  # seconds that a source waits for a broker by itself, before the job does
BACKOFF = "2"  # ms; by default a consumer that is slower than the fetch waits for a second each time its queue was full
BAD_RECORD = "bad-record"
OFFSETS = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"})


def kafka_source(spec: OperatorSpec, schema: _native.Schema, body: KafkaSource) -> SourceOperator:
    """Make a source of the messages of a topic.

    Raises:
        SourceError: The topic can't be read.
        SourceLostError: No broker answers.
    """
    return _source(spec, schema, body)


def bad_messages(spec: OperatorSpec, schema: _native.Schema, body: BadMessages) -> SourceOperator:
    """Make a source of the messages that another source drops; arguments and errors as for `kafka_source`."""
    return _source(spec, schema, body.of, body.name)


def _source(
    spec: OperatorSpec, schema: _native.Schema, body: KafkaSource, diverts_from: str | None = None
) -> SourceOperator:
    problem = Problem()
    reader = TopicReader(body, problem.coded, diverts_from)
    native = _native.Operator.kafka_source(spec.name, schema, reader.consumer)
    return SourceOperator(
        native,
        feed=reader.feed,
        left_out=reader.left_out,
        seek=reader.seek,
        position=reader.position,
        watch=reader.watch,
        complete=reader.complete,
        lag=reader.lag,
        reserve=reader.reserve,
        stop=reader.stop,
        problem=problem,
    )


class DroppedMessages:
    """The messages that a source dropped because they aren't of its schema.

    Args:
        topic: The topic.
        consumer: Counts them.
    """

    def __init__(self, topic: str, consumer: _native.KafkaConsumer) -> None:
        self._topic = topic
        self._consumer = consumer

    @property
    def count(self) -> int:
        """Their number."""
        return self._consumer.dropped

    @property
    def first(self) -> Sequence[str]:
        """The first of them."""
        events = self._consumer.first_dropped[:SHOWN_ROWS]
        return [f"{self._topic}, partition {part}, offset {offset}: {text}" for _, part, offset, text in events]


class TopicReader:
    """Decides where a native consumer reads.

    Args:
        body: The description of the source.
        text_of: Returns the text of an error with which the source fails.
        diverts_from: The source whose bad messages it emits; None: it emits the messages.

    Raises:
        SourceError: The topic can't be read.
        SourceLostError: No broker answers.
    """

    def __init__(
        self, body: KafkaSource, text_of: Callable[[Exception], str] = str, diverts_from: str | None = None
    ) -> None:
        self._body = body
        self._text_of = text_of
        self._explained = Explained(body.brokers, body.topic)
        settings = {
            "bootstrap.servers": body.brokers,
            "client.id": "rayelastic",
            "group.id": f"rayelastic-{body.topic}",  # not that of the committed offsets, unless the user sets it
            "isolation.level": "read_committed",
            "log_level": "0",
            "fetch.queue.backoff.ms": BACKOFF,
            "allow.auto.create.topics": "false",
            **read_all(SourceError, dict(body.settings)),
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "error",
        }
        self._client = Client(settings, body.topic, self._explained)
        self._partitions = self._client.partitions()
        own = {**settings, "enable.partition.eof": "true"}
        self.consumer = _native.KafkaConsumer(
            library_file(),
            list(own.items()),
            body.topic,
            body.form,
            [(part, body.schema.names.index(name)) for part, name in body.fields],
            body.on_bad_row is not OnError.FAIL,
            _schema_of(body) if diverts_from is not None else None,
            diverts_from or "",
        )
        self.left_out = DroppedMessages(body.topic, self.consumer)
        self._saved: dict[str, Any] | None = None
        self._emitted: Callable[[], int] = lambda: 0
        has_group = diverts_from is None and "group.id" in dict(body.settings)
        self._group = settings["group.id"] if has_group else ""
        self._lock = threading.Lock()  # guards the fields below
        self._topic_id = ""
        self._ends: dict[int, int] = {}
        self._has_begun = False
        self._complete: dict[int, int] | None = None  # the offsets of the last checkpoint; None: the job takes none

    def seek(self, _: int, saved: Input | None) -> int:
        """Begin at the saved offsets; return 0, because no row is emitted twice.

        Raises:
            StateError: The saved data isn't a position.
        """
        if saved is None or saved.position is None:
            return 0
        try:
            at = saved.position
            self._saved = {"topic": f"{at['topic']}", "next": _numbers(at["next"]), "ends": _numbers(at["ends"])}
        except (AttributeError, KeyError, TypeError, ValueError):
            raise StateError("its position in the snapshot is damaged", code=ErrorCode.DAMAGED_POSITION) from None
        return 0

    def position(self, emitted: int) -> object:
        """Return the offsets after so many rows in this run, for JSON; None if it hasn't begun for the first time."""
        with self._lock:
            if not self._has_begun:
                return None if self._saved is None else _for_json(**self._saved)
            return _for_json(self._topic_id, dict(self.consumer.position(emitted)), self._ends)

    def lag(self) -> tuple[int, float]:
        """Return the number of unread messages, and the seconds behind."""
        messages, read_at = self.consumer.lag()
        return messages, 0.0 if read_at is None else max(0.0, time.time() - read_at / 1000)

    def watch(self, emitted: Callable[[], int], name: str) -> None:
        """Register a callback that returns the rows emitted in this run, whose offsets it commits under the name."""
        self._emitted = emitted
        self._group = self._group or f"rayelastic-{name}"

    def complete(self, position: object) -> None:
        """Commit the offsets of complete checkpoints from now on, instead of those of emitted rows."""
        at: Any = position
        with self._lock:
            self._complete = _numbers(at["next"]) if at is not None else {}

    def reserve(self) -> None:
        """Remember where 'latest' or 'committed' is now, unless a position was saved.

        Raises:
            SourceError: The topic can't be read there.
            SourceLostError: No broker answers.
        """
        if self._saved is None and self._body.start in ("latest", *COMMITTED):
            bounds = self._bounds()
            self._saved = {"topic": self._client.topic_id(), "next": self._starts(bounds), "ends": self._high(bounds)}

    def stop(self) -> None:
        """Make it end soon."""
        self.consumer.interrupt()

    def feed(self) -> None:
        """Have the consumer read, until it is over. An error fails the source."""
        try:
            self._begin()
            self._attend()
        except Exception as error:  # what the brokers report, or a fault of ours: the source fails with it
            self.consumer.fail(self._text_of(error))
        finally:
            self._client.close()

    # -- implementation -------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        topic_id = self._client.topic_id()
        saved = self._saved
        if saved is not None and saved["topic"] != topic_id:
            raise SourceError(
                f"topic {self._body.topic!r} was deleted and created again since the checkpoint",
                hint="Start without the checkpoint, or restore one of the new topic",
                code=ErrorCode.CHANGED_INPUT,
            )
        bounds = self._bounds()
        starts = self._starts(bounds) if saved is None else saved["next"]
        for number, start in starts.items():
            self._check(number, start, bounds)
        starts = {number: starts.get(number, low) for number, (low, _) in bounds.items()}
        ends = self._high(bounds)
        if saved is not None and self._body.is_bounded:
            ends = {number: saved["ends"].get(number, 0) for number in ends}  # none of partitions that are new
        with self._lock:
            self._topic_id, self._ends, self._has_begun = topic_id, ends, True
            self.consumer.assign([(number, start, ends.get(number, -1)) for number, start in starts.items()])
        self.consumer.set_ends([(number, high) for number, (_, high) in bounds.items()])

    def _bounds(self) -> dict[int, tuple[int, int]]:
        return {number: self._client.bounds(number) for number in self._partitions}

    def _high(self, bounds: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Return the ends of a bounded source."""
        return {number: high for number, (_, high) in bounds.items()} if self._body.is_bounded else {}

    def _starts(self, bounds: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        start = self._body.start
        if start == "earliest":
            return {number: low for number, (low, _) in bounds.items()}
        latest = {number: high for number, (_, high) in bounds.items()}
        if start == "latest":
            return latest
        if start in COMMITTED:
            return self._committed(bounds)
        if isinstance(start, dt.datetime):
            found = self._client.offsets_at(start, bounds)
            return {number: offset if offset >= 0 else latest[number] for number, offset in found.items()}
        assert isinstance(start, Mapping)
        return dict(start)

    def _committed(self, bounds: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Return the offsets that the group has committed. Partitions that it lacks are read from their start."""
        found = self._client.committed(bounds)
        if not found and self._body.start == "committed":
            raise SourceError(
                f"group {self._group!r} has committed no offset of topic {self._body.topic!r}",
                hint="Check its name, or pass start='committed-or-earliest' or 'committed-or-latest'",
                code=ErrorCode.OFFSETS_GONE,
            )
        is_latest = not found and self._body.start == "committed-or-latest"
        return {number: found.get(number, high if is_latest else low) for number, (low, high) in bounds.items()}

    def _check(self, number: int, start: int, bounds: Mapping[int, tuple[int, int]]) -> None:
        if number not in bounds:
            raise SourceError(
                f"topic {self._body.topic!r} has no partition {number}, but {len(bounds)} partitions",
                hint="Correct start=" if self._saved is None else "Start without the checkpoint",
                code=ErrorCode.OFFSETS_GONE,
            )
        low, high = bounds[number]
        if not low <= start <= high:
            raise self._gone(number, f"offset {start} isn't in the topic, which has {low} to {high}")

    def _gone(self, number: int, text: str) -> SourceError:
        return SourceError(
            f"partition {number} of {self._body.topic!r}: {text}",
            hint="Begin at another offset by start=. A topic deletes messages after its retention time",
            code=ErrorCode.OFFSETS_GONE,
        )

    def _attend(self) -> None:
        """Decide on what the consumer reports."""
        away: float | None = None
        tidied = discovered = time.monotonic()
        while not self.consumer.is_over:
            event = self.consumer.next_event(LOOK)
            now = time.monotonic()
            if event is not None and self._is_away(*event):
                away = now if away is None else away
            if away is not None and event is None:
                away = self._waited(away, now)
            if now >= tidied + LOOK and away is None:
                self._follow()
                tidied = now
            if now >= discovered + DISCOVERY and away is None and not self._body.is_bounded:
                self._discover()
                discovered = now

    def _follow(self) -> None:
        """Ask where the partitions end, and commit where they continue; what is needed no more is dropped."""
        self.consumer.set_ends(self._client.ends(self._partitions, LOOK))
        emitted = dict(self.consumer.position(self._emitted()))
        with self._lock:
            offsets = emitted if self._complete is None else self._complete
        self._client.commit(self._group, offsets)

    def _is_away(self, name: str, partition: int, offset: int, text: str) -> bool:
        """Return whether an event says that no broker answers.

        Raises:
            SourceError: The source can't continue.
        """
        if name == BAD_RECORD:
            raise SourceError(
                f"{self._body.topic!r}, partition {partition}, offset {offset}: {text}",
                hint="Declare other types, or pass on_bad_row='skip'",
                code=ErrorCode.MALFORMED_RECORD,
            )
        if name in OFFSETS:
            raise self._gone(partition, text)
        if name in CREDENTIALS | TOPICS or (partition >= 0 and name not in AWAY):
            raise self._explained.of(name, text)
        return name in AWAY

    def _waited(self, since: float, now: float) -> float | None:
        """Ask whether a broker answers again; return since when none does.

        Raises:
            SourceLostError: It has been away for too long.
        """
        try:
            self._client.partitions(LOOK)
        except SourceLostError:
            if now > since + PATIENCE:
                raise
            return since
        return None

    def _discover(self) -> None:
        """Read partitions that are new, from their first message on."""
        try:
            fresh = sorted(set(self._client.partitions()) - set(self._partitions))
        except SourceLostError:
            return
        self._partitions += fresh
        self.consumer.assign([(number, 0, -1) for number in fresh])


def _schema_of(body: KafkaSource) -> _native.Schema:
    fields = [(column.name, column.type.native, column.nullable, str(column.format)) for column in body.schema.fields]
    return _native.Schema(fields)


def _numbers(saved: Mapping[str, int]) -> dict[int, int]:
    return {int(number): int(offset) for number, offset in saved.items()}


def _for_json(topic: str, next: Mapping[int, int], ends: Mapping[int, int]) -> dict[str, Any]:  # noqa: A002
    return {
        "topic": topic,
        "next": {f"{number}": offset for number, offset in next.items()},
        "ends": {f"{number}": offset for number, offset in ends.items()},
    }
