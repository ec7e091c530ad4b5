"""`rel.run`: sources, sinks, graph shapes, keyed state, failures, in this process with real threads and links."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import rayelastic as rel
from rayelastic.errors import ConfigError, GraphError, JobCancelledError, JobFailedError, LaneError, SourceError


class Number(NamedTuple):
    n: int


class Pair(NamedTuple):
    key: str
    n: int


class Total(NamedTuple):
    total: int = 0


CONFIGS = [
    rel.JobConfig(),
    rel.JobConfig(threads=2, threading="dynamic"),
    rel.JobConfig(threads=1, threading="dedicated"),
    rel.JobConfig(pes=2),
    rel.JobConfig(pes=2, threads=2, threading="dynamic"),
]


def numbers(topology: rel.Topology, count: int = 5000) -> rel.Stream:
    table = pa.table({"n": pa.array(range(count), pa.int64())})
    return topology.source("numbers", rel.arrow(table, Number))


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_map_filter_flat_map_keep_order(config: rel.JobConfig, lane: str) -> None:
    topology = rel.Topology("chain")

    def twice(t: Number) -> Iterator[Number]:
        yield Number(t.n)
        yield Number(t.n + 1)

    stream = numbers(topology).map("square", lambda t: Number(t.n * t.n), schema=Number, lane=lane)  # type: ignore[arg-type]
    stream = stream.filter("even", lambda t: t.n % 2 == 0, lane=lane)  # type: ignore[arg-type]
    stream.flat_map("twice", twice, schema=Number, lane=lane).key_by("n").sink("out", rel.list())  # type: ignore[arg-type]
    expected = [value for n in range(5000) if n % 2 == 0 for value in (n * n, n * n + 1)]
    assert [t.n for t in rel.run(topology, config)["out"]] == expected


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_keyed_state_belongs_to_the_key(config: rel.JobConfig, lane: str) -> None:
    def running(t: Pair, s: Total) -> Pair:
        s.total += t.n  # type: ignore[misc]
        return Pair(t.key, s.total)

    class Mutable:
        total = 0

    topology = rel.Topology("running")
    rows = [Pair(f"key-{n % 7}-of-a-good-length", n) for n in range(3000)]
    stream = topology.source("rows", rel.rows(rows)).key_by("key")
    state = Total if lane == "compiled" else Mutable
    stream.map("running", running, schema=Pair, state=state, lane=lane).sink("out", rel.list())  # type: ignore[arg-type]
    totals: Counter[str] = Counter()
    expected = []
    for row in rows:
        totals[row.key] += row.n
        expected.append((row.key, totals[row.key]))
    assert [tuple(t) for t in rel.run(topology, config)["out"]] == expected


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_union_and_several_consumers(config: rel.JobConfig) -> None:
    topology = rel.Topology("diamond")
    source = numbers(topology)
    small = source.filter("small", lambda t: t.n < 1000)
    large = source.filter("large", lambda t: t.n >= 1000)
    small.union(large).sink("all", rel.arrow())
    small.sink("few", rel.count())
    result = rel.run(topology, config)
    assert sorted(result["all"]["n"].to_pylist()) == list(range(5000))
    assert result["few"] == 1000


def test_files_in_and_out(tmp_path: Path) -> None:
    table = pa.table(
        {
            "symbol": ["A", "B", None, "A"],
            "price": [1.5, 2.5, 3.5, None],
            "at": [dt.datetime(2005, 12, 27, 9, 30, n, tzinfo=dt.UTC) for n in range(4)],
        }
    )
    csv.write_csv(table, tmp_path / "in.csv")
    parquet.write_table(table, tmp_path / "in.parquet")
    for source in (rel.csv(tmp_path / "in.csv"), rel.parquet(tmp_path / "in.parquet"), rel.arrow(table)):
        topology = rel.Topology("files")
        stream = topology.source("rows", source)
        stream.sink("parquet", rel.parquet(tmp_path / "out.parquet"))
        stream.sink("csv", rel.csv(tmp_path / "out.csv"))
        stream.sink("table", rel.arrow())
        result = rel.run(topology)
        for out in (parquet.read_table(tmp_path / "out.parquet"), result["table"]):
            assert out.column_names == table.column_names
            assert out["symbol"].to_pylist() == table["symbol"].to_pylist()
            assert out["price"].to_pylist() == table["price"].to_pylist()
        assert csv.read_csv(result["csv"]).num_rows == 4


def test_python_sources_and_call_sink() -> None:
    def three() -> Iterator[tuple[int]]:
        yield from [(1,), (2,), (3,)]

    seen: list[int] = []
    topology = rel.Topology("python")
    topology.source("calls", rel.callable(three, schema={"n": int})).sink("out", rel.call(lambda t: seen.append(t.n)))
    topology.source("made", rel.generate(lambda n: n * n, 1000, schema={"n": int})).sink("list", rel.list())
    topology.source("native", rel.sequence(100_000, payload_bytes=100)).sink("count", rel.count())
    result = rel.run(topology)
    assert seen == [1, 2, 3]
    assert [t.n for t in result["list"]] == [n * n for n in range(1000)]
    assert result["count"] == 100_000


@pytest.mark.parametrize("emit", ["final", "update"])
def test_aggregates(emit: str) -> None:
    topology = rel.Topology("aggregates")
    rows = [Pair("ab"[n % 2], n) for n in range(100)]
    keyed = topology.source("rows", rel.rows(rows)).key_by("key")
    keyed.aggregate(
        "totals",
        emit=emit,
        n=rel.count(),
        total=rel.sum("n"),
        low=rel.min("n"),
        high=rel.max("n"),
        mean=rel.mean("n"),
        first=rel.first("n"),
        last=rel.last("n"),
    ).sink("out", rel.list())
    out = rel.run(topology)["out"]
    assert len(out) == (2 if emit == "final" else 100)
    assert tuple(out[-2]) == ("a", 50, 2450, 0, 98, 49.0, 0, 98)
    assert tuple(out[-1]) == ("b", 50, 2500, 1, 99, 50.0, 1, 99)


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("pes", [1, 2])
def test_a_raising_function_stops_the_job_with_operator_tuple_and_traceback(lane: str, pes: int) -> None:
    def inverse(t: Number) -> float:
        return 1000 / (t.n - 3333)

    topology = rel.Topology("raises")
    numbers(topology).key_by("n").map("inverse", inverse, schema=float, lane=lane).sink("out", rel.count())  # type: ignore[arg-type]
    with pytest.raises(JobFailedError) as caught:
        rel.run(topology, rel.JobConfig(pes=pes))
    assert caught.value.operator == "inverse"
    assert "ZeroDivisionError" in caught.value.reason
    assert "n=3333" in str(caught.value.failing_tuple)
    assert "return 1000 / (t.n - 3333)" in caught.value.traceback_text


def test_a_source_that_breaks_fails_the_job(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("n\n" + "1\n" * 10)
    topology = rel.Topology("breaks")
    topology.source("rows", rel.csv(path, schema={"n": int})).sink("out", rel.count())
    path.write_text("n\n1\nnot a number\n")
    with pytest.raises(JobFailedError, match="rows") as caught:
        rel.run(topology)
    assert caught.value.operator == "rows"


@pytest.mark.parametrize("drain", [True, False])
@pytest.mark.parametrize("pes", [1, 2])
def test_cancel(drain: bool, pes: int) -> None:
    arrived = threading.Event()
    seen = 0

    def see(_: object) -> None:
        nonlocal seen
        seen += 1
        arrived.set()

    topology = rel.Topology("endless")
    endless = topology.source("endless", rel.generate(lambda n: n, None, schema={"n": int}))
    endless.key_by("n").map("same", lambda t: t.n, schema={"n": int}).sink("out", rel.call(see))
    job = rel.start(topology, rel.JobConfig(pes=pes))
    assert arrived.wait(30)
    job.cancel(drain=drain)
    with pytest.raises(JobCancelledError):
        job.wait(timeout=30)
    if drain:
        assert seen == job.metrics().operator("endless").tuples_out


def test_bad_input_is_refused_before_anything_starts(tmp_path: Path) -> None:
    topology = rel.Topology("bad")
    with pytest.raises(SourceError, match="lines"):
        topology.source("lines", rel.text(tmp_path / "missing.txt"))
    source = numbers(topology)
    with pytest.raises(LaneError, match="json"):
        source.map("json", lambda t: __import__("json").dumps(t.n), schema=str, lane="compiled")
    with pytest.raises(GraphError, match="sink"):
        rel.run(topology)
    source.sink("out", rel.count())
    with pytest.raises(ConfigError, match="region"):
        rel.run(topology, rel.JobConfig(pes=5))
