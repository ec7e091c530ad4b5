"""A session that isn't RayDP's: `rel.spark.source` needs only Spark's `mapInArrow`, of 3.5 and 4 (classic client)."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import JobCancelledError
from rayelastic.job import start
from rayelastic.on_ray.java import ensure_java
from rayelastic.spark.session import JAVA_OPTIONS, _end_java
from tests.cluster.conftest import Shared
from tests.component.values.kinds import JSON, KEYS, LEAVES, Kind, listed, optional, tupled
from tests.waiting import wait_until_received

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.nightly]


class Row(NamedTuple):
    id: int
    name: str


@pytest.fixture(scope="module")
def spark(shared: Shared) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    shared.stop()
    ensure_java()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.extraJavaOptions", JAVA_OPTIONS).getOrCreate()
        yield session
        session.stop()
        _end_java()


def test_rows_of_any_session_arrive_once_and_in_order(spark: SparkSession) -> None:
    frame = spark.range(0, 1000, 1, 4).selectExpr("id", "concat('row-', id) as name")
    topology = rel.Topology("alone")
    rows = topology.source(rel.spark.source(frame, schema=Row), name="rows")
    rows.filter(lambda t: t.id % 2 == 0, name="even").sink(rel.list(), name="out")
    found = rel.run(topology)["out"]
    assert sorted(row.id for row in found) == list(range(0, 1000, 2))
    assert all(row.name == f"row-{row.id}" for row in found)
    for quarter in range(4):
        ids = [row.id for row in found if row.id // 250 == quarter]
        assert ids == sorted(ids)


WIDE = [kind for kind in LEAVES if kind[0] is not uuid.UUID]  # which Spark hasn't
COLUMNS: list[Kind] = [
    *WIDE,
    *map(optional, WIDE),
    *(listed(optional(kind)) for kind in WIDE),
    *(tupled(listed(kind)) for kind in WIDE),
    *(
        (dict.__class_getitem__((key, int)), st.dictionaries(of_key, st.integers(0, 9), max_size=2))
        for key, of_key in KEYS
        if key is not uuid.UUID
    ),
    (rel.Json, JSON),
]


@settings(max_examples=2, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(*(values for _, values in COLUMNS)), min_size=1, max_size=20))
def test_every_type_to_spark_and_back(spark: SparkSession, rows: list[tuple[Any, ...]]) -> None:
    """By way of a sink, a DataFrame, a source that its workers push into, and once more."""
    declared = {f"f{number}": kind for number, (kind, _) in enumerate(COLUMNS)}
    topology = rel.Topology("to_spark")
    topology.source(rel.rows(rows, schema=declared), name="in").sink(rel.spark.sink(spark), name="out")
    for _ in range(2):
        frame = rel.run(topology)["out"]
        topology = rel.Topology("and_back")
        source = topology.source(rel.spark.source(frame, declared), name="in")
        source.sink(rel.list(), name="rows")
        source.sink(rel.spark.sink(spark), name="out")
    found = [tuple(t) for t in rel.run(topology)["rows"]]
    assert len(found) == len(rows)
    for row in rows:
        assert row in found, [one for one, other in zip(found[rows.index(row)], row, strict=True) if one != other]


def test_a_stream_that_is_cancelled_ends_without_a_trace(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    frame = spark.readStream.format("rate").option("rowsPerSecond", 1000).load().selectExpr("value")
    topology = rel.Topology("rate")
    topology.source(rel.spark.stream(frame, checkpoint=str(tmp_path)), name="rows").sink(rel.count(), name="out")
    job = start(topology)
    wait_until_received(job, "out", 1)
    capfd.readouterr()
    (query,) = spark.streams.active
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.wait(60.0)
    query.awaitTermination()
    assert query.exception() is None
    said = "".join(capfd.readouterr())
    assert "Traceback" not in said
    assert "\tat " not in said  # a frame of Java's
