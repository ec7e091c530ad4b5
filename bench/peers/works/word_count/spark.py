"""Word count in Spark Structured Streaming, as its documentation writes it, in one micro-batch."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from bench.peers.spark_session import session


def prepare(path: str) -> Callable[[], DataFrame]:
    spark = session()
    folder = Path(tempfile.mkdtemp())
    (folder / "lines.txt").symlink_to(Path(path).resolve())
    name = f"counts{folder.name}"

    def run() -> DataFrame:
        lines = spark.readStream.text(str(folder))
        words = lines.select(f.explode(f.split("value", " ")).alias("word"))
        query = words.groupBy("word").count().writeStream.outputMode("complete").format("memory").queryName(name)
        query.trigger(availableNow=True).start().awaitTermination()
        return spark.table(name)

    return run


def result(raw: DataFrame) -> dict[str, int]:
    return {row["word"]: row["count"] for row in raw.collect()}
