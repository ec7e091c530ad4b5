"""10,000 multiplications in a pandas function of Spark Structured Streaming: of all numbers of a batch at once."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from bench.peers.spark_session import session

TIMES = 10_000


def multiplied(x: pd.Series) -> pd.Series:
    out = x.to_numpy().copy()
    for _ in range(TIMES):
        out *= 1.0000001
    return pd.Series(out)


def prepare(path: str) -> Callable[[], DataFrame]:
    spark = session()
    folder = Path(tempfile.mkdtemp())
    (folder / "numbers.csv").symlink_to(Path(path).resolve())
    name = f"numbers{folder.name}"

    def run() -> DataFrame:
        numbers = spark.readStream.schema("x double").option("header", "true").csv(str(folder))
        query = (
            numbers.select("x", f.pandas_udf(multiplied, "double")("x").alias("y"))
            .writeStream.format("memory")
            .queryName(name)
        )
        query.trigger(availableNow=True).start().awaitTermination()
        return spark.table(name)

    return run


def result(raw: DataFrame) -> dict[int, float]:
    rows = sorted((row["x"], row["y"]) for row in raw.collect())
    return dict(enumerate(y for _, y in rows))
