"""The common part of batch and streaming DataFrames as sources: Spark's workers push their rows as Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rayelastic.connectors.pushed.declaration import IngestSource
from rayelastic.connectors.typed import SourceOf
from rayelastic.errors import ErrorCode, SourceError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane, SourceDescription
from rayelastic.runtime.ingest.client import push_partition
from rayelastic.spark.worker import start_tasks_quickly

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rayelastic.connectors.pushed.frames import Epoch
    from rayelastic.runtime.values.specs import IngestAddress

    Batches = Iterator[pa.RecordBatch]

T = TypeVar("T")

PUSHED = "partition int, rows long"  # the result of a pusher, a row for each partition


@dataclass(frozen=True, slots=True, eq=False)
class PushedFrame(SourceDescription, SourceOf[T]):
    """A DataFrame that feeds a source.

    Args:
        frame: The DataFrame; it lives in its driver only.
        schema: The schema of the tuples.
        columns: The DataFrame's column of each field, in the order of the fields.
    """

    frame: DataFrame
    schema: Schema
    columns: tuple[str, ...]

    @property
    def lane(self) -> Lane:
        """How it runs."""
        return Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """The reason for the execution mode."""
        return "Spark's tasks push Arrow batches into the data port"

    def check(self, operator: str) -> None:
        """Raise SourceError if the session has been stopped since."""
        if self.frame.sparkSession.sparkContext._jsc is None:
            raise SourceError(
                "the Spark session of its DataFrame has been stopped",
                operator=operator,
                hint="Start a new session",
                code=ErrorCode.SPARK_STOPPED,
            )

    @property
    def streams(self) -> bool:
        """Whether it is unbounded."""
        return bool(self.frame.isStreaming)

    def for_pe(self) -> IngestSource:
        """Return the description for the PE, which receives the pushed rows."""
        return IngestSource(self.schema, self.reason, self.streams, self.is_time_ordered)

    @property
    def has_splits(self) -> bool:
        """Whether each partition has its own watermark."""
        return self.for_pe().has_splits

    @property
    def is_time_ordered(self) -> bool:
        """Whether the event times of a partition follow those of the one before."""
        return False

    def selected(self) -> DataFrame:
        """Return the columns that fill the fields, in their order and under their names."""
        from pyspark.sql import functions

        quoted = ["`" + column.replace("`", "``") + "`" for column in self.columns]
        return self.frame.select([functions.col(q).alias(n) for q, n in zip(quoted, self.schema.names, strict=True)])


def pusher(address: IngestAddress, schema: pa.Schema, epoch: Epoch | None = None) -> Callable[[Batches], Batches]:
    """Return the function for Spark's Python workers, called once for each partition, or each one of a micro-batch."""

    def push(batches: Batches) -> Batches:
        import pyarrow as pa
        from pyspark import TaskContext

        start_tasks_quickly()
        context = TaskContext.get()
        partition = context.partitionId()
        task = f"{partition}.{context.attemptNumber()}"
        sender = f"spark-{task}" if epoch is None else f"spark-{epoch.number}.{task}"
        rows = push_partition(address, schema, partition, batches, sender=sender, epoch=epoch)
        done = pa.schema([("partition", pa.int32()), ("rows", pa.int64())])
        yield pa.RecordBatch.from_pydict({"partition": [partition], "rows": [rows]}, schema=done)

    return push
