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
from tests.raising import raises


class Number(NamedTuple):
    n: int


class Pair(NamedTuple):
    key: str
    n: int


class Total(NamedTuple):
    total: int = 0


CONFIGS = [
    rel.JobConfig(),
    rel.JobConfig(threads=rel.Threads(count=2, model="dynamic")),
    rel.JobConfig(threads=rel.Threads(count=1, model="dedicated")),
    rel.JobConfig(pes=2),
    rel.JobConfig(pes=2, threads=rel.Threads(count=2, model="dynamic")),
]


def numbers(topology: rel.Topology, count: int = 5000) -> rel.Stream:
    table = pa.table({"n": pa.array(range(count), pa.int64())})
    return topology.source(rel.arrow(table, Number), name="numbers")


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_map_filter_flat_map_keep_order(config: rel.JobConfig, lane: str) -> None:
    topology = rel.Topology("chain")

    def twice(t: Number) -> Iterator[Number]:
        yield Number(t.n)
        yield Number(t.n + 1)

    stream = numbers(topology).map(lambda t: Number(t.n * t.n), name="square", schema=Number, lane=lane)  # type: ignore[call-overload]
    stream = stream.filter(lambda t: t.n % 2 == 0, name="even", lane=lane)
    stream.flat_map(twice, name="twice", schema=Number, lane=lane).key_by("n").sink(rel.list(), name="out")
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
    stream = topology.source(rel.rows(rows), name="rows").key_by("key")
    state = Total if lane == "compiled" else Mutable
    stream.map(running, name="running", schema=Pair, state=state, lane=lane).sink(rel.list(), name="out")  # type: ignore[call-overload]
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
    small = source.filter(lambda t: t.n < 1000, name="small")
    large = source.filter(lambda t: t.n >= 1000, name="large")
    small.union(large).sink(rel.arrow(), name="all")
    small.sink(rel.count(), name="few")
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
        stream = topology.source(source, name="rows")
        stream.sink(rel.parquet(tmp_path / "out.parquet"), name="parquet")
        stream.sink(rel.csv(tmp_path / "out.csv"), name="csv")
        stream.sink(rel.arrow(), name="table")
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
    topology.source(rel.callable(three, schema={"n": int}), name="calls").sink(
        rel.call(lambda t: seen.append(t.n)), name="out"
    )
    topology.source(rel.generate(lambda n: n * n, 1000, schema={"n": int}), name="made").sink(rel.list(), name="list")
    topology.source(rel.sequence(100_000, payload_bytes=100), name="native").sink(rel.count(), name="count")
    result = rel.run(topology)
    assert seen == [1, 2, 3]
    assert [t.n for t in result["list"]] == [n * n for n in range(1000)]
    assert result["count"] == 100_000


@pytest.mark.parametrize("emit", ["final", "update"])
def test_aggregates(emit: str) -> None:
    topology = rel.Topology("aggregates")
    rows = [Pair("ab"[n % 2], n) for n in range(100)]
    keyed = topology.source(rel.rows(rows), name="rows").key_by("key")
    keyed.aggregate(
        name="totals",
        emit=emit,  # type: ignore[arg-type]
        n=rel.count(),
        total=rel.sum("n"),
        low=rel.min("n"),
        high=rel.max("n"),
        mean=rel.mean("n"),
        first=rel.first("n"),
        last=rel.last("n"),
    ).sink(rel.list(), name="out")
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
    numbers(topology).key_by("n").map(inverse, name="inverse", schema=float, lane=lane).sink(rel.count(), name="out")  # type: ignore[call-overload]
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
    topology.source(rel.csv(path, schema={"n": int}), name="rows").sink(rel.count(), name="out")
    path.write_text("n\n1\nnot a number\n")
    with raises(JobFailedError, "source-failed") as caught:
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
    endless = topology.source(rel.generate(lambda n: n, None, schema={"n": int}), name="endless")
    endless.key_by("n").map(lambda t: t.n, name="same", schema={"n": int}).sink(rel.call(see), name="out")
    job = rel.start(topology, rel.JobConfig(pes=pes))
    assert arrived.wait(30)
    job.cancel(drain=drain)
    with pytest.raises(JobCancelledError):
        job.wait(timeout=30)
    if drain:
        assert seen == job.metrics().operator("endless").tuples_out


def test_bad_input_is_refused_before_anything_starts(tmp_path: Path) -> None:
    topology = rel.Topology("bad")
    with raises(SourceError, "missing-file"):
        topology.source(rel.text(tmp_path / "missing.txt"), name="lines")
    source = numbers(topology)
    with raises(LaneError, "not-compiled"):
        source.map(lambda t: __import__("json").dumps(t.n), name="json", schema=str, lane="compiled")
    with raises(GraphError, "no-sink"):
        rel.run(topology)
    source.sink(rel.count(), name="out")
    with raises(ConfigError, "out-of-range"):
        rel.run(topology, rel.JobConfig(pes=5))
