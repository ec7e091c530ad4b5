"""A Spark DataFrame as a source: Spark's Python workers push its rows straight into a PE's data port.

Rows cross as Arrow, never as pickled rows (reliability rule D10). Only one line per partition is collected on the
driver; back-pressure of a PE blocks Spark's tasks. Tasks that Spark retries, or runs twice by
speculation, don't double rows: see runtime/ingest.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from rayelastic.connectors.typed import Declared
from rayelastic.errors import ErrorCode, SourceError, SparkError
from rayelastic.spark.columns import match_columns
from rayelastic.spark.failure import spark_reason
from rayelastic.spark.pushed_frame import PUSHED, PushedFrame, pusher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rayelastic.runtime.ingest.feed import Feed

T = TypeVar("T")


class _Options(TypedDict, total=False):
    columns: Mapping[str, str] | None
    time_ordered: bool


@dataclass(frozen=True, slots=True, eq=False)
class SparkSource(PushedFrame[T]):
    """A DataFrame that feeds a source; made by `rel.spark.source`.

    Args:
        time_ordered: Whether the event times of a partition follow those of the one before.
        group: Spark's job group of the push, which cancels it.
    """

    time_ordered: bool = False
    group: str = field(default_factory=lambda: f"rayelastic-{uuid.uuid4().hex[:12]}")

    @property
    def is_time_ordered(self) -> bool:
        """Whether the event times of a partition follow those of the one before."""
        return self.time_ordered

    def push(self, feed: Feed) -> dict[int, int]:
        """Run the Spark job that pushes every row, and return when all were acknowledged.

        Args:
            feed: the source that takes the rows.

        Returns:
            The number of rows of each partition, by its number.

        Raises:
            SparkError: the Spark job failed or was cancelled; the text has the useful line of its reason.
        """
        frame, operator = self.selected(), feed.operator
        frame.sparkSession.sparkContext.setJobGroup(self.group, f"rayelastic source {operator}", interruptOnCancel=True)
        push = pusher(feed.address(), self.schema.to_arrow())
        try:
            done = frame.mapInArrow(push, PUSHED).collect()
        except Exception as error:  # py4j's and pyspark's errors have no common base
            raise SparkError(f"Spark could not push source {operator!r}: {spark_reason(error)}") from error
        return {row.partition: row.rows for row in done}

    def cancel(self) -> None:
        """Cancel the Spark job of a running `push`; safe to repeat, and after the session was stopped."""
        context = self.frame.sparkSession.sparkContext
        if context._jsc is not None:
            context.cancelJobGroup(self.group)


@overload
def source(frame: DataFrame, schema: type[Mapping[str, Any]], **options: Unpack[_Options]) -> SparkSource[Any]: ...


@overload
def source(frame: DataFrame, schema: type[T], **options: Unpack[_Options]) -> SparkSource[T]: ...


@overload
def source(frame: DataFrame, schema: Declared | None = None, **options: Unpack[_Options]) -> SparkSource[Any]: ...


def source(
    frame: DataFrame,
    schema: object = None,
    *,
    columns: Mapping[str, str] | None = None,
    time_ordered: bool = False,
) -> SparkSource[Any]:
    """Feed a stream with the rows of a Spark DataFrame.

    Rows of one partition keep their order. A Spark task that is repeated has to return the same rows in the same order.
    Otherwise (rows straight from a shuffle may have another order) the job fails rather than count wrongly:
    `df.sortWithinPartitions(...)` or `df.localCheckpoint()` makes it repeatable.

    Args:
        frame: A batch DataFrame, on a session of `rel.spark.session` or of your own.
        schema: The schema of the tuples, as for `rel.Schema.of`; the DataFrame's own columns by default. A field that
            isn't optional accepts no null. Narrow numbers are widened, nothing else is converted.
        columns: The DataFrame's column of a field, if the names differ: `{"line": "value"}`.
        time_ordered: Whether the event times of a partition follow those of the one before. Then windows close as
            partitions are pushed; by default each may begin at any time, and they close at the end.

    Raises:
        SchemaError: A column is missing, has another type, or a type that a record can't hold.
        SourceError: A streaming DataFrame.

    Example:
        >>> lines = topo.source(rel.spark.source(spark.read.text("/usr/share/doc"),  # doctest: +SKIP
        ...                     schema={"line": str}, columns={"line": "value"}), name="lines")
    """
    if frame.isStreaming:
        raise SourceError(
            "a streaming DataFrame can't be a source",
            hint="Pass it to rel.spark.stream, or a batch one (spark.read) to rel.spark.source",
            code=ErrorCode.WRONG_FRAME,
        )
    matched, names = match_columns(frame.schema, schema, columns or {})
    return SparkSource(frame, matched, names, time_ordered)
