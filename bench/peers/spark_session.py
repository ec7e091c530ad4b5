"""The Spark session of the peers' programs: local, a task a core."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from rayelastic.on_ray.java import ensure_java

CORES = os.cpu_count() or 1


def session() -> SparkSession:
    """Return the session of this process; as many shuffle partitions as cores, for an input this small."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("peers").config("spark.ui.enabled", "false")
    return builder.config("spark.sql.shuffle.partitions", str(CORES)).config("spark.driver.memory", "4g").getOrCreate()
