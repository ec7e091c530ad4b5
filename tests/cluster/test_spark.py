"""Real Spark on Ray (RayDP): rows into a source, each once, whatever its tasks do; results back as a DataFrame."""

from __future__ import annotations

import datetime as dt
import enum
import os
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import spark as bridge
from rayelastic.connectors.pushed.receiver import IngestServer
from rayelastic.errors import SchemaError, SinkError, SourceError, SparkError
from rayelastic.on_ray.connect import ensure_ray
from rayelastic.runtime.port.data_port import DataPort, derive_secret
from rayelastic.runtime.values.specs import IngestAddress
from tests.cluster.direct_feed import Direct
from tests.raising import raises

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
CHANNEL = "ingest:rows"
TIMEOUT = 60.0


class Rows:
    """Keeps the batches that arrive; takes none while it is held."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.open = threading.Event()
        self.open.set()
        self.finished = False
        self.arrived: Path | None = None  # a file that is made when a batch was taken

    def push(self, batch: pa.RecordBatch) -> bool:
        assert self.open.wait(TIMEOUT)
        self.batches.append(batch)
        if self.arrived is not None:
            self.arrived.touch()
        return True

    def finish(self) -> None:
        self.finished = True

    def column(self, name: str) -> list[Any]:
        return [value for batch in self.batches for value in batch[name].to_pylist()]


class Target:
    """A source that takes what Spark pushes, behind a real data port."""

    def __init__(self, source: bridge.SparkSource[Any]) -> None:
        self.rows = Rows()
        self.server = IngestServer("rows", source.schema.to_arrow(), self.rows)
        secret = secrets.token_bytes(32)
        host = ensure_ray()
        self.port = DataPort("job", "pe0", secret, host, lambda connection, _: self.server.serve(connection))
        self.address = IngestAddress(self.port.address, "job", "pe0", CHANNEL, derive_secret(secret, CHANNEL))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.rows.open.set()
        self.server.close()
        self.port.close()


def pushed(source: bridge.SparkSource[Any]) -> Target:
    with Target(source) as target:
        target.server.finish(source.push(Direct(target.address)))
    assert target.rows.finished
    return target


def test_words_of_a_text_arrive(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"line {n} of a small text with ümlauts and 漢字" for n in range(5000)]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    source = bridge.source(spark.read.text(str(tmp_path)), {"line": str}, columns={"line": "value"})
    assert pushed(source).rows.column("line") == lines


def test_every_type_arrives_as_it_is(spark: SparkSession) -> None:
    frame = spark.range(0, 20, 1, 2).selectExpr(
        "cast(id as tinyint) a", "cast(id as smallint) b", "cast(id as int) c", "id d", "cast(id as float) e",
        "cast(id as double) f", "id % 2 = 0 g", "concat('s', id) h", "cast(concat('b', id) as binary) i",
        "date_add(date '2024-02-28', cast(id as int)) j", "timestamp_micros(id * 1000000) k",
        "if(id % 3 = 0, null, id) l", "if(id % 3 = 0, null, concat('s', id)) m", "if(id % 3 = 0, null, id % 2 = 0) n",
    )  # fmt: skip
    rows = pushed(bridge.source(frame)).rows
    for name in frame.columns:
        expected = [row[name] for row in frame.collect()]
        found = rows.column(name)
        if name == "k":
            found = [value.timestamp() for value in found]
            expected = [float(n) for n in range(20)]
        if name == "i":
            expected = [bytes(value) for value in expected]
        assert sorted(found, key=repr) == sorted(expected, key=repr), name


def test_types_with_parts_arrive_and_go_back(spark: SparkSession) -> None:
    """Decimals, arrays, maps, structs and intervals, as Spark has them and as classes."""
    rows = [
        (Decimal("1.50"), ["a", None], [[1], []], {"k": 1.5}, (1, "x"), dt.timedelta(seconds=90), "buy"),
        (None, [], [], {}, (2, None), dt.timedelta(microseconds=-1), "sell"),
    ]
    types = (
        "price decimal(12,2), tags array<string>, grid array<array<int>>, scores map<string,double>,"
        " at struct<x:int,tag:string>, took interval day to second, side string"
    )
    frame = spark.createDataFrame(rows, types)
    topology = rel.Topology("types")
    source = topology.source(bridge.source(frame), name="in")
    source.map(lambda t: t, name="same", schema=source.schema, lane="python").sink(bridge.sink(spark), name="out")
    back = rel.run(topology)["out"]
    assert sorted(t.took for t in back.collect()) == [-1, 90_000_000]  # Parquet has no intervals: microseconds
    assert sorted(map(str, back.drop("took").collect())) == sorted(map(str, frame.drop("took").collect()))

    declared = {"side": Side, "at": Point, "tags": list[str | None]}
    topology = rel.Topology("classes")
    topology.source(bridge.source(frame.select("side", "at", "tags"), declared, columns={}), name="in").sink(
        rel.list(), name="out"
    )
    out = sorted((tuple(t) for t in rel.run(topology)["out"]), key=lambda t: t[1].x)
    assert out == [(Side.BUY, Point(1, "x"), ["a", None]), (Side.SELL, Point(2, None), [])]


class Side(enum.Enum):
    BUY = "buy"
    SELL = "sell"


class Point(NamedTuple):
    x: int
    tag: str | None


def test_narrow_numbers_are_widened(spark: SparkSession) -> None:
    frame = spark.range(5).selectExpr("cast(id as int) n", "cast(id as float) x", "cast(id as int) y")
    rows = pushed(bridge.source(frame, {"n": int, "x": float, "y": float})).rows
    assert sorted(rows.column("n")) == [0, 1, 2, 3, 4]
    assert sorted(rows.column("y")) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_dataframe_without_rows(spark: SparkSession) -> None:
    assert pushed(bridge.source(spark.range(0))).rows.batches == []


def test_wrong_declarations_are_refused_before_anything_starts(spark: SparkSession) -> None:
    frame = spark.range(5).selectExpr(
        "id", "concat('s', id) name", "cast(id as decimal(10, 2)) price", "array(id) many"
    )
    with raises(SchemaError, "unknown-column", "nme", "name", "columns="):
        bridge.source(frame, {"nme": str})
    with raises(SchemaError, "schema-mismatch", "name", "DataFrame"):
        bridge.source(frame, {"name": int})
    with raises(SchemaError, "schema-mismatch", "id", "DataFrame"):
        bridge.source(frame, {"id": float})  # not every long is a double
    with raises(SchemaError, "schema-mismatch", "price", "DataFrame"):
        bridge.source(frame, {"price": float})
    with raises(SchemaError, "schema-mismatch", "many", "DataFrame"):
        bridge.source(frame, {"many": list[str]})
    with raises(SchemaError, "unknown-column", "nothing", "columns="):
        bridge.source(frame, {"id": int}, columns={"nothing": "id"})
    with raises(SourceError, "wrong-frame"):
        bridge.source(spark.readStream.format("rate").load())


def test_null_where_none_is_taken_fails_with_column_and_way_out(spark: SparkSession) -> None:
    source = bridge.source(spark.createDataFrame([(1, "a"), (2, None)], "id long, name string"), {"name": str})
    with Target(source) as target, raises(SparkError, "spark-failed", "name", "None"):
        source.push(Direct(target.address))


def test_failing_task_tells_its_useful_line(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    def raising(value: int) -> int:
        if value == 77:
            raise ValueError("seventy-seven is bad")
        return value

    def reason_of(frame: DataFrame) -> str:
        source = bridge.source(frame)
        with Target(source) as target, pytest.raises(SparkError) as caught:
            source.push(Direct(target.address))
        return str(caught.value)

    assert reason_of(spark.range(100).select(udf(raising, "long")("id").alias("id"))) == (
        "Spark could not push source 'rows': ValueError: seventy-seven is bad [spark-failed]"
    )
    java = reason_of(spark.range(100).selectExpr("if(id = 7, cast(raise_error('boom') as long), id) id"))
    assert java == "Spark could not push source 'rows': RuntimeException: boom [spark-failed]"


def test_task_whose_process_dies_is_retried_and_doubles_nothing(spark: SparkSession, tmp_path: Path) -> None:
    arrived, died = tmp_path / "arrived", tmp_path / "died"

    def die_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 5 and not died.exists():
                while not arrived.exists():
                    threading.Event().wait(0.01)
                died.touch()
                os.kill(os.getpid(), 9)
            yield batch

    frame = spark.range(0, 200_000, 1, 1).mapInArrow(die_once, "id long")
    source = bridge.source(frame.selectExpr("id", "if(id % 3 = 0, null, concat('s', id)) text"))
    with Target(source) as target:
        target.rows.arrived = arrived
        target.server.finish(source.push(Direct(target.address)))
    assert died.exists()
    assert target.server.counters().repeated_rows > 0
    assert sorted(target.rows.column("id")) == list(range(200_000))


def test_tasks_wait_for_a_slow_source(spark: SparkSession) -> None:
    source = bridge.source(spark.range(0, 400_000, 1, 2).selectExpr("id", "repeat('x', 100) text"))
    with Target(source) as target:
        target.rows.open.clear()
        rows: dict[int, int] = {}
        pushing = threading.Thread(target=lambda: rows.update(source.push(Direct(target.address))))
        pushing.start()
        pushing.join(3.0)
        assert pushing.is_alive()
        assert target.server.counters().rows == 0
        target.rows.open.set()
        pushing.join(TIMEOUT)
        target.server.finish(rows)
    assert sorted(target.rows.column("id")) == list(range(400_000))


def test_cancelled_push_ends_its_spark_job(spark: SparkSession) -> None:
    source = bridge.source(spark.range(0, 4_000_000, 1, 2).selectExpr("id", "repeat('x', 100) text"))
    with Target(source) as target:
        target.rows.open.clear()
        failed: list[str] = []

        def push() -> None:
            try:
                source.push(Direct(target.address))
            except SparkError as error:
                failed.append(str(error))

        pushing = threading.Thread(target=push)
        pushing.start()
        while target.server.counters().connections == 0:
            pushing.join(0.05)
        source.cancel()
        pushing.join(TIMEOUT)
        assert not pushing.is_alive()
    assert "cancel" in failed[0]
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []


@pytest.mark.parametrize("host", ["this process", "Ray"])
def test_results_come_back_as_a_dataframe(spark: SparkSession, host: str) -> None:
    words = [f"w{n % 50}" for n in range(5000)]
    frame = spark.createDataFrame([(word,) for word in words], "word string")
    topology = rel.Topology("count")
    source = topology.source(bridge.source(frame, {"word": str}), name="words")
    counts = source.key_by("word").aggregate(name="counts", n=rel.count())
    counts.sink(bridge.sink(spark), name="out")
    result = rel.run(topology) if host == "this process" else rel.submit(topology).wait(timeout=TIMEOUT)
    counted = result["out"]
    assert {row.word: row.n for row in counted.collect()} == Counter(words)
    assert counted.schema.simpleString() == "struct<word:string,n:bigint>"


def test_sink_that_nobody_could_write(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises(SinkError, "not-writable", "out"):
        bridge.sink(spark, str(tmp_path / "file" / "folder")).check("out")


def test_pushes_make_tasks_start_quickly(spark: SparkSession) -> None:
    frame = spark.range(0, 80, 1, 8).selectExpr("id")
    assert sorted(pushed(bridge.source(frame)).rows.column("id")) == list(range(80))

    def forgets(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from zipimport import zipimporter

        yield pa.RecordBatch.from_pydict({"module": [zipimporter.invalidate_caches.__module__]})

    told = frame.mapInArrow(forgets, "module string").collect()
    assert "rayelastic.spark.worker" in {row.module for row in told}
