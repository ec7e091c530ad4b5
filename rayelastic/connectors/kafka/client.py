"""Asks the brokers of Kafka for topics, partitions and offsets, and explains their errors. Reads no messages."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rayelastic.connectors.secret import without_secrets
from rayelastic.errors import DeclarationError, ErrorCode, SourceError, SourceLostError

if TYPE_CHECKING:
    import confluent_kafka

__all__ = ["AWAY", "CREDENTIALS", "REJECTED", "TIMEOUT", "TOPICS", "Client", "Explained", "library_file"]

T = TypeVar("T")

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SHARED = ("bootstrap.servers", "client.id", "log_level", "sasl.", "security.", "ssl.", "socket.", "broker.")
TIMEOUT = 10.0  # seconds for an answer of the brokers
SETTLE = 5.0  # seconds until all brokers know a topic that one of them knows
LOOK = 0.05  # seconds between two questions meanwhile
# A broker has just begun to coordinate a group or transactional id.
MOVING = frozenset({"NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"})
AWAY = frozenset({
    "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_TRANSPORT", "_RESOLVE", "REQUEST_TIMED_OUT", "_TIMED_OUT_QUEUE",
    "_MSG_TIMED_OUT", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", *MOVING,
})  # fmt: skip
CREDENTIALS = frozenset({
    "_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
})  # fmt: skip
REJECTED = frozenset({
    "INVALID_MSG", "INVALID_MSG_SIZE", "INVALID_RECORD", "INVALID_TIMESTAMP", "MSG_SIZE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
})  # fmt: skip
TOPICS = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID"})


class Explained:
    """Makes typed errors of librdkafka's.

    Args:
        brokers: Their addresses.
        topic: The topic.
        error: The class of the errors.
        lost: Their class when no broker answers.
    """

    def __init__(
        self,
        brokers: str,
        topic: str,
        error: type[DeclarationError] = SourceError,
        lost: type[DeclarationError] = SourceLostError,
    ) -> None:
        self._brokers, self._topic = brokers, topic
        self._error, self._lost = error, lost

    def of(self, name: str, text: str) -> DeclarationError:
        """Return an error by librdkafka's name of it."""
        text = without_secrets(text)
        if name in CREDENTIALS:
            return self._error(
                f"the brokers at {self._brokers!r} reject the connection: {text}",
                hint="Check user, password and certificates in settings=, and the topic's access rights",
                code=ErrorCode.BAD_CREDENTIALS,
            )
        if name in TOPICS:
            return self._error(
                f"there is no topic {self._topic!r} at {self._brokers!r}",
                hint="Check its name, or create it",
                code=ErrorCode.UNKNOWN_TOPIC,
            )
        if name in AWAY:
            return self._lost(
                f"no broker at {self._brokers!r} answers: {text}", hint="Check the addresses, and that a broker runs"
            )
        if name in REJECTED:
            return self._error(
                f"the brokers reject a message to topic {self._topic!r}: {text}",
                hint="Check the topic's settings, such as its limits, or drop such tuples before the sink",
                code=ErrorCode.UNWRITABLE_VALUE,
            )
        if name == "_INVALID_ARG":
            return self._error(
                f"librdkafka rejects settings=: {text}", hint="Correct the setting", code=ErrorCode.INVALID_SETTING
            )
        return self._error(f"Kafka reports {name}: {text}", hint="Check the brokers and their log")


class Client:
    """A client of the brokers, for questions.

    Args:
        settings: Settings of librdkafka.
        topic: The topic.
        explained: Makes errors.

    Raises:
        SourceError: A setting is invalid.
    """

    def __init__(self, settings: Mapping[str, str], topic: str, explained: Explained) -> None:
        import confluent_kafka

        self._settings = settings
        self._topic = topic
        self._explained = explained
        self._reported: dict[str, str] = {}  # errors of the connection, with which a time-out is explained
        self._asking: Any = None
        self._committing: Any = None  # a consumer of its group
        self._asked: Mapping[int, int] = {}  # the offsets of the last commit
        self._committed: Mapping[int, int] | None = {}  # those that are committed; None: there is no answer yet
        self._warned = False
        self._consumer: Any = None
        with self._raising():
            self._consumer = confluent_kafka.Consumer({**settings, "error_cb": self._report})

    def partitions(self, timeout: float | None = None) -> list[int]:
        """Return the topic's partitions.

        Raises:
            SourceError: There is no such topic, or it can't be read.
            SourceLostError: No broker answers.
        """
        with self._raising():
            listed = self._consumer.list_topics(self._topic, timeout=timeout or TIMEOUT).topics[self._topic]
            if listed.error is not None:
                raise self._explained.of(listed.error.name(), listed.error.str())
            return sorted(listed.partitions)

    def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition, and the one after its last message."""
        import confluent_kafka

        with self._raising():
            bounds: tuple[int, int] | None = self._consumer.get_watermark_offsets(
                confluent_kafka.TopicPartition(self._topic, partition), timeout=TIMEOUT
            )
            if bounds is None:
                raise self._explained.of("_TIMED_OUT", "it doesn't report the offsets")
            return bounds

    def ends(self, partitions: Iterable[int], timeout: float) -> list[tuple[int, int]]:
        """Return where partitions end; none if no broker answers in time.

        The admin client isn't used: it ends the process by a failed assertion if a broker is lost meanwhile.
        """
        import confluent_kafka

        asked = [confluent_kafka.TopicPartition(self._topic, n, confluent_kafka.OFFSET_END) for n in partitions]
        try:
            found = self._consumer.offsets_for_times(asked, timeout=timeout)
        except confluent_kafka.KafkaException:
            return []
        return [(one.partition, one.offset) for one in found if one.error is None]

    def committed(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the offsets that the group of its settings has committed, of the partitions that have one."""
        import confluent_kafka

        asked = [confluent_kafka.TopicPartition(self._topic, number) for number in partitions]
        with self._raising():
            found = _settled(lambda: self._consumer.committed(asked, timeout=TIMEOUT), MOVING)
            if failed := next((one.error for one in found if one.error is not None), None):
                raise self._explained.of(failed.name(), failed.str())
            return {one.partition: one.offset for one in found if one.offset >= 0}

    def commit(self, group: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets under a group, for tools that show its lag; doesn't wait. A rejection is a warning."""
        import confluent_kafka

        if self._committing is None:
            own: dict[str, Any] = {**self._settings, "group.id": group, "on_commit": self._on_commit}
            self._committing = confluent_kafka.Consumer(own)
        self._committing.poll(0)  # calls `_on_commit`
        if offsets and self._committed is not None and offsets != self._committed:
            at = [confluent_kafka.TopicPartition(self._topic, number, offset) for number, offset in offsets.items()]
            self._committing.commit(offsets=at, asynchronous=True)
            self._committed, self._asked = None, offsets

    def offsets_at(self, at: dt.datetime, partitions: Iterable[int]) -> dict[int, int]:
        """Return the first offset of each partition whose timestamp isn't before a time; -1: none."""
        import confluent_kafka

        aware = at if at.tzinfo is not None else at.replace(tzinfo=dt.UTC)
        milliseconds = -((EPOCH - aware) // dt.timedelta(milliseconds=1))  # rounded up
        with self._raising():
            wanted = [confluent_kafka.TopicPartition(self._topic, n, milliseconds) for n in partitions]
            return {one.partition: one.offset for one in self._consumer.offsets_for_times(wanted, timeout=TIMEOUT)}

    def topic_id(self) -> str:
        """Return the id of the topic, which a recreated one doesn't share; empty: the brokers have none."""
        import confluent_kafka

        topics = confluent_kafka.TopicCollection([self._topic])
        with self._raising():
            described = _settled(
                lambda: self._admin().describe_topics(topics, request_timeout=TIMEOUT)[self._topic].result()
            )
            return f"{described.topic_id}"

    def message_bytes(self) -> int:
        """Return how large a batch of messages of the topic may be."""
        from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]

        asked = ConfigResource(ConfigResource.Type.TOPIC, self._topic)
        with self._raising():
            described = _settled(
                lambda: self._admin().describe_configs([asked], request_timeout=TIMEOUT)[asked].result()
            )
            return int(described["max.message.bytes"].value)

    def create(self, partitions: int) -> None:
        """Create the topic, unless it exists."""
        import confluent_kafka
        from confluent_kafka.cimpl import NewTopic

        with self._raising():
            if self._consumer.list_topics(self._topic, timeout=TIMEOUT).topics[self._topic].error is None:
                return
            try:
                self._admin().create_topics([NewTopic(self._topic, partitions)])[self._topic].result()
            except confluent_kafka.KafkaException as problem:
                if problem.args[0].name() != "TOPIC_ALREADY_EXISTS":  # another process was faster
                    raise
            until = time.monotonic() + SETTLE
            while self._consumer.list_topics(self._topic, timeout=TIMEOUT).topics[self._topic].error is not None:
                if time.monotonic() > until:
                    return
                time.sleep(LOOK)

    def close(self) -> None:
        """End the connections."""
        self._consumer.close()
        if self._committing is not None:
            self._committing.close()

    # -- implementation -------------------------------------------------------------------------------------------

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        if self._asking is None:  # kept: its futures need it
            names: dict[str, Any] = {name: value for name, value in self._settings.items() if name.startswith(SHARED)}
            self._asking = AdminClient(names)
        return self._asking

    def _on_commit(
        self, error: confluent_kafka.KafkaError | None, at: Sequence[confluent_kafka.TopicPartition]
    ) -> None:
        error = error or next((one.error for one in at if one.error is not None), None)
        self._committed = self._asked if error is None else {}
        if error is not None and error.name() not in AWAY and not self._warned:
            self._warned = True
            warnings.warn(f"the offsets of topic {self._topic!r} can't be committed: {error.str()}", stacklevel=2)

    def _report(self, error: confluent_kafka.KafkaError) -> None:
        self._reported[error.name()] = error.str()

    @contextmanager
    def _raising(self) -> Iterator[None]:
        """Raise librdkafka's errors as the project's."""
        import confluent_kafka

        try:
            yield
        except confluent_kafka.KafkaException as problem:
            error: Any = problem.args[0]
            name, text = error.name(), error.str()
            if name in AWAY and self._consumer is not None:
                self._consumer.poll(0)  # has the connection's errors reported
                causes = [*(one for one in self._reported if one in CREDENTIALS), *self._reported]
                name, text = (causes[0], self._reported[causes[0]]) if causes else (name, text)
            self._reported.clear()
            raise self._explained.of(name, text) from None


def _settled(ask: Callable[[], T], unsettled: frozenset[str] = TOPICS) -> T:
    """Ask again for a short time while a broker doesn't know a topic, or a group: others may know it already."""
    import confluent_kafka

    until = time.monotonic() + SETTLE
    while True:
        try:
            return ask()
        except confluent_kafka.KafkaException as problem:
            if problem.args[0].name() not in unsettled or time.monotonic() > until:
                raise
        time.sleep(LOOK)


def library_file() -> str:
    """Return the file of librdkafka that confluent-kafka has loaded.

    Raises:
        SourceError: It isn't a file of its own.
    """
    import confluent_kafka  # noqa: F401  (loads it)

    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.partition("/")[2]
        if "librdkafka" in path.rpartition("/")[2]:
            return f"/{path}"
    raise SourceError(
        "confluent-kafka has no librdkafka of its own",
        hint="Install its wheel: pip install --force-reinstall 'rayelastic[kafka]'",
        code=ErrorCode.MISSING_PACKAGE,
    )
