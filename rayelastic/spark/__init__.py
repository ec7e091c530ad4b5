"""Spark through RayDP: a session on Ray, DataFrames as sources, results as DataFrames.

    with rel.spark.session("app") as spark:
        lines = topo.source(rel.spark.source(df, schema=Line))
        counts.sink(rel.spark.sink(spark))

The only importer of `pyspark` and `raydp`, inside functions; they come with `pip install 'rayelastic[spark]'`.
"""

from rayelastic.spark.session import session
from rayelastic.spark.sink import SparkSink, sink, sink_stream
from rayelastic.spark.source import SparkSource, source
from rayelastic.spark.stream import SparkStream, stream

__all__ = ["SparkSink", "SparkSource", "SparkStream", "session", "sink", "sink_stream", "source", "stream"]
