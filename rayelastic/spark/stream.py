"""An unbounded DataFrame as a source: Spark's Structured Streaming pushes each micro-batch into the running job.

Rows are numbered by (query, epoch, partition, row); the query's checkpoint keeps its id and the epoch. After a crash
between push and commit, Spark replays the epoch under the same numbers, and the job drops the repeated rows. A
micro-batch ends when a checkpoint of the job has all of its rows. So a slow job makes Spark wait (back-pressure), and
rows that a lost PE had are pushed again.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from rayelastic.connectors.pushed.frames import Epoch
from rayelastic.connectors.typed import Declared
from rayelastic.errors import ErrorCode, SchemaError, SourceError, SparkError
from rayelastic.spark.columns import match_columns
from rayelastic.spark.failure import spark_reason
from rayelastic.spark.pushed_frame import PUSHED, PushedFrame, pusher

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    from rayelastic.runtime.ingest.feed import Feed

T = TypeVar("T")


class _Options(TypedDict, total=False):
    columns: Mapping[str, str] | None
    trigger: Mapping[str, Any] | None


POLL = 1  # whole seconds between two checks whether the query was stopped from here
START_TIMEOUT = 60.0  # seconds between a query's first micro-batch and the return of its start


@dataclass(slots=True)
class _Running:
    """The query of a running push; `begun` is set when it can be queried, `at_work` is held by a micro-batch."""

    query: StreamingQuery | None = None
    begun: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)
    at_work: threading.Lock = field(default_factory=threading.Lock)
    last: int = -1  # the last micro-batch that was pushed

    def begin(self) -> None:
        """Forget the query of an earlier push."""
        self.query, self.last = None, -1

    def rests(self) -> bool:
        """Return whether the query is between two micro-batches: Spark has committed the last pushed one."""
        if not self.at_work.acquire(blocking=False):
            return False
        try:
            progress = self.query.lastProgress if self.query is not None else None
            return (progress["batchId"] if progress is not None else -1) >= self.last
        finally:
            self.at_work.release()


@dataclass(frozen=True, slots=True, eq=False)
class SparkStream(PushedFrame[T]):
    """A streaming DataFrame that feeds a source; made by `rel.spark.stream`.

    Args:
        checkpoint: The folder where Spark stores the position of the query.
        trigger: When a micro-batch starts, as for Spark's `trigger`.
    """

    checkpoint: str
    trigger: Mapping[str, Any]
    _running: _Running = field(default_factory=_Running)

    def push(self, feed: Feed) -> dict[int, int]:
        """Run the query until it ends, fails or is cancelled.

        Args:
            feed: the source that takes the rows.

        Returns:
            Nothing to check at the end: each micro-batch was checked when it was pushed.

        Raises:
            SparkError: the query failed; the text has the useful line of its reason.
        """
        running, operator = self._running, feed.operator
        running.begin()
        schema = self.schema.to_arrow()

        def micro_batch(frame: DataFrame, number: int) -> None:
            if not running.begun.wait(START_TIMEOUT) or running.query is None:
                raise SourceError("its query didn't start", operator=operator, code=ErrorCode.FEED_FAILED)
            with running.at_work:
                if not running.cancelled.is_set():
                    _take_in(feed, frame, schema, Epoch(str(running.query.id), number))
                    running.last = number
                    return
            _await_stop(frame)
            raise SourceError("its query was cancelled", operator=operator, code=ErrorCode.PUSH_CANCELLED)

        writer = self.selected().writeStream.foreachBatch(micro_batch)
        writer = writer.option("checkpointLocation", self.checkpoint).queryName(f"{operator}-{uuid.uuid4().hex[:8]}")
        try:
            query = (writer.trigger(**self.trigger) if self.trigger else writer).start()
            running.query = query
            running.begun.set()
            while not query.awaitTermination(POLL):
                if running.cancelled.is_set() and running.rests():
                    query.stop()
        except Exception as error:  # py4j's and pyspark's errors have no common base
            if running.cancelled.is_set():
                return {}
            problem = f"the streaming query failed: {spark_reason(error)}"
            raise SparkError(problem, code=ErrorCode.FEED_FAILED) from error
        finally:
            running.begun.clear()
        return {}

    def cancel(self) -> None:
        """Stop the query of a running `push` after the current micro-batch; safe to repeat."""
        self._running.cancelled.set()


def _await_stop(frame: DataFrame) -> None:
    """Wait in the query's own thread of the JVM until it is stopped, because Spark doesn't count that as a failure."""
    jvm: Any = frame.sparkSession._jvm
    jvm.java.lang.Thread.sleep(int(START_TIMEOUT * 1000))


def _take_in(feed: Feed, frame: DataFrame, schema: pa.Schema, epoch: Epoch) -> None:
    """Push a micro-batch until a checkpoint of the job has it, also across losses."""
    while True:
        address = feed.address()
        try:
            pushed = frame.mapInArrow(pusher(address, schema, epoch), PUSHED).collect()
        except Exception as error:  # py4j's and pyspark's errors have no common base
            if feed.must_repeat(address, spark_reason(error)):
                continue
            raise
        if feed.secure(address, epoch, {row.partition: row.rows for row in pushed}):
            return


@overload
def stream(
    frame: DataFrame, schema: type[Mapping[str, Any]], *, checkpoint: str, **options: Unpack[_Options]
) -> SparkStream[Any]: ...


@overload
def stream(frame: DataFrame, schema: type[T], *, checkpoint: str, **options: Unpack[_Options]) -> SparkStream[T]: ...


@overload
def stream(
    frame: DataFrame, schema: Declared | None = None, *, checkpoint: str, **options: Unpack[_Options]
) -> SparkStream[Any]: ...


def stream(
    frame: DataFrame,
    schema: object = None,
    *,
    checkpoint: str,
    columns: Mapping[str, str] | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> SparkStream[Any]:
    """Feed a stream with the rows of a streaming DataFrame, each once, for as long as they come.

    The query starts and stops with the job. Its end (by `availableNow`) is the end of the source, its failure is the
    job's failure. A job on Ray outlives the driver; a new driver continues from the checkpoint with
    `rel.attach(name).feed(operator, rel.spark.stream(...))`.

    Args:
        frame: A streaming DataFrame (`spark.readStream`), on a session of `rel.spark.session` or of your own.
        schema: The schema of the tuples, as for `rel.spark.source`.
        checkpoint: A folder for this query alone, which must exist after a restart.
        columns: The DataFrame's column of a field, if the names differ.
        trigger: When a micro-batch starts: {"processingTime": "1 second"}, {"availableNow": True}; at once by default.

    Raises:
        SchemaError: A column is missing, has another type, or a type that a record can't hold.
        SourceError: A batch DataFrame, or no checkpoint.

    Example:
        >>> rows = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()  # doctest: +SKIP
        >>> ticks = topo.source(rel.spark.stream(rows, checkpoint="/var/lib/ticks"), name="ticks")  # doctest: +SKIP
    """
    if not frame.isStreaming:
        raise SourceError(
            "a batch DataFrame doesn't stream", hint="Pass it to rel.spark.source", code=ErrorCode.WRONG_FRAME
        )
    if not isinstance(checkpoint, str) or not checkpoint:
        raise SourceError(
            f"checkpoint={checkpoint!r} isn't a folder",
            hint="Name a folder of the query's own",
            code=ErrorCode.NOT_A_FOLDER,
        )
    if unknown := set(trigger or {}) - {"processingTime", "availableNow", "once"}:
        raise SourceError(
            f"trigger={dict(trigger or {})!r}: Spark's micro-batches have no {', '.join(sorted(unknown))}",
            hint='Pass {"processingTime": "1 second"} or {"availableNow": True}',
            code=ErrorCode.UNKNOWN_CHOICE,
        )
    matched, names = match_columns(frame.schema, schema, columns or {})
    if not names:
        raise SchemaError("the DataFrame has no columns", code=ErrorCode.NO_FIELDS)
    return SparkStream(frame, matched, names, checkpoint, dict(trigger or {}))
