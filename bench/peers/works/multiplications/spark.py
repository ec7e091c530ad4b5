"""10,000 multiplications in a Python function of Spark Structured Streaming."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from bench.peers.spark_session import session

TIMES = 10_000


def multiplied(x: float) -> float:
    for _ in range(TIMES):
        x *= 1.0000001
    return x


def prepare(path: str) -> Callable[[], DataFrame]:
    spark = session()
    folder = Path(tempfile.mkdtemp())
    (folder / "numbers.csv").symlink_to(Path(path).resolve())
    name = f"numbers{folder.name}"

    def run() -> DataFrame:
        numbers = spark.readStream.schema("x double").option("header", "true").csv(str(folder))
        query = (
            numbers.select("x", f.udf(multiplied, "double")("x").alias("y"))
            .writeStream.format("memory")
            .queryName(name)
        )
        query.trigger(availableNow=True).start().awaitTermination()
        return spark.table(name)

    return run


def result(raw: DataFrame) -> dict[int, float]:
    rows = sorted((row["x"], row["y"]) for row in raw.collect())
    return dict(enumerate(y for _, y in rows))
