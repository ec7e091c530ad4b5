"""Files that Spark writes, with every type that it has at its edges: what is read is what was written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import rayelastic as rel
from tests.component.connectors.reading import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.edges, pytest.mark.nightly]


class Point(NamedTuple):
    x: float | None
    t: str | None


FLAT: dict[str, Any] = {
    "i": int | None, "b": Annotated[int, np.int8] | None, "s": str | None, "t": bool | None, "d": dt.date | None,
    "z": Annotated[dt.datetime, pa.timestamp("us", "UTC")] | None, "n": dt.datetime | None, "x": Decimal | None,
}  # fmt: skip
DEEP: dict[str, Any] = FLAT | {
    "f": float | None, "c": bytes | None, "l": list[int | None] | None, "m": dict[str, int | None] | None,
    "p": Point | None,
}  # fmt: skip
SPARK = (
    "i bigint, b tinyint, s string, t boolean, d date, z timestamp, n timestamp_ntz, x decimal(38, 18), f double, "
    "c binary, l array<bigint>, m map<string, bigint>, p struct<x: double, t: string>"
)
MILLI = 1000  # microseconds: finer ones Spark doesn't write as text by default
ROWS: list[tuple[Any, ...]] = [
    (
        2**63 - 1, -128, 'a"b,\n\\', True, dt.date(1, 1, 1), dt.datetime(2024, 2, 29, 12, 30, 0, MILLI, tzinfo=dt.UTC),
        dt.datetime.fromisoformat("1969-12-31T23:59:59"), Decimal("-0.000000000000000001"), -0.0, b"\xff\0", [1, None],
        {"a": 1, "b": None}, Point(1.5, None),
    ),
    (None,) * 13,
    (
        0, 0, "é", False, dt.date(9999, 12, 31), dt.datetime(1700, 1, 1, tzinfo=dt.UTC),
        dt.datetime.fromisoformat("2261-01-01T00:00:00"), Decimal("99999999999999999999.999999999999999999"), 5e-324,
        b"", [], {}, Point(None, ""),
    ),
]  # fmt: skip


SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # the default, INT96, has no zone
}


def test_files_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()  # has settings of its own
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    frame = session.createDataFrame(ROWS, SPARK).coalesce(1)
    flat = [row[: len(FLAT)] for row in ROWS]
    frame.write.json(str(tmp_path / "json"))
    frame.write.parquet(str(tmp_path / "parquet"))
    frame.select(*FLAT).write.csv(str(tmp_path / "csv"), header=True)
    read = rows(rel.json(str(tmp_path / "json/part-*.json"), DEEP))
    assert [tuple(row) for row in read] == ROWS
    assert repr(read[0].f) == "-0.0"
    assert [tuple(row) for row in rows(rel.parquet(str(tmp_path / "parquet"), DEEP))] == ROWS
    read = rows(rel.csv(str(tmp_path / "csv/part-*.csv"), FLAT, escape="\\"))
    assert [tuple(row) for row in read] == flat
