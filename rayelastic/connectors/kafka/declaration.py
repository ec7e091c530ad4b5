"""A topic of Kafka as a source and as a sink: values that describe it."""

from __future__ import annotations

import datetime as dt
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Literal, TypeVar, get_args, overload

from rayelastic.connectors.description import OBJECTS, Sink, Source
from rayelastic.connectors.secret import Secret
from rayelastic.connectors.typed import Declared, SourceOf
from rayelastic.errors import DeclarationError, ErrorCode, GraphError, SchemaError, SinkError, SourceError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.schema import Field, Schema, laid_out
from rayelastic.graph.records.shown import invalid, shown
from rayelastic.graph.spec.dead_letters import ERRORS, OnError, on_error_of
from rayelastic.graph.spec.operator_spec import Lane, SinkDescription, SourceDescription

__all__ = [
    "COMMITTED",
    "BadMessages",
    "Delivery",
    "KafkaSink",
    "KafkaSource",
    "KafkaTarget",
    "KafkaTopic",
    "kafka",
    "to_kafka",
]

T = TypeVar("T")

Start = (
    Literal["earliest", "latest", "committed", "committed-or-earliest", "committed-or-latest"]
    | dt.datetime
    | Mapping[int, int]
)
Form = Literal["bytes", "text", "json"]

HEADER = "header:"  # with its name: a part of a message
MESSAGE_FIELDS = ("key", "timestamp", "partition", "offset", f"{HEADER}NAME")
COMMITTED = ("committed", "committed-or-earliest", "committed-or-latest")
OWN_SETTINGS = (  # what the runtime sets itself
    "auto.offset.reset", "bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof",
)  # fmt: skip
TARGET_FIELDS = ("key", "timestamp", "partition", f"{HEADER}NAME")
SINK_SETTINGS = ("bootstrap.servers", "delivery.report.only.error", "enable.idempotence", "transactional.id")
INTEGERS = (
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
)  # fmt: skip
KEY_TYPES = frozenset({DataType.STRING, DataType.BINARY, *INTEGERS})
JSON_TYPES = frozenset({DataType.BOOL, DataType.FLOAT64, DataType.STRING, *INTEGERS})
MICROSECONDS = "tsu:"  # the format of a datetime


@dataclass(frozen=True, slots=True)
class KafkaSource(Source[Any]):
    """The messages of a topic.

    Args:
        brokers: The addresses of some brokers, separated by commas.
        topic: Its name.
        schema: The schema of the tuples.
        form: What the value of a message is: bytes, text or json.
        fields: {part of the message: field}.
        start: Where each partition begins.
        is_bounded: Whether it ends at the end that the topic has at the start.
        on_bad_row: What happens to a message that isn't of the schema.
        settings: Settings of librdkafka. They may contain a password, or name a secret.
        name: The operator's name.
    """

    kind: ClassVar[str] = "a topic of Kafka"
    seeks: ClassVar[bool] = True

    brokers: str
    topic: str
    schema: Schema
    form: Form
    fields: tuple[tuple[str, str], ...]
    start: Start
    is_bounded: bool
    on_bad_row: OnError
    settings: tuple[tuple[str, str | Secret], ...] = field(repr=False)
    name: str = ""
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"librdkafka and native decoder of {self.form}"

    @property
    def side_sources(self) -> dict[str, BadMessages]:
        """Return the side sources that read the same topic, by port."""
        return {ERRORS: BadMessages(self, self.name)} if self.on_bad_row is OnError.DIVERT else {}

    @property
    def has_splits(self) -> bool:
        """Whether each partition has a watermark of its own."""
        return True

    @property
    def is_endless(self) -> bool:
        """Whether it never ends by itself."""
        return not self.is_bounded

    def check(self, operator: str) -> None:
        """Raise SourceError if confluent-kafka isn't installed."""
        _check_installed(operator, SourceError)


@dataclass(frozen=True, slots=True)
class BadMessages(Source[Any]):
    """The messages of a topic that a source drops because they aren't of its schema; reads the topic again."""

    kind: ClassVar[str] = "bad messages of a topic of Kafka"
    seeks: ClassVar[bool] = True

    of: KafkaSource
    name: str  # of that source
    schema: Schema = Schema.of(  # noqa: RUF009
        {
            "topic": str, "partition": int, "offset": int, "key": bytes | None, "value": bytes | None, "error": str,
            "operator": str,
        },
        name="BadMessage",
    )  # fmt: skip
    lane: Lane = Lane.BUILT_IN
    reason: str = "messages that don't fit the schema"

    @property
    def has_splits(self) -> bool:
        """Whether each partition has a watermark of its own."""
        return True

    @property
    def is_endless(self) -> bool:
        """Whether it never ends by itself."""
        return self.of.is_endless

    def check(self, operator: str) -> None:
        """Raise SourceError if confluent-kafka isn't installed."""
        self.of.check(operator)


@dataclass(frozen=True, slots=True)
class KafkaTopic(SourceOf[T]):
    """The result of `kafka`: the arguments, which are checked when an operator is made of it."""

    brokers: object
    topic: object
    schema: object
    fields: object
    start: object
    stop: object
    on_bad_row: object
    settings: object = field(repr=False)

    def as_source(self, operator: str) -> SourceDescription:
        """Check the arguments, and describe the source."""
        settings = _checked_settings(self, operator, OWN_SETTINGS, SourceError)
        fields = _checked_fields(self.fields, operator, MESSAGE_FIELDS, SourceError)
        form: Form = "json"
        declared = bytes if self.schema is None else self.schema
        if declared in (bytes, bytes | None):
            form = "bytes"
        elif declared in (str, str | None):
            form = "text"
        schema = _with_fields(Schema.of(declared), form, fields)
        if self.stop not in (None, "end"):
            raise invalid("stop", self.stop, "Pass 'end', or nothing for an endless stream", ErrorCode.UNKNOWN_CHOICE)
        start, policy = _start(self.start), on_error_of(self.on_bad_row, "on_bad_row")
        if start in COMMITTED and "group.id" not in dict(settings):
            raise GraphError(
                f"start={start!r} needs the name of the group",
                hint="Pass settings={'group.id': 'mine'}",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )
        if policy is OnError.DIVERT and start in ("latest", *COMMITTED):
            raise GraphError(
                f"start={start!r} can't be combined with on_bad_row='divert': the dead letters would begin later",
                hint="Pass start=datetime.datetime.now(datetime.UTC)",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )
        brokers, topic, is_bounded = f"{self.brokers}", f"{self.topic}", self.stop == "end"
        return KafkaSource(brokers, topic, schema, form, fields, start, is_bounded, policy, settings, operator)


class Delivery(Enum):
    """The delivery guarantee of a sink."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True, slots=True)
class KafkaSink(Sink):
    """Writes a message for each tuple.

    Args:
        brokers: The addresses of some brokers, separated by commas.
        topic: Its name.
        form: What the value of a message is: bytes, text or json.
        fields: {part of the message: field}.
        delivery: The delivery guarantee.
        create: The number of partitions of a topic that is created if it is missing; 0: none is created.
        on_bad_row: What happens to a tuple that can't be written.
        settings: Settings of librdkafka. They may contain a password, or name a secret.
    """

    unsupported: ClassVar[frozenset[DataType]] = OBJECTS

    brokers: str
    topic: str
    form: Form
    fields: tuple[tuple[str, str], ...]
    delivery: Delivery
    create: int
    on_bad_row: OnError
    settings: tuple[tuple[str, str | Secret], ...] = field(repr=False)

    @property
    def lane(self) -> Lane:
        """Run by run if each message is sent at once, otherwise in batches up to a checkpoint."""
        return Lane.BUILT_IN if self.delivery is Delivery.EXACTLY_ONCE else Lane.VECTORISED

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"messages of {self.form} by librdkafka, {self.delivery.value}"

    @property
    def shows_rows(self) -> bool:  # type: ignore[override]  # of the guarantee
        """Whether it shows rows when a checkpoint is complete."""
        return self.delivery is Delivery.EXACTLY_ONCE

    def check(self, operator: str) -> None:
        """Raise SinkError if confluent-kafka isn't installed."""
        _check_installed(operator, SinkError)

    def check_schema(self, schema: Schema) -> None:
        """Raise SinkError for a field that it can't write, or that is missing."""
        Sink.check_schema(self, schema)
        rights: dict[str, tuple[str, Callable[[Field], bool]]] = {
            "key": ("str, bytes or int, perhaps None", lambda it: it.type in KEY_TYPES),
            "timestamp": ("datetime", lambda it: it.type is DataType.TIMESTAMP and not it.nullable),
            "partition": ("int", lambda it: it.type in INTEGERS and not it.nullable),
        }
        for part, name in self.fields:
            column, (declared, is_right) = schema.find(name), rights["key" if _is_header(part) else part]
            if column is None:
                raise SinkError(
                    f"fields= names {name!r} as the {part} of a message, and the stream has no such field",
                    hint=f"It has {', '.join(schema.names)}",
                    code=ErrorCode.UNKNOWN_FIELD,
                )
            if not is_right(column):
                raise SinkError(
                    f"field '{column}' can't be the {part} of a message",
                    hint=f"Map it to a field of {declared}",
                    code=ErrorCode.WRONG_FIELD_TYPE,
                )
        if self.form != "json":
            self.value_field(schema)

    def value_field(self, schema: Schema) -> Field:
        """Return the field that is the value of a message of bytes or text.

        Raises:
            SinkError: There isn't exactly one.
        """
        others = [column for column in schema.fields if column.name not in dict(self.fields).values()]
        wanted = DataType.BINARY if self.form == "bytes" else DataType.STRING
        if len(others) != 1 or others[0].type is not wanted:
            raise SinkError(
                f"a message of form={self.form!r} has one field as its value, and {schema.name} has "
                f"{', '.join(map(str, others)) or 'none'} besides those in fields=",
                hint=f"Map it to one field of {'bytes' if self.form == 'bytes' else 'str'}, or write form='json'",
                code=ErrorCode.WRONG_FIELD_TYPE,
            )
        return others[0]


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """The result of `to_kafka`: the arguments, which are checked when an operator is made of it."""

    brokers: object
    topic: object
    form: object
    fields: object
    delivery: object
    create: object
    on_bad_row: object
    settings: object = field(repr=False)

    def as_sink(self, operator: str) -> SinkDescription:
        """Check the arguments, and describe the sink."""
        settings = _checked_settings(self, operator, SINK_SETTINGS, SinkError)
        fields = _checked_fields(self.fields, operator, TARGET_FIELDS, SinkError)
        if self.form not in get_args(Form):
            raise invalid("form", self.form, "Choose 'json', 'text' or 'bytes'", ErrorCode.UNKNOWN_CHOICE)
        form: Form = self.form  # type: ignore[assignment]
        try:
            delivery = Delivery(self.delivery)
        except ValueError:
            hint = "Choose 'at-least-once' or 'exactly-once'"
            raise invalid("delivery", self.delivery, hint, ErrorCode.UNKNOWN_CHOICE) from None
        if isinstance(self.create, bool) or not isinstance(self.create, int) or self.create < 0:
            raise invalid("create", self.create, "Pass the number of partitions of a new topic, such as 12")
        if (policy := on_error_of(self.on_bad_row, "on_bad_row")) is OnError.DIVERT:
            raise GraphError(
                "rel.to_kafka can't divert tuples that it can't write",
                hint="Pass on_bad_row='skip', or check them in a function with on_error='divert' before",
                code=ErrorCode.UNKNOWN_CHOICE,
            )
        return KafkaSink(f"{self.brokers}", f"{self.topic}", form, fields, delivery, self.create, policy, settings)


@overload
def kafka(
    brokers: str,
    topic: str,
    schema: type[T],
    *,
    fields: Mapping[str, str] = ...,
    start: Start = ...,
    stop: Literal["end"] | None = ...,
    on_bad_row: OnError | Literal["fail", "skip", "divert"] = ...,
    settings: Mapping[str, object] = ...,
) -> KafkaTopic[T]: ...


@overload
def kafka(
    brokers: str,
    topic: str,
    schema: Declared | None = None,
    *,
    fields: Mapping[str, str] = ...,
    start: Start = ...,
    stop: Literal["end"] | None = ...,
    on_bad_row: OnError | Literal["fail", "skip", "divert"] = ...,
    settings: Mapping[str, object] = ...,
) -> KafkaTopic[Any]: ...


def kafka(
    brokers: str,
    topic: str,
    schema: object = None,
    *,
    fields: Mapping[str, str] = {},
    start: Start = "earliest",
    stop: Literal["end"] | None = None,
    on_bad_row: OnError | Literal["fail", "skip", "divert"] = "fail",
    settings: Mapping[str, object] = {},
) -> KafkaTopic[Any]:
    """Read the messages of a Kafka topic.

    The source reads all partitions by assignment, without a consumer group. Checkpoints have the next offset of each
    partition, and a restored job continues there. Rows of a partition keep their order, and each partition has a
    watermark of its own. Messages of open and of aborted transactions aren't read.

    Args:
        brokers: The addresses of some brokers: 'host:9092,other:9092'.
        topic: Its name.
        schema: `bytes` (the default) or `str` for the value as it is, as a field `value`. For JSON objects
            a class or a dict with bool, int, float and str fields, each `| None` if it may be null or absent. Other
            fields of an object are left out. A message without a value is None if that is declared.
        fields: What else a message has, and the field for it: {'key': 'user', 'timestamp': 'at'}. It has `key`,
            `timestamp`, `partition`, `offset`, and `header:trace` for the last header with the name `trace`. Fields
            that the schema lacks are added: key and headers are then `bytes | None` or, of texts and JSON,
            `str | None`.
        start: 'earliest', 'latest', a datetime (UTC if it has no zone), or {partition: offset}. Or 'committed': where
            the group of settings['group.id'] has committed. If it has committed nothing, that is an error. Use
            'committed-or-earliest' or 'committed-or-latest' to begin there instead.
        stop: 'end' to read what the topic has at the start, and to end.
        on_bad_row: What happens to a message that isn't of the schema: 'fail', 'skip', which counts it, or 'divert'.
            Diverted messages are counted and emitted in the stream `.errors`, which reads the topic a second time. It
            has `topic`, `partition`, `offset`, `key`, `value`, `error` and `operator`.
        settings: Settings of librdkafka, such as {'security.protocol': 'SASL_SSL', ...}. A value may be a `rel.secret`.

    Raises:
        SourceError: At the declaration, if an argument is invalid. At the start, if no broker answers, the topic is
            missing or credentials are wrong.
        SchemaError: The schema has a type that isn't read from JSON.

    >>> import rayelastic as rel
    >>> rel.kafka("localhost:9092", "clicks", {"user": str, "n": int}, start="latest").topic
    'clicks'
    """
    return KafkaTopic(brokers, topic, schema, fields, start, stop, on_bad_row, settings)


def to_kafka(
    brokers: str,
    topic: str,
    *,
    form: Form = "json",
    fields: Mapping[str, str] = {},
    delivery: Literal["at-least-once", "exactly-once"] = "at-least-once",
    create: int = 0,
    on_bad_row: OnError | Literal["fail", "skip"] = "fail",
    settings: Mapping[str, object] = {},
) -> KafkaTarget:
    """Write a stream to a Kafka topic, a message for each tuple.

    By default messages are sent at once by an idempotent producer, and a checkpoint is complete when the brokers have
    acknowledged all messages before it. A job that recovers sends those after the checkpoint again: at least once.

    With `delivery='exactly-once'` a checkpoint stores the messages, and one transaction for each checkpoint writes them
    once it is complete. Consumers with `isolation.level=read_committed` see each message once, and all of a checkpoint
    or none. The job has to take checkpoints.

    Messages with the same key go into the same partition, in order, as by the clients in Java.

    Args:
        brokers: The addresses of some brokers: 'host:9092,other:9092'.
        topic: Its name.
        form: 'json' writes an object with all fields. 'text' and 'bytes' write the one field that `fields` doesn't
            name. A message of None has no value.
        fields: What else a message has, and the field that it comes from: {'key': 'user'}. It has `key` (str, bytes or
            int), `timestamp` (datetime), `partition` (int), and headers such as `header:trace` (str, bytes or int).
            Where such a field is None, the message has no key or no such header.
        delivery: 'at-least-once' or 'exactly-once'.
        create: Create the topic with so many partitions if it is missing.
        on_bad_row: What happens to a tuple that can't be written: 'fail' or 'skip', which counts it. It is too large,
            has invalid JSON, or its partition doesn't exist.
        settings: Settings of librdkafka, such as {'linger.ms': 50, 'compression.type': 'zstd'}. A value may be a
            `rel.secret`.

    Raises:
        SinkError: At the declaration, if an argument is invalid. At the start, if no broker answers, the topic is
            missing or credentials are wrong.

    >>> import rayelastic as rel
    >>> rel.to_kafka("localhost:9092", "totals", fields={"key": "user"}).topic
    'totals'
    """
    return KafkaTarget(brokers, topic, form, fields, delivery, create, on_bad_row, settings)


def _check_installed(operator: str, error: type[DeclarationError]) -> None:
    if importlib.util.find_spec("confluent_kafka") is None:
        raise error(
            "Kafka needs confluent-kafka, which isn't installed",
            operator=operator,
            hint="pip install 'rayelastic[kafka]'",
            code=ErrorCode.MISSING_PACKAGE,
        )


def _checked_settings(
    topic: KafkaTopic[Any] | KafkaTarget, operator: str, own: Iterable[str], error: type[DeclarationError]
) -> tuple[tuple[str, str | Secret], ...]:
    function = "rel.to_kafka" if isinstance(topic, KafkaTarget) else "rel.kafka"
    for what, value in (("brokers", topic.brokers), ("topic", topic.topic)):
        if not isinstance(value, str) or not value:
            raise error(
                f"{what}={shown(value)} is invalid",
                operator=operator,
                hint=f"Pass texts, as in {function}('localhost:9092', 'events')",
                code=ErrorCode.WRONG_TYPE,
            )
    if not isinstance(topic.settings, Mapping):
        raise error(
            f"settings={shown(type(topic.settings).__name__)} is invalid",  # the values may contain a password
            operator=operator,
            hint="Pass {'security.protocol': 'SSL'} or the like",
            code=ErrorCode.WRONG_TYPE,
        )
    if set_here := [name for name in topic.settings if name in own]:
        raise error(
            f"the runtime sets {set_here[0]!r} itself",
            operator=operator,
            hint="Leave it out of settings=",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    return tuple((f"{name}", _setting(value)) for name, value in topic.settings.items())


def _checked_fields(
    fields: object, operator: str, parts: Iterable[str], error: type[DeclarationError]
) -> tuple[tuple[str, str], ...]:
    if not isinstance(fields, Mapping) or not all(isinstance(name, str) for name in fields.values()):
        raise error(
            f"fields={shown(fields)} is invalid",
            operator=operator,
            hint="Pass {'key': 'user'} or the like: what a message has, and the field's name",
            code=ErrorCode.WRONG_TYPE,
        )
    if unknown := [part for part in fields if part not in parts and not _is_header(part)]:
        raise error(
            f"fields={shown(fields)}: there is no {unknown[0]!r}",
            operator=operator,
            hint=f"Choose {', '.join(parts)}",
            code=ErrorCode.UNKNOWN_CHOICE,
        )
    return tuple(fields.items())


def _is_header(part: object) -> bool:
    return isinstance(part, str) and part.startswith(HEADER) and part != HEADER


def _setting(value: object) -> str | Secret:
    if isinstance(value, Secret):
        return value
    return f"{value}".lower() if isinstance(value, bool) else f"{value}"


def _start(start: object) -> Start:
    if start in ("earliest", "latest", *COMMITTED) or isinstance(start, dt.datetime):
        return start  # type: ignore[return-value]  # one of the words
    if (
        isinstance(start, Mapping)
        and start
        and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for pair in start.items() for n in pair)
    ):
        return dict(start)
    raise invalid(
        "start",
        start,
        "Pass 'earliest', 'latest', 'committed', a datetime, or {partition: offset}",
        ErrorCode.UNKNOWN_CHOICE,
    )


def _with_fields(declared: Schema, form: str, fields: Iterable[tuple[str, str]]) -> Schema:
    """Add the fields of the message that aren't declared.

    Raises:
        SchemaError: A field can't be read.
    """
    key = (DataType.BINARY if form == "bytes" else DataType.STRING).default_format
    added = {"text": (key, True), "timestamp": (MICROSECONDS, False)}
    new, own = [], set()
    for part, name in fields:
        own.add(name)
        kind = "text" if part == "key" or _is_header(part) else part
        column = declared.find(name)
        if column is None:
            new.append((name, *added.get(kind, (DataType.INT64.default_format, False))))
            continue
        right = {"text": column.type in (DataType.STRING, DataType.BINARY), "timestamp": column.format == MICROSECONDS}
        if not right.get(kind, column.type is DataType.INT64) or (column.nullable and kind != "text"):
            types = {"text": "str or bytes, perhaps None", "timestamp": "datetime"}
            raise SchemaError(
                f"field '{name}' is the {part} of a message, and can't be {column}",
                hint=f"Declare it as {types.get(kind, 'int')}",
                code=ErrorCode.WRONG_FIELD_TYPE,
            )
    for column in declared.fields:
        if form == "json" and column.name not in own and column.type not in JSON_TYPES:
            raise SchemaError(
                f"field '{column}' can't be read from a message of JSON",
                hint="Declare bool, int, float or str; or read str, and parse it in a function",
                code=ErrorCode.UNSUPPORTED_TYPE,
            )
    if not new:
        return declared
    columns = [(column.name, column.format, column.nullable) for column in declared.fields]
    return laid_out(declared.name, [*columns, *new])
