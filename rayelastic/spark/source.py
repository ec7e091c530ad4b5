"""A Spark DataFrame as a source: Spark's Python workers push its rows straight into a processing element's data port.

Rows cross as Arrow, never as pickled rows (reliability rule D10). Nothing is collected on the driver but one line a
partition; a processing element that can't keep up makes Spark's tasks wait. Tasks that Spark retries, or runs twice by
speculation, don't double rows: see runtime/ingest.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rayelastic.errors import SourceError, SparkError
from rayelastic.graph.operator_spec import Lane
from rayelastic.graph.schema import Schema
from rayelastic.runtime.external_source import IngestSource
from rayelastic.spark.columns import match_columns
from rayelastic.spark.failure import spark_reason

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rayelastic.runtime.specs import IngestAddress

    Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True, eq=False)
class SparkSource:
    """A DataFrame that feeds a source; made by `rel.spark.source`.

    Args:
        frame: the DataFrame; it lives in its driver only.
        schema: of the tuples.
        columns: the DataFrame's column of each field, in the order of the fields.
        group: Spark's job group of the push, by which it is cancelled.
    """

    frame: DataFrame
    schema: Schema
    columns: tuple[str, ...]
    group: str = field(default_factory=lambda: f"rayelastic-{uuid.uuid4().hex[:12]}")

    @property
    def lane(self) -> Lane:
        """How it runs."""
        return Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """Why that lane, in words."""
        return "Spark's tasks push Arrow batches into the data port"

    def check(self, operator: str) -> None:
        """Raises SourceError if the session has been stopped since."""
        check_session(self.frame, operator)

    def push(self, address: IngestAddress, operator: str) -> dict[int, int]:
        """Runs the Spark job that pushes every row, and returns when all were acknowledged.

        Args:
            address: where the source takes rows.
            operator: the name of the source.

        Returns:
            The number of rows of each partition, by its number.

        Raises:
            SparkError: the Spark job failed or was cancelled; the text has the useful line of its reason.
        """
        frame = selected(self.frame, self.schema, self.columns)
        frame.sparkSession.sparkContext.setJobGroup(self.group, f"rayelastic source {operator}", interruptOnCancel=True)
        pusher = _pusher(address, self.schema.to_arrow())
        try:
            done = frame.mapInArrow(pusher, "partition int, rows long").collect()
        except Exception as error:  # py4j's and pyspark's errors have no common base
            raise SparkError(f"Spark could not push source {operator!r}: {spark_reason(error)}") from error
        return {row.partition: row.rows for row in done}

    def cancel(self) -> None:
        """Cancels the Spark job of a running `push`; safe to repeat, and after the session was stopped."""
        context = self.frame.sparkSession.sparkContext
        if context._jsc is not None:
            context.cancelJobGroup(self.group)

    def for_pe(self) -> IngestSource:
        """What goes to the processing element in its place: it takes what Spark's tasks push."""
        return IngestSource(self.schema, self.reason)


def source(frame: DataFrame, schema: object | None = None, *, columns: Mapping[str, str] | None = None) -> SparkSource:
    """Feeds a stream with the rows of a Spark DataFrame.

    Rows of one partition keep their order. A Spark task that is run again has to give the same rows in the same order;
    where it doesn't (rows straight from a shuffle may come in another order), the job fails rather than count wrongly:
    `df.sortWithinPartitions(...)` or `df.localCheckpoint()` makes it repeatable.

    Args:
        frame: a batch DataFrame, on a session made by `rel.spark.session`.
        schema: what the tuples look like, as for `rel.Schema.of`; the DataFrame's own columns if not given. A field
            that isn't optional takes no null. Narrow numbers are widened, nothing else is converted.
        columns: the DataFrame's column of a field, where the names differ: `{"line": "value"}`.

    Raises:
        SchemaError: a column is missing, has another type, or a type that a record can't hold.
        SourceError: a streaming DataFrame.

    Example:
        >>> lines = topo.source("lines", rel.spark.source(spark.read.text("/usr/share/doc"),  # doctest: +SKIP
        ...                     schema={"line": str}, columns={"line": "value"}))
    """
    if frame.isStreaming:
        raise SourceError(
            "a streaming DataFrame can't be a source",
            way_out="Give it to rel.spark.stream, or a batch one (spark.read) to rel.spark.source",
        )
    matched, names = match_columns(frame.schema, schema, columns or {})
    return SparkSource(frame, matched, names)


def check_session(frame: DataFrame, operator: str) -> None:
    """Raises SourceError if the Spark session of a DataFrame has been stopped."""
    if frame.sparkSession.sparkContext._jsc is None:
        raise SourceError(
            "the Spark session of its DataFrame has been stopped", operator=operator, way_out="Start a new session"
        )


def selected(frame: DataFrame, schema: Schema, columns: tuple[str, ...]) -> DataFrame:
    """The columns of a DataFrame that fill the fields, in their order and under their names."""
    from pyspark.sql import functions

    quoted = ["`" + column.replace("`", "``") + "`" for column in columns]
    return frame.select([functions.col(q).alias(n) for q, n in zip(quoted, schema.names, strict=True)])


def _pusher(address: IngestAddress, schema: pa.Schema) -> Callable[[Batches], Batches]:
    """What runs in Spark's Python workers, once for each partition."""

    def push(batches: Batches) -> Batches:
        import pyarrow as pa
        from pyspark import TaskContext

        from rayelastic.runtime.ingest_client import push_partition

        context = TaskContext.get()
        partition = context.partitionId()
        sender = f"spark-{partition}.{context.attemptNumber()}"
        rows = push_partition(address, schema, partition, batches, sender=sender)
        done = pa.schema([("partition", pa.int32()), ("rows", pa.int64())])
        yield pa.RecordBatch.from_pydict({"partition": [partition], "rows": [rows]}, schema=done)

    return push
