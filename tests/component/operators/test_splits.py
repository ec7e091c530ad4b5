"""Watermarks by split: files of a glob, and inputs of a union, lose nothing as late (A4)."""

from __future__ import annotations

import datetime as dt
import itertools
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError
from rayelastic.job.job import Job
from tests.component.checkpoint.test_checkpoints import Losing
from tests.raising import raises
from tests.waiting import wait_until

pytestmark = pytest.mark.edges

SERVERS, LINES, WINDOW = 3, 1000, 60
TIMES = [[line * 18 // 5 + server for line in range(LINES)] for server in range(SERVERS)]
WANTED = Counter(at // WINDOW * WINDOW for times in TIMES for at in times)
CONFIGS = {
    "default": rel.JobConfig(),
    "dynamic, 1 thread": rel.JobConfig(threads=rel.Threads(count=1, model="dynamic"), elasticity="off"),
    "dynamic, 4 threads, full queues": rel.JobConfig(
        threads=rel.Threads(count=4, model="dynamic", queue_records=8, run_records=4), elasticity="off"
    ),
    "dedicated": rel.JobConfig(threads=rel.Threads(count=2, model="dedicated"), elasticity="off"),
    "2 PEs": rel.JobConfig(pes=2),
}
PATIENCE = 60.0
KEY = b"x" * 32


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
    return topology.source(source, name=name).map(parse, name=f"parse_{name}", schema={"at": int})


def glob(topology: rel.Topology, paths: list[Path]) -> Any:
    return read(topology, rel.text(paths))


def union(topology: rel.Topology, paths: list[Path]) -> Any:
    """Lines are united, and parsed behind that."""
    first, *others = [topology.source(rel.text(path), name=path.stem) for path in paths]
    return first.union(*others).map(parse, name="parse", schema={"at": int})


def union_of_parsed(topology: rel.Topology, paths: list[Path]) -> Any:
    first, *others = [read(topology, rel.text(path), path.stem) for path in paths]
    return first.union(*others)


def union_of_globs(topology: rel.Topology, paths: list[Path]) -> Any:
    two = topology.source(rel.text(paths[:2]), name="two")
    return (
        two.union(topology.source(rel.text(paths[2]), name="one"))
        .filter(lambda t: True, name="all")
        .map(parse, name="p", schema={"at": int})
    )


def windows(stream: Any, lateness: int = 10) -> None:
    timed = stream.event_time("at", name="time", lateness=lateness)
    counts = timed.window(seconds=WINDOW).aggregate(name="counts", n=rel.count())
    counts.sink(rel.list(), name="out")
    counts.late().sink(rel.count(), name="late")


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
    readers: dict[str, Callable[..., Any]] = {"csv": rel.csv, "jsonl": rel.json, "parquet": rel.parquet}
    topology = rel.Topology("files")
    windows(topology.source(readers[kind](sorted(tmp_path.glob(f"*.{kind}")), schema={"at": int}), name="s"))
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
    first = topology.source(rel.text(tmp_path / "a"), name="first").map(parse, name="parse", schema={"at": int})
    second = topology.source(testing.script([(1,), (600,), rows, (700,)], {"at": int}), name="second")
    timed = first.union(second).event_time("at", name="time")
    counts = timed.window(seconds=WINDOW).aggregate(name="counts", n=rel.count())
    counts.sink(rel.call(lambda t: rows.open() if t.start == 480 else None), name="see")  # it is closed by the 600
    counts.sink(rel.count(), name="out")
    assert rel.run(topology)["out"] == 4


def test_an_idle_input_holds_nothing_back() -> None:
    gate = testing.Gate()
    topology = rel.Topology("idle")
    silent = topology.source(testing.script([gate], {"at": int}), name="silent")
    busy = topology.source(testing.script([(1,), (100,), gate], {"at": int}), name="busy")
    timed = silent.union(busy).event_time("at", name="time", idle_after=0.1)
    counts = timed.window(seconds=10).aggregate(name="counts", n=rel.count())
    counts.sink(rel.call(lambda t: gate.open()), name="see")  # until then nothing more comes
    counts.sink(rel.list(), name="out")
    assert [tuple(t) for t in rel.run(topology)["out"]] == [(0, 10, 1), (100, 110, 1)]


def test_a_job_goes_on_from_a_snapshot_in_the_middle_of_a_file(logs: list[Path], tmp_path: Path) -> None:
    """Twice: the files that have ended stay so, and the others still have their turn."""
    found: list[Any] = []
    first = _stopped(logs, 700, None, rel.Snapshot(tmp_path / "first", key=KEY), found)
    second = _stopped(logs, 1200, first, rel.Snapshot(tmp_path / "second", key=KEY), found)
    topology = rel.Topology("again")
    parsed = glob(topology, logs).throttle(name="slow", per_second=1e9)
    parsed.sink(rel.count(), name="see")
    windows(parsed)
    found += rel.run(topology, restore=second)["out"]
    assert Counter({t.start: t.n for t in found}) == WANTED


def _stopped(logs: list[Path], lines: int, before: Any, snapshot: rel.Snapshot, found: list[Any]) -> rel.Snapshot:
    """Stop the job behind so many lines, at least."""
    enough, seen = testing.Gate(), itertools.count(1)
    topology = rel.Topology("again")
    parsed = glob(topology, logs).throttle(name="slow", per_second=4000)
    parsed.sink(rel.call(lambda _: enough.open() if next(seen) == lines else None), name="see")
    windows(parsed)
    job = rel.start(topology, restore=before)
    try:
        assert _opened(enough, job)
        found += job.stop(snapshot)["out"]
    finally:
        job.close()
    return snapshot


def _opened(gate: testing.Gate, job: Job) -> bool:
    wait_until(job, lambda: gate.is_open)
    return True


@pytest.mark.parametrize("cut", [0, 400, 900])
def test_a_union_recovers_from_a_loss(tmp_path: Path, cut: int) -> None:
    gate = testing.Gate()
    rows = [[(at,) for at in times] for times in TIMES]
    topology = rel.Topology("lost")
    sources = [testing.script([*rows[0][:cut], gate, *rows[0][cut:]], {"at": int}), *map(_rows, rows[1:])]
    first, *others = [topology.source(source, name=f"s{number}") for number, source in enumerate(sources)]
    windows(first.union(*others))
    pins = {"s0": 0, "s1": 1, "s2": 1, "time": 2}
    config = rel.JobConfig(pes=pins, checkpoint=rel.Checkpoint(tmp_path, every=600.0), elasticity="off")
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


@pytest.mark.parametrize("replicas", [1, 3])
def test_replicas_that_take_turns_keep_splits_apart(logs: list[Path], replicas: int) -> None:
    topology = rel.Topology("turns")
    windows(glob(topology, logs))
    job = rel.start(topology, rel.JobConfig(regions="manual", replicas={"parse_s": replicas}, elasticity="off"))
    try:
        assert job.plan().region_of("parse_s").replicas == replicas
        check(job.wait(PATIENCE))
    finally:
        job.close()


def test_partitions_of_a_polled_source_are_splits() -> None:
    seen = threading.Event()

    class Servers:
        """In turn, in large pieces: the last one is read when the others are an hour ahead."""

        def partitions(self) -> list[str]:
            return [f"server{server}" for server in range(SERVERS)]

        def open(self, partition: str, position: Any) -> Any:
            return Server(TIMES[int(partition[-1])], position or 0)

    class Server:
        def __init__(self, times: list[int], position: int) -> None:
            self.times, self.position = times, position

        def poll(self) -> list[tuple[int]] | None:
            first, self.position = self.position, min(len(self.times), self.position + 400)
            return [(at,) for at in self.times[first : self.position]] or (None if seen.is_set() else [])

    topology = rel.Topology("polled")
    windows(topology.source(rel.polled(Servers(), {"at": int}), name="s"))
    job = rel.start(topology)
    try:
        wait_until(
            job, lambda: job.metrics().operator("out").tuples_in != 0
        )  # windows close while no partition has ended
        seen.set()
        check(job.wait(PATIENCE))
    finally:
        seen.set()
        job.close()


def test_a_clock_in_the_future_makes_no_other_tuple_late(caplog: pytest.LogCaptureFixture) -> None:
    """One tuple of 551 is a thousand years ahead; nothing takes it."""
    rows = [(at if at != 50 else 32_000_000_000,) for at in range(551)]
    topology = rel.Topology("wrong_clock")
    timed = topology.source(rel.rows(rows, {"at": int}), name="s").event_time("at", name="time", ahead=60)
    counts = timed.window(seconds=1000).aggregate(name="counts", n=rel.count())
    counts.sink(rel.list(), name="out")
    result = rel.run(topology)
    assert [tuple(t) for t in result["out"]] == [(0, 1000, 550)]
    assert result.metrics.operator("time").dropped == {"ahead": 1}
    assert "operator 'time': 1 tuple dropped: too far ahead of the clock" in caplog.text


def test_tuples_ahead_of_the_clock_can_be_taken(caplog: pytest.LogCaptureFixture) -> None:
    topology = rel.Topology("wrong_clock")
    rows = topology.source(rel.rows([(5,), (32_000_000_000,), (7,)], {"at": int}), name="s")
    timed = rows.event_time("at", ahead=dt.timedelta(minutes=1))
    timed.sink(rel.list(), name="out")
    timed.side("ahead").sink(rel.list(), name="ahead")
    result = rel.run(topology)
    assert [t.at for t in result["out"]] == [5, 7]
    assert [t.at for t in result["ahead"]] == [32_000_000_000]
    assert "ahead of the clock" not in caplog.text


@pytest.mark.parametrize(
    ("ahead", "code"),
    [(-1, "out-of-range"), (float("nan"), "wrong-type"), ("soon", "wrong-type"), (True, "wrong-type")],
)
def test_a_bound_that_is_none_is_rejected(ahead: Any, code: str) -> None:
    stream = rel.Topology("wrong").source(rel.rows([(5,)], {"at": int}), name="s")
    with raises(GraphError, code, operator="time"):
        stream.event_time("at", name="time", ahead=ahead)


def test_explain_says_where_there_are_several_watermarks(logs: list[Path]) -> None:
    topology = rel.Topology("several")
    windows(union(topology, logs))
    assert "a watermark for each file, partition or input" in " ".join(topology.explain().split())
    topology = rel.Topology("one")
    windows(glob(topology, logs[:1]))
    assert "a watermark for each" not in " ".join(topology.explain().split())


def test_behind_channels_a_stream_is_one_split(logs: list[Path]) -> None:
    """Its tuples come in any order there, so nobody knows of which file they are."""
    topology = rel.Topology("channels")
    windows(read_in_channels(topology, logs))
    assert "a watermark for each" not in " ".join(topology.explain().split())


def test_a_branch_that_is_silent_holds_nothing_back() -> None:
    """Branches of one source are no splits."""
    gate = testing.Gate()
    topology = rel.Topology("branches")
    numbers = topology.source(testing.script([(1,), (100,), gate, (101,)], {"at": int}), name="s")
    parts = numbers.split(name="parts", rare=lambda t: t.at < 0)
    counts = parts.rare.union(parts.rest).event_time("at").window(seconds=10).aggregate(n=rel.count())
    counts.sink(rel.call(lambda t: gate.open()), name="see")
    counts.sink(rel.list(), name="out")
    assert [tuple(t) for t in rel.run(topology)["out"]] == [(0, 10, 1), (100, 110, 2)]


def read_in_channels(topology: rel.Topology, paths: list[Path]) -> Any:
    lines = topology.source(rel.text(paths), name="s")
    return lines.parallel(2, lambda s: s.map(parse, name="parse", schema={"at": int}), name="work")
