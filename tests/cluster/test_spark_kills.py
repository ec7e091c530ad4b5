"""Jobs on Ray that Spark feeds, while processes are killed: whoever reads the table at the end finds each row once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import rayelastic as rel
from rayelastic.errors import JobCancelledError
from rayelastic.runtime.values.status import State
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PATIENCE = 200.0
FILES, ROWS = 8, 5000  # micro-batches, and rows of each
ENDS = {"availableNow": True}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "input").mkdir()
    for number in range(FILES):
        numbers = list(range(number * ROWS, (number + 1) * ROWS))
        parquet.write_table(pa.table({"n": numbers}), tmp_path / "input" / f"{number}.parquet")
    return tmp_path


def stream_of(spark: SparkSession, folder: Path) -> rel.spark.SparkStream[Any]:
    frame = spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).parquet(str(folder / "input"))
    return rel.spark.stream(frame, {"n": int}, checkpoint=str(folder / "query"), trigger=ENDS)


def into_a_table(name: str, source: object, folder: Path) -> rel.Topology:
    topology = rel.Topology(name)
    rows = topology.source(source, name="rows")
    rows.map(lambda t: t.n, name="same", schema={"n": int}).sink(
        rel.spark.sink_stream(str(folder / "out"), seconds=1), name="out"
    )
    return topology


def in_table(folder: Path) -> list[int]:
    files = sorted((folder / "out").glob("part-*.parquet"))
    return sorted(n for file in files for n in parquet.read_table(file).column("n").to_pylist())


def taken(job: rel.Job) -> int:
    return job.metrics().operator("out").tuples_in


def kill_element(job: rel.Job) -> None:
    before = job.status.checkpoints.restarts
    os.kill(next(one.pid for one in job.status.pes), signal.SIGKILL)
    wait_until(job, lambda: job.status.checkpoints.restarts > before and job.status.state is State.RUNNING)


@pytest.mark.nightly  # Spark of its own takes three quarters of a minute; the next test kills an element, too
def test_an_element_is_killed_in_mid_stream_and_a_job_is_started_again_on_table_and_checkpoint(
    spark: SparkSession, folder: Path
) -> None:
    job = rel.submit(into_a_table("killed_stream", stream_of(spark, folder), folder))
    wait_until(job, lambda: taken(job) >= ROWS)
    kill_element(job)
    wait_until(job, lambda: len(in_table(folder)) >= 4 * ROWS)
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.wait(PATIENCE)
    first = in_table(folder)
    assert first == list(range(len(first)))
    assert len(first) % ROWS == 0, "it ends between two micro-batches"
    rel.submit(into_a_table("killed_stream", stream_of(spark, folder), folder)).wait(PATIENCE)
    assert in_table(folder) == list(range(FILES * ROWS))


DRIVER = """
import sys
from pathlib import Path
import rayelastic as rel
from rayelastic.on_ray.connect import ensure_ray
from tests.cluster.test_spark_kills import ROWS, into_a_table, stream_of, taken
folder, address = Path(sys.argv[1]), sys.argv[2]
ensure_ray(address)
spark = rel.spark.session("lost", executor_cores=1)
job = rel.submit(into_a_table("survives", stream_of(spark, folder), folder))
while taken(job) < ROWS:
    job.pause(0.05)
print("it runs", flush=True)
job.wait()
"""


@pytest.mark.parametrize("both", [pytest.param(False, marks=pytest.mark.nightly), True])
@pytest.mark.guarantee(
    source="Spark stream", sink="growing Parquet table", lost="the driver, and a process with it", rows="each once"
)
def test_the_driver_of_a_stream_is_killed_and_an_element_with_it(spark: SparkSession, folder: Path, both: bool) -> None:
    import ray

    command = [sys.executable, "-c", DRIVER, str(folder), ray.get_runtime_context().gcs_address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as lost:
        assert lost.stdout is not None
        assert any("it runs" in line for line in lost.stdout)
        job = rel.attach("survives")
        if both:
            os.kill(next(one.pid for one in job.status.pes), signal.SIGKILL)
        lost.kill()
    wait_until(job, lambda: job.status.checkpoints.restarts == both and job.status.state is State.RUNNING)
    job.feed("rows", stream_of(spark, folder))
    job.wait(PATIENCE)
    assert in_table(folder) == list(range(FILES * ROWS))


@pytest.mark.nightly
@pytest.mark.guarantee(source="Spark DataFrame", sink="Parquet", lost="a process", rows="each once")
def test_an_element_is_killed_while_a_dataframe_is_pushed(spark: SparkSession, folder: Path) -> None:
    def slow(t: Any) -> int:
        if t.n % 100 == 0:  # so that it isn't over before it is killed
            threading.Event().wait(0.01)
        return int(t.n)

    topology = rel.Topology("killed_frame")
    frame = spark.range(0, FILES * ROWS, 1, 4).selectExpr("id n")
    rows = topology.source(rel.spark.source(frame, {"n": int}), name="rows")
    rows.map(slow, name="slow", schema={"n": int}, lane="python").sink(rel.parquet(str(folder / "out")), name="out")
    job = rel.submit(topology, rel.JobConfig(checkpoint=rel.Checkpoint(every=0.5)))
    wait_until(job, lambda: taken(job) >= ROWS // 2 and job.status.checkpoints.taken > 0)
    kill_element(job)
    job.wait(PATIENCE)
    table = parquet.read_table(folder / "out").column("n").to_pylist()
    assert sorted(table) == list(range(FILES * ROWS))
