"""Watermarks of splits that are declared to follow each other in time, and of partitions that are pushed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import rayelastic as rel
from rayelastic.connectors.pushed.declaration import IngestSource
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane, SourceDescription
from rayelastic.runtime.ingest.client import push_partition
from tests.component.operators.test_splits import LINES, SERVERS, TIMES, WINDOW, check, windows

pytestmark = pytest.mark.edges


@pytest.mark.parametrize("kind", ["text", "csv", "json", "parquet"])
def test_files_in_time_order_have_one_watermark(tmp_path: Path, kind: str) -> None:
    """So windows close before the next file is read: a line that breaks the promise is late, and counted."""
    for name, times in (("a", [1, 61, 130]), ("b", [5, 200, 260])):
        table = pa.table({"at": times})
        if kind == "parquet":
            parquet.write_table(table, tmp_path / name)
        else:
            head, line = {"text": ("", "{}\n"), "csv": ("at\n", "{}\n"), "json": ("", '{{"at": {}}}\n')}[kind]
            (tmp_path / name).write_text(head + "".join(line.format(at) for at in times))
    for time_ordered, late in ((True, 1), (False, 0)):
        topology = rel.Topology("ordered")
        source = topology.source(getattr(rel, kind)(tmp_path / "?", time_ordered=time_ordered), name="s")
        stream = source if kind != "text" else source.map(lambda t: int(t.line), name="parse", schema={"at": int})
        whole = stream.filter(lambda t: t.at is not None, name="whole")
        timed = whole.map(lambda t: t.at, name="at", schema={"at": int}).event_time("at", name="time")
        counts = timed.window(seconds=WINDOW).aggregate(name="counts", n=rel.count())
        counts.sink(rel.list(), name="out")
        counts.late().sink(rel.count(), name="late")
        result = rel.run(topology)
        assert (result["late"], sum(t.n for t in result["out"])) == (late, 6 - late)


class Pushed(SourceDescription):
    """What Spark and Ray do with a DataFrame or Dataset, in small: the partitions come one after the other."""

    schema, lane, reason, has_splits = Schema.of({"at": int}), Lane.BUILT_IN, "a test pushes", True

    def __init__(self, *, time_ordered: bool) -> None:
        self.time_ordered = time_ordered

    def check(self, operator: str) -> None:
        pass

    def for_pe(self) -> IngestSource:
        return IngestSource(self.schema, self.reason, time_ordered=self.time_ordered)

    def cancel(self) -> None:
        pass

    def push(self, feed: Any) -> dict[int, int]:
        schema = self.schema.to_arrow()
        return {
            partition: push_partition(
                feed.address(), schema, partition, pa.table({"at": times}).to_batches(), sender="task"
            )
            for partition, times in enumerate(TIMES)
        }


def test_partitions_that_are_pushed_are_splits() -> None:
    topology = rel.Topology("pushed")
    windows(topology.source(Pushed(time_ordered=False), name="s"))
    check(rel.run(topology))


def test_a_pushed_partition_that_breaks_its_promise_is_late() -> None:
    topology = rel.Topology("pushed")
    windows(topology.source(Pushed(time_ordered=True), name="s"), lateness=0)
    result = rel.run(topology)
    assert result["late"] > 0
    assert result["late"] + sum(t.n for t in result["out"]) == SERVERS * LINES
