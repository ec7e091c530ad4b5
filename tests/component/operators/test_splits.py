"""Watermarks by split: files of a glob, and inputs of a union, lose nothing as late (A4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import rayelastic as rel
from rayelastic import testing
from rayelastic.job.job import Job
from tests.component.test_checkpoints import Losing

pytestmark = pytest.mark.edges

SERVERS, LINES, WINDOW = 3, 1000, 60
TIMES = [[line * 18 // 5 + server for line in range(LINES)] for server in range(SERVERS)]
WANTED = Counter(at // WINDOW * WINDOW for times in TIMES for at in times)
CONFIGS = {
    "default": rel.JobConfig(),
    "dynamic, 1 thread": rel.JobConfig(threads=1, threading="dynamic", elasticity="off"),
    "dynamic, 4 threads, full queues": rel.JobConfig(
        threads=4, threading="dynamic", elasticity="off", queue_records=8, run_records=4
    ),
    "dedicated": rel.JobConfig(threads=2, threading="dedicated", elasticity="off"),
    "2 PEs": rel.JobConfig(pes=2),
}
PATIENCE = 60.0


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Of three servers, one hour, sorted each."""
    paths = [tmp_path / f"server{server}.log" for server in range(SERVERS)]
    for path, times in zip(paths, TIMES, strict=True):
        path.write_text("".join(f"{at} GET\n" for at in times))
    return paths


def parse(t: Any) -> int:
    return int(t.line.split()[0])


def read(topology: rel.Topology, source: Any, name: str = "s") -> Any:
    return topology.source(name, source).map(f"parse_{name}", parse, schema={"at": int})


def glob(topology: rel.Topology, paths: list[Path]) -> Any:
    return read(topology, rel.text(paths))


def union(topology: rel.Topology, paths: list[Path]) -> Any:
    """Lines are united, and parsed behind that."""
    first, *others = [topology.source(path.stem, rel.text(path)) for path in paths]
    return first.union(*others).map("parse", parse, schema={"at": int})


def union_of_parsed(topology: rel.Topology, paths: list[Path]) -> Any:
    first, *others = [read(topology, rel.text(path), path.stem) for path in paths]
    return first.union(*others)


def union_of_globs(topology: rel.Topology, paths: list[Path]) -> Any:
    two = topology.source("two", rel.text(paths[:2]))
    return two.union(topology.source("one", rel.text(paths[2]))).filter("all", lambda t: True).map("p", parse, schema={"at": int})


def windows(stream: Any, lateness: int = 10) -> None:
    timed = stream.event_time("time", "at", lateness=lateness)
    counts = timed.window(seconds=WINDOW).aggregate("counts", n=rel.count())
    counts.sink("out", rel.list())
    counts.late().sink("late", rel.count())


def check(result: Any) -> None:
    assert result["late"] == 0
    assert Counter({t.start: t.n for t in result["out"]}) == WANTED


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("declare", [glob, union, union_of_parsed, union_of_globs])
def test_logs_of_three_servers_lose_no_line(
    logs: list[Path], declare: Callable[[rel.Topology, list[Path]], Any], config: rel.JobConfig
) -> None:
    topology = rel.Topology("logs")
    windows(declare(topology, logs))
    check(rel.run(topology, config))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_of_each_format_are_splits(tmp_path: Path, kind: str) -> None:
    for server, times in enumerate(TIMES):
        path, table = tmp_path / f"{server}.{kind}", pa.table({"at": times})
        if kind == "csv":
            csv.write_csv(table, path)
        elif kind == "parquet":
            parquet.write_table(table, path)
        else:
            path.write_text("".join(f'{{"at": {at}}}\n' for at in times))
    (tmp_path / "z_empty.csv").write_text("at\n")
    read = {"csv": rel.csv, "jsonl": rel.json, "parquet": rel.parquet}[kind]
    topology = rel.Topology("files")
    windows(topology.source("s", read(sorted(tmp_path.glob(f"*.{kind}")), schema={"at": int})))
    check(rel.run(topology))


def test_empty_files_hold_nothing_back(tmp_path: Path) -> None:
    for name, text in (("a", ""), ("b", "1 x\n61 x\n"), ("c", ""), ("d", "2 x\n200 x\n"), ("e", "")):
        (tmp_path / name).write_text(text)
    topology = rel.Topology("empty")
    windows(glob(topology, sorted(tmp_path.iterdir())))
    assert [tuple(t) for t in rel.run(topology)["out"]] == [(0, 60, 2), (60, 120, 1), (180, 240, 1)]


def test_windows_close_while_the_last_file_is_read(tmp_path: Path) -> None:
    """Nothing is kept until the end: what the other files had is complete by then."""
    (tmp_path / "a").write_text("0 x\n500 x\n")
    rows = testing.Gate()
    topology = rel.Topology("closing")
    first = topology.source("first", rel.text(tmp_path / "a")).map("parse", parse, schema={"at": int})
    second = topology.source("second", testing.script([(1,), (600,), rows, (700,)], {"at": int}))
    timed = first.union(second).event_time("time", "at")
    counts = timed.window(seconds=WINDOW).aggregate("counts", n=rel.count())
    counts.sink("see", rel.call(lambda t: rows.open() if t.start == 480 else None))  # it is closed by the 600
    counts.sink("out", rel.count())
    assert rel.run(topology)["out"] == 4


def test_an_idle_input_holds_nothing_back() -> None:
    gate = testing.Gate()
    topology = rel.Topology("idle")
    silent = topology.source("silent", testing.script([gate], {"at": int}))
    busy = topology.source("busy", testing.script([(1,), (100,), gate], {"at": int}))
    timed = silent.union(busy).event_time("time", "at", idle_after=0.1)
    counts = timed.window(seconds=10).aggregate("counts", n=rel.count())
    counts.sink("see", rel.call(lambda t: gate.open()))  # until then nothing more comes
    counts.sink("out", rel.list())
    assert [tuple(t) for t in rel.run(topology)["out"]] == [(0, 10, 1), (100, 110, 1)]


def test_a_job_goes_on_from_a_snapshot_in_the_middle_of_a_file(logs: list[Path], tmp_path: Path) -> None:
    """Twice: the files that have ended stay so, and the others still have their turn."""
    snapshot: Any = None
    for number, last in enumerate((700, 1900, None)):
        stop = testing.Gate()
        seen: list[int] = []

        def see(t: Any, seen: list[int] = seen, last: int | None = last) -> None:
            seen.append(1)
            if last is not None and len(seen) >= last:
                stop.open()  # noqa: B023  (of this round)

        topology = rel.Topology("again")
        parsed = glob(topology, logs).throttle("slow", per_second=4000 if last is not None else 1e9)
        parsed.sink("see", rel.call(see))
        windows(parsed)
        job = rel.start(topology, restore=snapshot)
        if last is None:
            left = [*left, *job.wait(PATIENCE)["out"]]  # noqa: F821  (from the round before)
            break
        assert _opened(stop, job)
        snapshot = rel.Snapshot(tmp_path / f"saved{number}", key=b"x" * 32)
        result = job.stop(snapshot)
        left = [*(left if number else []), *result["out"]]
    assert Counter({t.start: t.n for t in left}) == WANTED


def _opened(gate: testing.Gate, job: Job) -> bool:
    while not gate.is_open:
        assert not job.status.state.is_final
        job.pause(0.01)
    return True


@pytest.mark.parametrize("cut", [0, 400, 900])
def test_a_union_recovers_from_a_loss(tmp_path: Path, cut: int) -> None:
    gate = testing.Gate()
    rows = [[(at,) for at in times] for times in TIMES]
    topology = rel.Topology("lost")
    sources = [testing.script([*rows[0][:cut], gate, *rows[0][cut:]], {"at": int}), *map(_rows, rows[1:])]
    first, *others = [topology.source(f"s{number}", source) for number, source in enumerate(sources)]
    windows(first.union(*others))
    pins = {"s0": 0, "s1": 1, "s2": 1, "time": 2}
    config = rel.JobConfig(pins=pins, checkpoint=rel.Checkpoint(tmp_path, every=600.0), elasticity="off")
    losing = Losing(topology, config)
    try:
        assert gate.wait_reached(PATIENCE)
        losing.take()
        losing.lose(gate)
        check(losing.job.wait(PATIENCE))
    finally:
        gate.open()
        losing.job.close()


def _rows(rows: list[Any]) -> Any:
    return rel.rows(rows, schema={"at": int})
