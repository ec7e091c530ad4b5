"""What sources read and sinks wrote, when a job goes on from a snapshot: nothing is replaced, doubled or mixed up."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyarrow import parquet

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import SinkError, StateError
from tests.raising import raises
from tests.waiting import wait_until_emitted

PATIENCE = 60.0


class Row(NamedTuple):
    key: str
    n: int


ROWS = [Row(f"key, {n % 7}\nof {n}", n) for n in range(1000)]


def counted(source: Any, sink: Any) -> rel.Topology:
    topology = rel.Topology("edges")
    stream = topology.source(source, name="rows").aggregate(
        name="count", emit="update", n=rel.count(), key=rel.last("key")
    )
    stream.sink(sink, name="out")
    return topology


def stopped(sink: Any, snapshot: Path, cut: int, restore: Path | None = None, first: int = 0) -> None:
    gate = testing.Gate()
    job = rel.start(counted(testing.script([*ROWS[:cut], gate], Row), sink), restore=restore)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_emitted(job, "rows", cut - first)
        job.stop(snapshot)
    finally:
        job.close()


def of_parquet(path: Path) -> list[tuple[int, str]]:
    rows = parquet.read_table(path).to_pylist()
    return [(row["n"], row["key"]) for row in rows]


def of_csv(path: Path) -> list[tuple[int, str]]:
    files = sorted(path.glob("part-*")) if path.is_dir() else [path]
    rows = []
    for file in files:
        with file.open(newline="") as text:
            rows += list(csv.DictReader(text))
    return [(int(row["n"]), row["key"]) for row in rows]


SINKS = [
    pytest.param("all.parquet", rel.parquet, of_parquet, id="parquet"),
    pytest.param("all.csv", rel.csv, of_csv, id="csv"),
    pytest.param("parts", rel.parquet, of_parquet, id="parquet-folder"),
    pytest.param("parts", rel.csv, of_csv, id="csv-folder"),
    pytest.param("table", lambda path: rel.spark.sink_stream(path, seconds=0.05), of_parquet, id="growing"),
]


@pytest.mark.parametrize(("name", "sink", "read"), SINKS)
def test_what_three_runs_wrote_is_what_one_would_have(
    name: str, sink: Callable[..., Any], read: Callable[..., Any], tmp_path: Path
) -> None:
    target, one, other = tmp_path / name, tmp_path / "one", tmp_path / "other"
    stopped(sink(str(target)), one, 400)
    assert len(read(target)) == 400
    stopped(sink(str(target)), other, 700, one, 400)
    rel.run(counted(rel.rows(ROWS, schema=Row), sink(str(target))), restore=other)
    assert sorted(read(target)) == [(n + 1, ROWS[n].key) for n in range(1000)]


@pytest.mark.parametrize(("name", "sink", "read"), SINKS)
def test_output_that_is_not_what_the_first_run_left_is_refused_before_anything_starts(
    name: str, sink: Callable[..., Any], read: Callable[..., Any], tmp_path: Path
) -> None:
    target, saved = tmp_path / name, tmp_path / "saved"
    stopped(sink(str(target)), saved, 400)
    for _ in range(2):  # what came behind the snapshot is taken back, and comes again
        rel.run(counted(rel.rows(ROWS, schema=Row), sink(str(target))), restore=saved)
        assert len(read(target)) == 1000
    files = [target] if target.is_file() else sorted(target.glob("part-*"))
    for damage in (lambda data: data[:50] + bytes([data[50] ^ 1]) + data[51:], lambda _: b"", None):
        if damage is None:
            files[0].unlink()
        else:
            files[0].write_bytes(damage(files[0].read_bytes()))
        left = {file: file.read_bytes() for file in files if file.exists()}
        with raises(StateError, "missing-output", operator="out"):
            rel.run(counted(rel.rows(ROWS, schema=Row), sink(str(target))), restore=saved)
        assert {file: file.read_bytes() for file in files if file.exists()} == left
    rel.run(counted(rel.rows(ROWS, schema=Row), sink(str(tmp_path / f"other {name}"))), restore=saved)
    assert len(read(tmp_path / f"other {name}")) == 600
    for file in files:
        file.unlink(missing_ok=True)
    anew = rel.Snapshot(saved, drop=("out",))
    rel.run(counted(rel.rows(ROWS, schema=Row), sink(str(target))), restore=anew)
    assert len(read(target)) == 600


def test_a_run_that_goes_on_from_nothing_is_not_mixed_with_parts_of_one_that_did(tmp_path: Path) -> None:
    target, saved = tmp_path / "parts", tmp_path / "saved"
    rel.run(counted(rel.rows(ROWS, schema=Row), rel.parquet(target)))
    rel.run(counted(rel.rows(ROWS, schema=Row), rel.parquet(target)))  # takes the place of the first, as ever
    stopped(rel.parquet(target), saved, 400)
    rel.run(counted(rel.rows(ROWS, schema=Row), rel.parquet(target)), restore=saved)
    with raises(SinkError, "foreign-output", operator="out"):
        rel.run(counted(rel.rows(ROWS, schema=Row), rel.parquet(target)))
    assert len(of_parquet(target)) == 1000


def lines_in(path: Path, count: int, word: str = "line") -> Path:
    path.write_text("".join(f"{word} {n}\n" for n in range(count)))
    return path


def texts(*paths: Path) -> rel.Topology:
    topology = rel.Topology("texts")
    slow = topology.source(rel.text(list(paths)), name="lines").map(
        paced, name="slowly", schema={"line": str}, lane="python"
    )
    slow.sink(rel.list(), name="out")
    return topology


reached = testing.Gate()


def paced(t: Any) -> str:
    line: str = t.line
    if line == "line 150":
        reached._pass()
    return line


@pytest.fixture
def saved_lines(tmp_path: Path) -> Path:
    """A snapshot of a job that read a part of two files of 100,000 lines."""
    global reached
    reached = testing.Gate()
    lines_in(tmp_path / "a.txt", 100_000)
    lines_in(tmp_path / "b.txt", 100_000)
    job = rel.start(
        texts(tmp_path / "a.txt", tmp_path / "b.txt"),
        rel.JobConfig(threads=rel.Threads(model="dynamic", queue_records=256)),
    )
    assert reached.wait_reached(PATIENCE)
    reached.open()
    assert 150 < len(job.stop(tmp_path / "saved")["out"]) < 200_000
    return tmp_path / "saved"


def test_a_source_goes_on_in_the_input_that_it_had_alone(saved_lines: Path, tmp_path: Path) -> None:
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"

    def refused(message: str, *paths: Path) -> None:
        with raises(StateError, "changed-input"):
            rel.run(texts(*paths), restore=saved_lines)

    refused("was 2 files and is 1 now", a)
    refused("file of number 1 of which had .* bytes and has", lines_in(tmp_path / "short.txt", 50), b)
    refused(
        "file of number 1 of which begins or goes on with other bytes",
        lines_in(tmp_path / "other.txt", 100_000, "word"),
        b,
    )
    topology = rel.Topology("texts")
    rows = topology.source(rel.rows([("a",)], schema={"line": str}), name="lines")
    rows.map(paced, name="slowly", schema={"line": str}, lane="python").sink(rel.list(), name="out")
    with raises(StateError, "changed-input", operator="lines"):
        rel.run(topology, restore=saved_lines)
    with b.open("a") as file:
        file.write("the last line\n")
    rest = rel.run(texts(a, b, lines_in(tmp_path / "more.txt", 3)), restore=saved_lines)["out"]
    assert [t.line for t in rest[-4:]] == ["the last line", "line 0", "line 1", "line 2"]
    again = rel.run(texts(a, b), restore=rel.Snapshot(saved_lines, drop=("lines",)))["out"]
    assert len(again) == 200_001


def test_a_source_that_ends_before_its_position_fails_the_job(tmp_path: Path) -> None:
    stopped(rel.list(), tmp_path / "saved", 400)
    with raises(StateError, "changed-input", "400", "300", operator="rows"):
        rel.run(counted(rel.rows(ROWS[:300], schema=Row), rel.list()), restore=tmp_path / "saved")
    shorter = testing.script(ROWS[:300], Row)
    with raises(rel.errors.JobFailedError, "source-failed", "100", operator="rows"):
        rel.run(counted(shorter, rel.list()), restore=tmp_path / "saved")
    assert len(rel.run(counted(rel.rows(ROWS[:400], schema=Row), rel.list()), restore=tmp_path / "saved")["out"]) == 0


def test_rows_of_a_table_are_known_again(tmp_path: Path) -> None:
    gate = testing.Gate()

    def run(table: pa.Table, **options: Any) -> rel.Topology:
        topology = rel.Topology("tables")
        topology.source(rel.arrow(table), name="rows").map(
            lambda t: wait(t.n), name="wait", lane="python", schema={"n": int}
        ).sink(rel.list(), name="out")
        return topology

    def wait(n: int) -> int:
        if n == 5:
            gate._pass()
        return n

    table = pa.table({"n": range(10)})
    job = rel.start(run(table), rel.JobConfig(threads=rel.Threads(model="manual", run_records=1)))
    assert gate.wait_reached(PATIENCE)
    gate.open()
    before = job.stop(tmp_path / "saved")["out"]
    with raises(StateError, "changed-input", operator="rows"):
        rel.run(run(pa.table({"n": range(1, 11)})), restore=tmp_path / "saved")
    after = rel.run(run(pa.table({"n": range(12)})), restore=tmp_path / "saved")["out"]
    assert [t.n for t in before + after] == list(range(12))
