"""Structured Streaming on Ray: micro-batches into a running job, each row once, whatever is killed and replayed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import rayelastic as rel
from rayelastic import spark as bridge
from rayelastic.connectors.pushed.frames import Epoch
from rayelastic.errors import JobCancelledError, JobFailedError, SourceError, SparkError
from rayelastic.graph import SourceDescription
from rayelastic.job import start
from rayelastic.runtime.values.status import State
from tests.cluster.direct_feed import Direct
from tests.raising import raises
from tests.waiting import wait_until_received

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

streaming = importlib.import_module("rayelastic.spark.stream")  # rel.spark.stream is its function
pytestmark = [pytest.mark.cluster, pytest.mark.spark]
TIMEOUT = 100.0
FILES, ROWS = 4, 500  # micro-batches of a test, and rows of each
SCHEMA = "word string, n long"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "input"
    folder.mkdir()
    for number in range(FILES):
        numbers = list(range(number * ROWS, (number + 1) * ROWS))
        table = pa.table({"word": [f"w{n % 7}" for n in numbers], "n": numbers})
        parquet.write_table(table, folder / f"{number}.parquet")
    return folder


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """One file a micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def totals(frame: DataFrame, checkpoint: Path, **trigger: Any) -> rel.Topology:
    topology = rel.Topology("totals")
    rows = topology.source(bridge.stream(frame, checkpoint=str(checkpoint), trigger=trigger), name="rows")
    rows.key_by("word").aggregate(name="totals", n=rel.count(), total=rel.sum("n")).sink(rel.list(), name="out")
    return topology


def expected() -> dict[str, tuple[int, int]]:
    count, total = Counter[str](), Counter[str]()
    for n in range(FILES * ROWS):
        count[f"w{n % 7}"] += 1
        total[f"w{n % 7}"] += n
    return {word: (count[word], total[word]) for word in count}


def test_a_stream_that_ends_is_counted_once(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    result = rel.run(totals(read(spark, files), tmp_path / "checkpoint", availableNow=True))
    assert {t.word: (t.n, t.total) for t in result["out"]} == expected()


class Held(SourceDescription):
    """A source that pushes nothing itself until the job is over: somebody else feeds it."""

    def __init__(self, source: bridge.SparkStream[Any]) -> None:
        self.__dict__ |= {"schema": source.schema, "reason": source.reason}
        self.over = threading.Event()
        self.for_pe = source.for_pe

    def check(self, operator: str) -> None:
        pass

    def push(self, feed: Any) -> dict[int, int]:
        self.over.wait(TIMEOUT)
        return {}

    def cancel(self) -> None:
        self.over.set()


def test_killed_between_push_and_commit_and_restarted(
    spark: SparkSession, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks die when all their rows have arrived, before Spark commits; a new query goes on from the checkpoint."""
    frame, checkpoint = read(spark, files), str(tmp_path / "checkpoint")
    topology = rel.Topology("fed")
    held = Held(bridge.stream(frame, checkpoint=checkpoint))
    rows = topology.source(held, name="rows")
    rows.key_by("word").aggregate(name="totals", n=rel.count(), total=rel.sum("n")).sink(rel.list(), name="out")
    original = streaming.pusher

    def dying(address: Any, schema: pa.Schema, epoch: Epoch) -> Any:
        push, number = original(address, schema, epoch), epoch.number

        def then_die(batches: Any) -> Any:
            yield from push(batches)
            if number == 2:
                raise RuntimeError("the machine burns")

        return then_die

    job = start(topology)
    try:
        address = job._control.within(TIMEOUT).ingest_address("rows")
        assert address is not None
        monkeypatch.setattr(streaming, "pusher", dying)
        with raises(SparkError, "feed-failed"):
            bridge.stream(frame, checkpoint=checkpoint, trigger={"availableNow": True}).push(Direct(address))
        assert job.metrics().operator("rows").tuples_out > 2 * ROWS, "the third micro-batch has arrived"
        monkeypatch.setattr(streaming, "pusher", original)
        job.feed("rows", bridge.stream(frame, checkpoint=checkpoint, trigger={"availableNow": True}))
        assert {t.word: (t.n, t.total) for t in job.wait(TIMEOUT)["out"]} == expected()
    finally:
        held.cancel()
        job.close()


DRIVER = """
import sys
import rayelastic as rel
from rayelastic.on_ray.connect import ensure_ray
folder, checkpoint, address = sys.argv[1:]
ensure_ray(address)
spark = rel.spark.session("lost", executor_cores=1)
frame = spark.readStream.schema("word string, n long").option("maxFilesPerTrigger", 1).parquet(folder)
topology = rel.Topology("survives")
rows = topology.source(rel.spark.stream(frame, checkpoint=checkpoint), name="rows")
rows.key_by("word").aggregate(name="totals", n=rel.count(), total=rel.sum("n")).sink(rel.list(), name="out")
job = rel.submit(topology)
while job.metrics().operator("rows").tuples_out == 0:
    job.pause(0.1)
print("it runs", flush=True)
job.wait()
"""


@pytest.mark.nightly
def test_a_driver_is_killed_and_another_goes_on_with_its_stream(
    spark: SparkSession, files: Path, tmp_path: Path
) -> None:
    """The job lives on without driver and Spark; what was pushed and not committed comes again and is dropped."""
    import ray

    checkpoint = str(tmp_path / "checkpoint")
    command = [sys.executable, "-c", DRIVER, str(files), checkpoint, ray.get_runtime_context().gcs_address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lost:
        assert lost.stdout is not None
        assert any("it runs" in line for line in lost.stdout)
        lost.kill()
    job = rel.attach("survives")
    assert job.status.state is State.RUNNING
    job.feed("rows", bridge.stream(read(spark, files), checkpoint=checkpoint, trigger={"availableNow": True}))
    table = job.wait(TIMEOUT)["out"]
    assert {row["word"]: (row["n"], row["total"]) for row in table.to_pylist()} == expected()


@pytest.mark.nightly
def test_the_failure_of_a_query_is_the_failure_of_its_job(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    (files / "0.parquet").write_bytes(b"this is no Parquet")
    with raises(JobFailedError, "function-raised", "rows"):
        rel.run(totals(read(spark, files), tmp_path / "checkpoint", availableNow=True))


@pytest.mark.nightly
def test_a_job_that_is_cancelled_stops_its_query(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.format("rate").option("rowsPerSecond", 1000).load().selectExpr("value")
    topology = rel.Topology("rate")
    topology.source(bridge.stream(frame, checkpoint=str(tmp_path / "checkpoint")), name="rows").sink(
        rel.count(), name="out"
    )
    job = start(topology)
    wait_until_received(job, "out", 1)
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.wait(TIMEOUT)
    waited = threading.Event()
    while spark.streams.active:
        waited.wait(0.05)


@pytest.mark.nightly
def test_mistakes_are_told_when_the_source_is_declared(spark: SparkSession, tmp_path: Path) -> None:
    rate = spark.readStream.format("rate").load()
    with raises(SourceError, "wrong-frame"):
        bridge.stream(spark.range(5), checkpoint=str(tmp_path))
    with raises(SourceError, "wrong-frame"):
        bridge.source(rate)
    with raises(SourceError, "source-failed"):
        bridge.stream(rate, checkpoint="")
    with raises(SourceError, "source-failed"):
        bridge.stream(rate, checkpoint=str(tmp_path), trigger={"continuous": "1 second"})


@pytest.mark.nightly
def test_the_show_of_spark_rate_in_small() -> None:
    command = [sys.executable, "-m", "bench.micro.spark_rate", "--rows", "5000", "--seconds", "8"]
    root, environment = Path(__file__).parents[2], {**os.environ, "RAY_ADDRESS": "local"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost 0, doubled 0, unknown 0, with another average 0" in done.stdout
