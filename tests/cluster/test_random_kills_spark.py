"""Elements and coordinators are killed at random while Spark streams feed the job: each row is in its sinks once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import rayelastic as rel
from tests.cluster import words_and_prices
from tests.cluster.random_kills import Campaign, config, submitted
from tests.cluster.words_and_prices import Trade, line, trade
from tests.postgres import needs_postgres, postgres_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(7200)]

KILLS, AIMED = 100, 40
ROWS = 1500  # for each kill, of lines and of trades
BATCH = 2000  # rows of a micro-batch
SCHEMAS = {"lines": "line string", "trades": "n long, symbol string, price long, quantity long"}
ENDS = {"availableNow": True}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as conninfo:
        yield conninfo


def stream_of(spark: SparkSession, folder: Path, name: str) -> rel.spark.SparkStream[Any]:
    """One file a micro-batch, so that rows come in order."""
    frame = spark.readStream.schema(SCHEMAS[name]).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
    schema = Trade if name == "trades" else {"line": str}
    return rel.spark.stream(frame, schema, checkpoint=str(folder / f"query-{name}"), trigger=ENDS)


def write_files(folder: Path, rows: int) -> None:
    for name in SCHEMAS:
        (folder / name).mkdir()
    for number in range(rows // BATCH):
        numbers = range(number * BATCH, (number + 1) * BATCH)
        lines = pa.table({"line": [line(n) for n in numbers]})
        parquet.write_table(lines, folder / "lines" / f"{number:05}.parquet")
        trades = pa.Table.from_pylist([trade(n)._asdict() for n in numbers])
        parquet.write_table(trades, folder / "trades" / f"{number:05}.parquet")


def kill_at_random(spark: SparkSession, folder: Path, seed: int, server: str = "") -> None:
    rows = KILLS * ROWS // BATCH * BATCH
    write_files(folder, rows)
    made = rel.Topology(f"streamed{seed}")
    lines, trades = (made.source(stream_of(spark, folder, name), name=name) for name in SCHEMAS)
    words_and_prices.words_and_prices(lines, trades, folder, server)
    campaign = Campaign(submitted(made, config()), folder, seed, ["counts", "vwap"])
    try:
        campaign.run(KILLS, AIMED)
    finally:
        sys.stdout.write(f"\n{campaign.kills}\n")
    words_and_prices.finish(campaign.job, folder, rows, server)


@pytest.mark.guarantee(
    source="Spark stream", sink="Parquet", lost="processes and coordinators, at random moments", rows="each once"
)
def test_random_kills_where_streams_come_and_files_are_written(spark: SparkSession, tmp_path: Path) -> None:
    kill_at_random(spark, tmp_path, 11)


@needs_postgres
@pytest.mark.guarantee(
    source="Spark stream", sink="PostgreSQL", lost="processes and coordinators, at random moments", rows="each once"
)
def test_random_kills_where_streams_come_and_a_postgresql_table_is_written(
    spark: SparkSession, tmp_path: Path, server: str
) -> None:
    kill_at_random(spark, tmp_path, 12, server)
