"""Sources that go on from a position: they give what comes then, and hardly anything of what came before."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import rayelastic as rel
from rayelastic import _native
from rayelastic.connectors.files.bad_rows import Files
from rayelastic.connectors.inputs import Input, Place
from rayelastic.job.preparing import prepare
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.element.hosted import HostedOperators
from rayelastic.runtime.element.wiring import connect_operators
from rayelastic.runtime.values.specs import PESpec

PATIENCE = 60.0
A_WHILE = 0.001  # seconds a line, so that the job is stopped before the end
TOTAL = 10_000
GROUP = 512  # rows
POSITIONS = [0, 1, GROUP, GROUP + 1, 4_999, 5_000, 5_001, TOTAL - 1, TOTAL]


def given(source: Any, position: int, place: Place | None = None, said: Any = None) -> tuple[list[Any], int]:
    """What a source gives that goes on from a position, and how many rows it had to give again."""
    topology = rel.Topology("seek")
    topology.source(source, name="rows").sink(rel.arrow(), name="out")
    job = prepare(topology)
    spec = PESpec("pe0", job.name, "id", b"", tuple(job.operators.values()), (), (), job.config)
    hosted = HostedOperators(spec)
    hosted.open({}, None, takes_checkpoints=False)
    hosted.build()
    again = hosted.seek({"rows": position}, {"rows": Input("any", (), place, said)})
    scheduler = _native.Scheduler()
    ids = {name: scheduler.add(native, skip=again.get(name, 0)) for name, native in hosted.natives.items()}
    connect_operators(scheduler, spec.operators, ids)
    scheduler.start(1)
    hosted.sources["rows"].start("rows")
    assert scheduler.wait(PATIENCE)
    assert scheduler.failure() is None
    table = hosted.sinks["out"].close()
    hosted.close()
    return table.column(0).to_pylist(), again["rows"]


def parquet_files(folder: Path) -> Any:
    for number, rows in enumerate((range(5_000), range(0), range(5_000, TOTAL))):
        table = pa.table({"n": pa.array(rows, pa.int64())})
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=GROUP)
    return rel.parquet(folder)


SOURCES = [
    pytest.param(parquet_files, id="parquet"),
    pytest.param(lambda _: rel.arrow(pa.table({"n": range(TOTAL)})), id="arrow"),
    pytest.param(lambda _: rel.rows([(n,) for n in range(TOTAL)], schema={"n": int}), id="rows"),
    pytest.param(lambda _: rel.sequence(TOTAL), id="sequence"),
    pytest.param(lambda _: rel.sequence(TOTAL, payload_bytes=100), id="sequence with payload"),
]


@pytest.mark.parametrize("make", SOURCES)
def test_rows_are_sought_by_their_number(make: Callable[[Path], Any], tmp_path: Path) -> None:
    source = make(tmp_path)
    for position in POSITIONS:
        assert given(source, position) == (list(range(position, TOTAL)), 0)


def test_row_groups_in_front_of_the_position_are_not_read(tmp_path: Path) -> None:
    parquet_files(tmp_path)
    file = tmp_path / "0.parquet"
    data = bytearray(file.read_bytes())
    data[4:4_000] = bytes(3_996)
    file.write_bytes(data)
    with pytest.raises(OSError):
        parquet.read_table(file)
    last = GROUP * (5_000 // GROUP)
    assert given(rel.parquet([file]), last)[0] == list(range(last, 5_000))


def text_files(folder: Path, packed: bool) -> list[Path]:
    """Two files of some chunks of 1 MiB."""
    files = []
    for number in range(2):
        content = "".join(f"{number}:{n:0100d}\n" for n in range(40_000)).encode()
        files.append(folder / f"{number}.txt")
        files[-1].write_bytes(gzip.compress(content, 1) if packed else content)
    return files


@pytest.mark.parametrize("packed", [False, True])
def test_text_goes_on_at_a_byte_and_what_is_packed_at_a_file(packed: bool, tmp_path: Path) -> None:
    files, arrived, stopped, stop_at = text_files(tmp_path, packed), threading.Event(), threading.Event(), 70_000

    def wait(t: Any) -> str:
        line: str = t.line
        if line == f"1:{stop_at - 40_000:0100d}":
            arrived.set()
        if arrived.is_set():
            stopped.wait(A_WHILE)
        return line

    def texts() -> rel.Topology:
        topology = rel.Topology("texts")
        lines = topology.source(rel.text(files), name="lines")
        lines.map(wait, name="wait", schema={"line": str}, lane="python").sink(rel.list(), name="out")
        return topology

    job = rel.start(texts(), rel.JobConfig(threads=rel.Threads(model="dynamic", queue_records=256)))
    assert arrived.wait(PATIENCE)
    before = job.stop(tmp_path / "saved")["out"]
    stopped.set()
    saved = SnapshotFolder(rel.Snapshot(tmp_path / "saved")).manifest()
    place, position = saved.inputs["lines"].place, saved.positions["lines"]
    assert stop_at <= len(before) == position
    assert place is not None
    if packed:
        assert place == Place(1, 0, 40_000)
    else:
        assert place.file == 1
        assert position - (1 << 20) // 103 - 1 <= place.rows <= position
    after = rel.run(texts(), restore=tmp_path / "saved")["out"]
    assert [t.line for t in before + after] == [f"{f}:{n:0100d}" for f in range(2) for n in range(40_000)]
    rest, again = given(rel.text(files), position, place)
    assert again == position - place.rows
    assert rest == [t.line for t in after]


def test_a_place_behind_the_position_isnt_believed(tmp_path: Path) -> None:
    files = text_files(tmp_path, packed=False)
    assert given(rel.text(files), 79_999, Place(1, 0, 80_001)) == ([f"1:{39_999:0100d}"], 79_999)


CSV_ROWS = 3_000  # of a file


def csv_files(folder: Path) -> list[Path]:
    files = [folder / f"{number}.csv" for number in range(4)]
    for number, file in enumerate(files):
        rows = range(number * CSV_ROWS, (number + 1) * CSV_ROWS)
        file.write_text("n,text\n" + "".join(f'{n},"two\nlines"\n' for n in rows))
    return files


def test_csv_goes_on_with_the_file_that_it_was_in(tmp_path: Path) -> None:
    files, arrived, stopped = csv_files(tmp_path), threading.Event(), threading.Event()

    def wait(t: Any) -> int:
        if t.n == 2 * CSV_ROWS + 500:
            arrived.set()
        if arrived.is_set():
            stopped.wait(A_WHILE)
        return int(t.n)

    def numbers(*more: Path) -> rel.Topology:
        topology = rel.Topology("numbers")
        rows = topology.source(rel.csv([*files, *more], {"n": int, "text": str}), name="rows")
        rows.map(wait, name="wait", schema={"n": int}, lane="python").sink(rel.list(), name="out")
        return topology

    job = rel.start(numbers(), rel.JobConfig(threads=rel.Threads(model="dynamic", queue_records=256)))
    assert arrived.wait(PATIENCE)
    before = job.stop(tmp_path / "saved")["out"]
    stopped.set()
    saved = SnapshotFolder(rel.Snapshot(tmp_path / "saved")).manifest()
    said, position = saved.inputs["rows"].position, saved.positions["rows"]
    assert said == [position // CSV_ROWS, position // CSV_ROWS * CSV_ROWS]
    assert said[0] >= 2
    arrived.clear()
    after = rel.run(numbers(), restore=tmp_path / "saved")["out"]
    assert [t.n for t in before + after] == list(range(4 * CSV_ROWS))
    rest, again = given(rel.csv(files, {"n": int}), position, said=said)
    assert again == position % CSV_ROWS
    assert rest == list(range(position, 4 * CSV_ROWS))


@pytest.mark.parametrize("said", [None, [9, 0], [4, 1_000], [1, 5_000], [-1, 0], "text", [1]])
def test_a_file_that_csv_can_t_have_been_in_isnt_believed(tmp_path: Path, said: Any) -> None:
    assert given(rel.csv(csv_files(tmp_path), {"n": int}), 4_000, said=said) == (list(range(4_000, 12_000)), 4_000)


@pytest.mark.parametrize("position", [0, 1, 2_999, 3_000, 3_001, 6_000, 12_000])
def test_a_csv_source_says_its_file_at_each_position(tmp_path: Path, position: int) -> None:
    files = Files(4)
    for number in range(4):
        files.begin(number * CSV_ROWS)
    assert given(rel.csv(csv_files(tmp_path), {"n": int}), position, said=files.position(position)) == (
        list(range(position, 12_000)),
        position % CSV_ROWS if position < 12_000 else CSV_ROWS,
    )
