"""A table that grows while the job runs: readers see whole files only, every row once, across restarts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as dataset
import pytest

import rayelastic as rel
from rayelastic.connectors.output.record import SinkContext
from rayelastic.connectors.parquet.growing_table import GrowingTable
from rayelastic.errors import SinkError
from rayelastic.graph.records.schema import Schema
from rayelastic.job import start
from rayelastic.spark import sink_stream
from tests.raising import raises

PERIOD = 0.05  # seconds
PATIENCE = 200  # periods


def rows_in(folder: Path) -> list[int]:
    files = sorted(folder.glob("part-*.parquet"))
    return dataset.dataset(files, format="parquet").to_table()["n"].to_pylist() if files else []


def test_rows_appear_while_the_job_runs_and_once(tmp_path: Path) -> None:
    folder, go_on, waited = tmp_path / "table", threading.Event(), threading.Event()

    def numbers() -> Iterator[tuple[int]]:
        yield from ((n,) for n in range(1000))
        go_on.wait()
        yield from ((n,) for n in range(1000, 2000))

    topology = rel.Topology("grows")
    source = topology.source(rel.callable(numbers, schema={"n": int}), name="numbers")
    source.sink(sink_stream(str(folder), seconds=PERIOD), name="out")
    for repeat in (1, 2):  # the second job goes on behind the first
        go_on.clear()
        job = start(topology)
        for _ in range(PATIENCE):
            if len(rows_in(folder)) > 2000 * (repeat - 1):
                break
            waited.wait(PERIOD)
        seen = rows_in(folder)[2000 * (repeat - 1) :]
        assert 0 < len(seen) <= 1000, "before the source has ended"
        assert seen == list(range(len(seen)))
        go_on.set()
        assert job.wait(60)["out"] == str(folder)
        assert rows_in(folder) == list(range(2000)) * repeat
        assert not list(folder.glob(".*.partial"))


def test_a_full_part_is_written_at_once_and_an_empty_table_has_its_columns(tmp_path: Path) -> None:
    schema = Schema.of({"n": int})
    table = GrowingTable(str(tmp_path / "full"), schema, 3600, SinkContext(run="full"), part_rows=10)
    for first in range(0, 25, 5):
        table.write(pa.RecordBatch.from_pydict({"n": list(range(first, first + 5))}, schema=schema.to_arrow()))
    assert rows_in(tmp_path / "full") == list(range(20))
    table.close()
    assert rows_in(tmp_path / "full") == list(range(25))
    GrowingTable(str(tmp_path / "empty"), schema, 3600, SinkContext(run="empty")).close()
    assert dataset.dataset(tmp_path / "empty", format="parquet").to_table().column_names == ["n"]


@pytest.mark.parametrize(
    ("path", "seconds", "code"),
    [("table.parquet", 5.0, "not-a-folder"), ("table", 0, "out-of-range"), ("table", "soon", "out-of-range")],
)
def test_what_cant_grow_is_refused(tmp_path: Path, path: str, seconds: Any, code: str) -> None:
    topology = rel.Topology("bad")
    with raises(SinkError, code, operator="out"):
        topology.source(rel.sequence(1)).sink(sink_stream(str(tmp_path / path), seconds=seconds), name="out")
