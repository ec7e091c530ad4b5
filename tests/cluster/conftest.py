"""One local Ray for all tests of a file that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import rayelastic as rel
from rayelastic.on_ray.connect import ensure_ray

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CPUS = 4  # more than a small machine has: actors count shares of them, and nothing here needs the speed
CPUS_BESIDE_SPARK = 6  # two more, for its executor


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[str]:
    """The address of this node in a Ray of its own, which ends with the tests of the file."""
    import ray

    yield ensure_ray("local", num_cpus=CPUS)
    ray.shutdown()


@pytest.fixture(scope="module")
def spark_beside_kills() -> Iterator[SparkSession]:
    """Spark on a Ray of its own, where something is killed: a task that fails by that is tried a second time."""
    import ray

    ensure_ray("local", num_cpus=CPUS_BESIDE_SPARK)
    with rel.spark.session("kills", executor_cores=2, configs={"spark.task.maxFailures": "2"}) as session:
        yield session
    ray.shutdown()
