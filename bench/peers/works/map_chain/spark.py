"""A chain of maps in Spark Structured Streaming: 100 pandas functions, each of the columns that the one before made."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from bench.peers.spark_session import session

MAPS = 100


def plus(a: pd.Series) -> pd.Series:
    return a + 3


def scaled(b: pd.Series) -> pd.Series:
    return b * 0.5 + 1.0


def prepare(path: str) -> Callable[[], DataFrame]:
    spark = session()
    folder = Path(tempfile.mkdtemp())
    (folder / "rows.csv").symlink_to(Path(path).resolve())
    name = f"rows{folder.name}"

    shift, scale = f.pandas_udf(plus, "long"), f.pandas_udf(scaled, "double")

    def run() -> DataFrame:
        rows = spark.readStream.schema("a long, b double").option("header", "true").csv(str(folder))
        for _ in range(MAPS):
            rows = rows.select(shift("a").alias("a"), scale("b").alias("b"))
        query = rows.writeStream.format("memory").queryName(name)
        query.trigger(availableNow=True).start().awaitTermination()
        return spark.table(name)

    return run


def result(raw: DataFrame) -> dict[int, float]:
    return {row["a"]: row["b"] for row in raw.collect()}
