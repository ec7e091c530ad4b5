"""Transactions of one transactional id: each writes messages and a token that says which epoch they are.

librdkafka repeats the request that ends a transaction when no answer comes, and reports success. The late first request
may arrive after the producer's next transaction has begun, and would end that one halfway. So each transaction has a
producer of its own, which has called `init_transactions` after the one before ended. The brokers reject late requests
of earlier producers. A producer is used if the token, read after that call, is the last one of this process. So a
process that was replaced writes nothing, however late it fences its successor.

The token is an offset of a consumer group that nobody subscribes to, on partition 0 of the topic.
"""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from rayelastic.connectors.kafka.client import AWAY, LOOK, REJECTED, SHARED, Explained
from rayelastic.connectors.kafka.messages import send
from rayelastic.connectors.output.epochs import FencedError, Token, Transactions
from rayelastic.errors import DeclarationError, SinkError, SinkLostError

if TYPE_CHECKING:
    import confluent_kafka
    import pyarrow as pa

__all__ = ["TopicTransactions", "raising"]

T = TypeVar("T")

TIMEOUT = 20.0  # seconds for each request of a transaction; librdkafka repeats it meanwhile
STEP = 0.5  # seconds of one call of librdkafka: so long a call continues after `close`
HEADER = "rayelastic"  # of the last message of an epoch
FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING"})


class TopicTransactions(Transactions):
    """Writes transactions, one at a time.

    Args:
        settings: Settings of librdkafka.
        topic: The topic.
        name: The transactional id, and the group of the token.
        explained: Makes errors.
    """

    def __init__(self, settings: Mapping[str, str], topic: str, name: str, explained: Explained) -> None:
        self._settings = dict(settings)
        self._topic = topic
        self._name = name
        self._explained = explained
        self._next: Future[tuple[confluent_kafka.Producer, Token | None]] | None = None
        self._last: Token | None = None  # that this process has read or written
        self._rejected: list[DeclarationError] = []  # of messages of this process's transactions
        self._beside = ThreadPoolExecutor(1, f"kafka-{name}")
        self._closed = threading.Event()

    def fence(self) -> Token | None:
        """Abort the open transaction of any other producer of this id, which can't write from now on; return the token.

        Raises:
            SinkLostError: No broker answers.
        """
        self._drop(self._next)
        made = self._made()
        self._next = Future()
        self._next.set_result(made)
        self._last = made[1]
        return self._last

    def token(self) -> Token | None:
        """Return the token; None: there is none. It waits while a transaction is open.

        Raises:
            SinkLostError: No broker answers, or a transaction stays open.
        """
        import confluent_kafka

        at = [confluent_kafka.TopicPartition(self._topic, 0)]
        with raising(self._explained), self._reader() as reader:
            found = self._waited(lambda: reader.committed(at, timeout=STEP)[0])
            if found.error is not None:
                raise self._explained.of(found.error.name(), found.error.str())
            return Token.of(found.offset, found.metadata) if found.offset >= 0 else None

    def write(self, token: Token, batches: Sequence[pa.RecordBatch]) -> None:
        """Write messages and their token in one transaction. After an error it is unknown whether it is written.

        Raises:
            FencedError: Another producer has taken the place of this one.
            SinkLostError: No broker answers.
        """
        import confluent_kafka

        producer, found = self._take()
        if found != self._last:
            self._end(producer)
            raise FencedError("another process has written to the topic")
        self._rejected.clear()
        try:
            with raising(self._explained), self._reader() as reader:
                group = reader.consumer_group_metadata()
                producer.begin_transaction()
                filled = [batch for batch in batches if batch.num_rows]
                for number, batch in enumerate(filled, 1):
                    is_last = number == len(filled)
                    send(producer, self._topic, batch, self._check_open, {HEADER: token.to_text()} if is_last else {})
                self._flush(producer)  # before the offsets: librdkafka sends them for `socket.timeout.ms`, not for STEP
                at = confluent_kafka.TopicPartition(self._topic, 0, token.epoch, metadata=token.to_text())
                self._waited(lambda: producer.send_offsets_to_transaction([at], group, STEP))
                self._waited(lambda: producer.commit_transaction(STEP))
        finally:
            self._end(producer)
        self._last = token
        self._next = self._beside.submit(self._made)  # not after an error: it would fence whoever is there instead

    def close(self) -> None:
        """Make no more producers. The open transaction, if there is one, is aborted by the brokers."""
        self._closed.set()
        self._drop(self._next)
        self._beside.shutdown(wait=False)

    # -- implementation -------------------------------------------------------------------------------------------

    def _take(self) -> tuple[confluent_kafka.Producer, Token | None]:
        """Return the producer of the next transaction, and the token that it read."""
        made, self._next = self._next, None
        if made is None:
            return self._made()
        is_old = made.done()
        try:
            return made.result()
        except (SinkError, FencedError):
            if not is_old:
                raise
            return self._made()

    def _made(self) -> tuple[confluent_kafka.Producer, Token | None]:
        import confluent_kafka

        with raising(self._explained):
            own: dict[str, Any] = {"transactional.id": self._name, "on_delivery": self._report}
            producer = confluent_kafka.Producer({**self._settings, **own, "delivery.report.only.error": True})
            try:
                for _ in range(2):  # the first broker to answer, and one that it names
                    self._waited(lambda: producer.list_topics(self._topic, STEP))
                # It asks a broker at once if it is connected, otherwise after 0.5 s.
                self._waited(lambda: producer.init_transactions(STEP))
                return producer, self.token()
            except BaseException:
                self._end(producer)  # or it would go on by itself, and fence the next one
                raise

    @contextlib.contextmanager
    def _reader(self) -> Iterator[Any]:
        """Make a consumer of the token's group; it subscribes to nothing."""
        import confluent_kafka

        shared: dict[str, Any] = {name: value for name, value in self._settings.items() if name.startswith(SHARED)}
        more = {"group.id": self._name, "enable.auto.commit": "false", "isolation.level": "read_committed"}
        reader = confluent_kafka.Consumer({**shared, **more})
        try:
            yield reader
        finally:
            reader.close()

    def _waited(self, call: Callable[[], T]) -> T:
        """Repeat a call that waits for STEP while no broker answers, for TIMEOUT."""
        import confluent_kafka

        until = time.monotonic() + TIMEOUT
        while True:
            self._check_open()
            try:
                return call()
            except confluent_kafka.KafkaException as problem:
                error: Any = problem.args[0]
                if error.name() not in AWAY or error.txn_requires_abort() or time.monotonic() > until:
                    raise
                if error.name() != "_TIMED_OUT":
                    self._closed.wait(LOOK)

    def _flush(self, producer: confluent_kafka.Producer) -> None:
        """Wait until the brokers have acknowledged all messages.

        Raises:
            SinkError: They reject one.
            SinkLostError: No broker answers.
        """
        until = time.monotonic() + TIMEOUT
        while (left := producer.flush(STEP)) and not self._rejected:
            self._check_open()
            if time.monotonic() > until:
                raise self._explained.of("_TIMED_OUT", f"{left:,} messages aren't acknowledged")
        if self._rejected:
            raise self._rejected[0]

    def _report(self, error: confluent_kafka.KafkaError | None, _: object) -> None:
        if error is not None and error.name() in REJECTED:
            self._rejected.append(self._explained.of(error.name(), error.str()))

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise SinkLostError("the sink has been closed")

    def _drop(self, made: Future[tuple[confluent_kafka.Producer, Token | None]] | None) -> None:
        if made is not None and not made.cancel():
            made.add_done_callback(lambda done: None if done.exception() else self._end(done.result()[0]))

    @staticmethod
    def _end(producer: confluent_kafka.Producer) -> None:
        """End a producer; messages that it still holds are dropped."""

        def close() -> None:
            warnings.filterwarnings("ignore", "Producer abort_transaction failed", RuntimeWarning)
            with contextlib.suppress(Exception):  # it is of no use any more
                producer.purge()
                producer.close()

        # It aborts an open transaction, and waits without end for a broker. If the next producer is made before, the
        # brokers abort it, and reject this one.
        closing = threading.Thread(target=close, name="kafka-close", daemon=True)
        closing.start()
        closing.join(2 * STEP)


@contextlib.contextmanager
def raising(explained: Explained) -> Iterator[None]:
    """Raise librdkafka's errors as the project's.

    Raises:
        FencedError: The brokers reject the producer.
        SinkError: Any other error.
    """
    import confluent_kafka

    try:
        yield
    except (confluent_kafka.KafkaException, SystemError) as problem:
        cause: BaseException | None = problem
        while isinstance(cause, SystemError):  # a delivery report after a fatal error can't be called: it is the cause
            cause = cause.__cause__
        if not isinstance(cause, confluent_kafka.KafkaException):
            raise
        error: Any = cause.args[0]
        if error.name() in FENCED:
            raise FencedError(error.str()) from None
        raise explained.of(error.name(), error.str()) from None
