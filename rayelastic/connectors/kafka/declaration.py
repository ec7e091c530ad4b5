"""A topic of Kafka as a source: a value that describes it."""

from __future__ import annotations

import datetime as dt
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar, overload

from rayelastic.connectors.description import Source
from rayelastic.connectors.typed import Declared, SourceOf
from rayelastic.errors import ErrorCode, GraphError, SchemaError, SourceError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import invalid, shown
from rayelastic.graph.spec.dead_letters import OnError, on_error_of
from rayelastic.graph.spec.operator_spec import Lane, SourceDescription

__all__ = ["KafkaSource", "KafkaTopic", "kafka"]

T = TypeVar("T")

Start = Literal["earliest", "latest"] | dt.datetime | Mapping[int, int]

MESSAGE_FIELDS = ("key", "timestamp", "partition", "offset")
OWN_SETTINGS = (  # what the runtime sets itself
    "auto.offset.reset", "bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof",
)  # fmt: skip
INTEGERS = (
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
)  # fmt: skip
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
        settings: Settings of librdkafka. They may contain a password.
    """

    kind: ClassVar[str] = "a topic of Kafka"
    seeks: ClassVar[bool] = True

    brokers: str
    topic: str
    schema: Schema
    form: Literal["bytes", "text", "json"]
    fields: tuple[tuple[str, str], ...]
    start: Start
    is_bounded: bool
    on_bad_row: OnError
    settings: tuple[tuple[str, str], ...] = field(repr=False)
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"librdkafka and native decoder of {self.form}"

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
        if importlib.util.find_spec("confluent_kafka") is None:
            raise SourceError(
                "Kafka needs confluent-kafka, which isn't installed",
                operator=operator,
                hint="pip install 'rayelastic[kafka]'",
                code=ErrorCode.MISSING_PACKAGE,
            )


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
        settings = self._checked_settings(operator)
        fields = self._checked_fields(operator)
        form: Literal["bytes", "text", "json"] = "json"
        declared = bytes if self.schema is None else self.schema
        if declared in (bytes, bytes | None):
            form = "bytes"
        elif declared in (str, str | None):
            form = "text"
        schema = _with_fields(Schema.of(declared), form, fields)
        if self.stop not in (None, "end"):
            raise invalid("stop", self.stop, "Pass 'end', or nothing for an endless stream", ErrorCode.UNKNOWN_CHOICE)
        if (policy := on_error_of(self.on_bad_row, "on_bad_row")) is OnError.DIVERT:
            raise GraphError(
                "rel.kafka can't divert messages that aren't of the schema",
                hint="Pass on_bad_row='skip', or read bytes and decode them in a function with on_error='divert'",
                code=ErrorCode.UNKNOWN_CHOICE,
            )
        start = _start(self.start)
        return KafkaSource(
            f"{self.brokers}", f"{self.topic}", schema, form, fields, start, self.stop == "end", policy, settings
        )

    # -- implementation -------------------------------------------------------------------------------------------

    def _checked_settings(self, operator: str) -> tuple[tuple[str, str], ...]:
        for what, value in (("brokers", self.brokers), ("topic", self.topic)):
            if not isinstance(value, str) or not value:
                raise SourceError(
                    f"{what}={shown(value)} is invalid",
                    operator=operator,
                    hint="Pass texts, as in rel.kafka('localhost:9092', 'events')",
                    code=ErrorCode.WRONG_TYPE,
                )
        if not isinstance(self.settings, Mapping):
            raise SourceError(
                f"settings={shown(type(self.settings).__name__)} is invalid",  # the values may contain a password
                operator=operator,
                hint="Pass {'security.protocol': 'SSL'} or the like",
                code=ErrorCode.WRONG_TYPE,
            )
        if own := [name for name in self.settings if name in OWN_SETTINGS]:
            raise SourceError(
                f"the runtime sets {own[0]!r} itself",
                operator=operator,
                hint="Leave it out of settings=",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )
        return tuple((f"{name}", _setting(value)) for name, value in self.settings.items())

    def _checked_fields(self, operator: str) -> tuple[tuple[str, str], ...]:
        if not isinstance(self.fields, Mapping) or not all(isinstance(name, str) for name in self.fields.values()):
            raise SourceError(
                f"fields={shown(self.fields)} is invalid",
                operator=operator,
                hint="Pass {'key': 'user'} or the like: what a message has, and the field's name",
                code=ErrorCode.WRONG_TYPE,
            )
        if unknown := [part for part in self.fields if part not in MESSAGE_FIELDS]:
            raise SourceError(
                f"fields={shown(self.fields)}: there is no {unknown[0]!r}",
                operator=operator,
                hint=f"Choose {', '.join(MESSAGE_FIELDS)}",
                code=ErrorCode.UNKNOWN_CHOICE,
            )
        return tuple(self.fields.items())


@overload
def kafka(
    brokers: str,
    topic: str,
    schema: type[T],
    *,
    fields: Mapping[str, str] = ...,
    start: Start = ...,
    stop: Literal["end"] | None = ...,
    on_bad_row: OnError | Literal["fail", "skip"] = ...,
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
    on_bad_row: OnError | Literal["fail", "skip"] = ...,
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
    on_bad_row: OnError | Literal["fail", "skip"] = "fail",
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
            `timestamp`, `partition` and `offset`. Fields that the schema lacks are added: the key is then
            `bytes | None` or, of texts and JSON, `str | None`.
        start: 'earliest', 'latest', a datetime (UTC if it has no zone), or {partition: offset}.
        stop: 'end' to read what the topic has at the start, and to end.
        on_bad_row: What happens to a message that isn't of the schema. 'fail' or 'skip', which counts it.
        settings: Settings of librdkafka, such as {'security.protocol': 'SASL_SSL', ...}.

    Raises:
        SourceError: At the declaration, if an argument is invalid. At the start, if no broker answers, the topic is
            missing or credentials are wrong.
        SchemaError: The schema has a type that isn't read from JSON.

    >>> import rayelastic as rel
    >>> rel.kafka("localhost:9092", "clicks", {"user": str, "n": int}, start="latest").topic
    'clicks'
    """
    return KafkaTopic(brokers, topic, schema, fields, start, stop, on_bad_row, settings)


def _setting(value: object) -> str:
    return f"{value}".lower() if isinstance(value, bool) else f"{value}"


def _start(start: object) -> Start:
    if start in ("earliest", "latest") or isinstance(start, dt.datetime):
        return start
    if (
        isinstance(start, Mapping)
        and start
        and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for pair in start.items() for n in pair)
    ):
        return dict(start)
    raise invalid(
        "start", start, "Pass 'earliest', 'latest', a datetime, or {partition: offset}", ErrorCode.UNKNOWN_CHOICE
    )


def _with_fields(declared: Schema, form: str, fields: Iterable[tuple[str, str]]) -> Schema:
    """Add the fields of the message that aren't declared.

    Raises:
        SchemaError: A field can't be read.
    """
    key = (DataType.BINARY if form == "bytes" else DataType.STRING).default_format
    added = {"key": (key, True), "timestamp": (MICROSECONDS, False)}
    new, own = [], set()
    for part, name in fields:
        own.add(name)
        column = declared.find(name)
        if column is None:
            new.append((name, *added.get(part, (DataType.INT64.default_format, False))))
            continue
        right = {"key": column.type in (DataType.STRING, DataType.BINARY), "timestamp": column.format == MICROSECONDS}
        if not right.get(part, column.type is DataType.INT64) or (column.nullable and part != "key"):
            types = {"key": "str or bytes, perhaps None", "timestamp": "datetime"}
            raise SchemaError(
                f"field '{name}' is the {part} of a message, and can't be {column}",
                hint=f"Declare it as {types.get(part, 'int')}",
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
