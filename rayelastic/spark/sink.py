"""The result of a job as a Spark DataFrame.

It goes through Parquet files. Once they are written, they need neither the PEs nor Ray, keep every type
and null, and are read in parallel. Ray's object store (`from_arrow_refs(...).to_spark`) isn't used. Its objects die
with the actor that put them, and each of Spark's workers has to become a Ray driver to read them. RayDP also passes
them through pandas, where whole numbers with nulls become floating point.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rayelastic.connectors.description import Sink
from rayelastic.connectors.parquet.declaration import ParquetSink
from rayelastic.connectors.parquet.growing import GrowingSink
from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.on_ray.cluster import node_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, eq=False)
class SparkSink(Sink):
    """A sink whose result is a DataFrame; made by `rel.spark.sink`.

    Args:
        spark: The session that reads it.
        path: The folder of its files.
        shared: Whether the user declares that every node sees the folder.
    """

    unsupported: ClassVar[frozenset[DataType]] = frozenset({DataType.OBJECT, DataType.UUID})

    spark: SparkSession
    path: str
    shared: bool

    @property
    def lane(self) -> Lane:
        """How it runs."""
        return Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """The reason for the execution mode."""
        return "Arrow batches to Parquet, read back by Spark"

    def check(self, operator: str) -> None:
        """Raise SinkError if other nodes couldn't read the files, or the session has been stopped."""
        if self.spark.sparkContext._jsc is None:
            raise SinkError(
                "its Spark session has been stopped",
                operator=operator,
                hint="Start a new session",
                code=ErrorCode.SPARK_STOPPED,
            )
        if not self.shared and node_count() > 1:
            raise SinkError(
                "only one node of the cluster sees a local folder",
                operator=operator,
                hint="Use a folder that every node sees: rel.spark.sink(spark, path='/shared/result')",
                code=ErrorCode.BAD_LOCATION,
            )
        self.for_pe().check(operator)

    def for_pe(self) -> ParquetSink:
        """Return the description for the PE."""
        return ParquetSink(self.path)

    def finish(self, rows: int, value: Any) -> DataFrame:  # noqa: ARG002 - the files say it all
        """Return the DataFrame over the written files, in today's calendar."""
        return self.spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(self.path)


def sink_stream(path: str, *, seconds: float = 5.0) -> GrowingSink:
    """Write the tuples of a stream into a table that grows while the job runs: a folder of Parquet files.

    Each file appears when it is complete, so `spark.read.parquet(path)` reads complete files at any time, and
    `spark.readStream` follows the folder. A restarted job continues after the existing files.

    Args:
        path: The folder; on several nodes one that all of them see.
        seconds: The longest time that a tuple waits for its file, besides the time to write it.

    Example:
        >>> counts.sink(rel.spark.sink_stream("/shared/counts"), name="out")  # doctest: +SKIP
    """
    return GrowingSink(str(path), period=seconds)


def sink(spark: SparkSession, path: str | None = None) -> SparkSink:
    """Leave the tuples of a stream as a Spark DataFrame in the job's results.

    Args:
        spark: The session that reads it.
        path: A folder for its Parquet files that every node of the cluster sees. By default a temporary one, for a
            cluster of one node; it is removed when this process ends.

    Example:
        >>> counts.sink(rel.spark.sink(spark), name="out")  # doctest: +SKIP
        >>> rel.run(topo)["out"].orderBy("count", ascending=False).show()  # doctest: +SKIP
    """
    if path is not None:
        return SparkSink(spark, path, shared=True)
    folder = tempfile.mkdtemp(prefix="rayelastic-result-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return SparkSink(spark, str(Path(folder) / "rows"), shared=False)
