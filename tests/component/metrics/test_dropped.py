"""Tuples that go nowhere are counted and told, with the reason: in the metrics, by `rayelastic top` and `run`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.job import Job, start
from rayelastic.progress import remarks
from rayelastic.runtime.watch.metric_table import MetricsReader
from rayelastic.top import picture, view

LATE = 29  # of the events below: one of ten, but for the first


class Event(NamedTuple):
    key: str
    at: int


class Quote(NamedTuple):
    key: str
    at: int


EVENTS = [Event("a", at if at % 10 else at - 500) for at in range(1000, 1300)]
# One wrong time in the future: all that come behind it are late.
ONE_WRONG = [Event("a", 100_000 if at == 1010 else at) for at in range(1000, 1100)]


def timed(topology: rel.Topology, events: list[Event], name: str = "events") -> Any:
    return topology.source(rel.rows(events, schema=Event), name=name).event_time("at", name=f"time_{name}")


def windows(stream: Any) -> Any:
    return stream.window(seconds=10).aggregate(name="step", n=rel.count())


def sessions(stream: Any) -> Any:
    return stream.key_by("key").session(gap=5).aggregate(name="step", n=rel.count())


@pytest.mark.parametrize("declare", [windows, sessions])
@pytest.mark.parametrize("pes", [1, 2])
def test_late_tuples_are_counted_where_nobody_takes_them(declare: Any, pes: int) -> None:
    topology = rel.Topology("late")
    declare(timed(topology, EVENTS)).sink(rel.list(), name="out")
    metrics = rel.run(topology, rel.JobConfig(pes=pes)).metrics
    assert metrics.operator("step").dropped == {"late": LATE}


def test_late_tuples_that_are_taken_are_not_dropped() -> None:
    topology = rel.Topology("taken")
    made = windows(timed(topology, EVENTS))
    made.sink(rel.list(), name="out")
    made.late().sink(rel.list(), name="late")
    result = rel.run(topology)
    assert result.metrics.operator("step").dropped == {}
    assert len(result["late"]) == LATE


PROGRAM = """
import rayelastic as rel
from tests.component.metrics.test_dropped import ONE_WRONG, Event, timed, windows

def build():
    topology = rel.Topology("one_wrong")
    windows(timed(topology, ONE_WRONG)).sink(rel.count(), name="out")
    return topology
"""


def test_run_says_how_many_were_late(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "one_wrong.py"
    program.write_text(PROGRAM)
    assert main(["run", str(program), "--quiet"]) == 0
    assert caplog.text.count("operator 'step': 89 tuples late and dropped") == 1
    assert "late" not in capsys.readouterr().err


@pytest.mark.edges
@pytest.mark.parametrize("pes", [1, 2])
def test_dropped_late_tuples_are_logged_once_and_stand_in_the_result(
    pes: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A4: nobody takes them, and `rel.run` says so."""
    topology = rel.Topology("late")
    windows(timed(topology, EVENTS)).sink(rel.list(), name="out")
    job = start(topology, rel.JobConfig(pes=pes))
    result = job.wait()
    assert job.wait() is result
    logged = [one.getMessage() for one in caplog.records if one.name == "rayelastic.runtime.watch.dropped"]
    assert logged == [
        (
            f"job 'late', operator 'step': {LATE} tuples late and dropped: "
            "they came behind the watermark, and nobody takes .late()"
        )
    ]
    assert result.late == {"step": LATE}
    assert f"late={{'step': {LATE}}}" in repr(result)


@pytest.mark.edges
def test_nothing_is_logged_where_late_tuples_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    topology = rel.Topology("taken")
    made = windows(timed(topology, EVENTS))
    made.sink(rel.list(), name="out")
    made.late().sink(rel.list(), name="late")
    assert rel.run(topology).late == {}
    assert "late" not in caplog.text.replace('"job": "late"', "")


def finished(on_error: Any) -> Job:
    topology = rel.Topology("skips")
    numbers = topology.source(rel.sequence(100), name="numbers")
    made = numbers.map(lambda t: 6 // (t.value % 5), name="step", schema={"value": int}, on_error=on_error)
    made.map(lambda t: (t.value + 2**62) * 4 // 8, name="big", schema={"value": int}).sink(rel.count(), name="out")
    job = start(topology)
    job.wait()
    return job


def test_lines_that_are_not_utf_8_are_counted(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_bytes("gr\u00fcn\nrot".encode("latin-1") + b"\r\xff\r\n\xe2\x82\xac\nlast\xe9")
    topology = rel.Topology("repaired")
    topology.source(rel.text(str(tmp_path / "lines.txt")), name="lines").sink(rel.list(), name="out")
    job = start(topology)
    rows = job.wait()["out"]
    assert [row.line for row in rows] == ["gr\ufffdn", "rot", "\ufffd", "\u20ac", "last\ufffd"]
    metrics = job.metrics()
    assert metrics.operator("lines").lines_repaired == 3
    assert remarks(metrics) == ["lines: 3 lines with bytes that aren't UTF-8, which became U+FFFD: set encoding="]
    readings = {(r.metric, r.labels[2:]): r.value for r in MetricsReader().read(metrics, job.plan())}
    assert readings["rayelastic_operator_lines_repaired_total", ("lines",)] == 3


def test_top_and_prometheus_show_them() -> None:
    job = finished("skip")
    seen = view(job, None)
    console = Console(width=200, height=50, file=io.StringIO(), record=True)
    console.print(picture(seen, 200, 50))
    shown = console.export_text()
    assert "dropped" in shown
    assert "step: 20 tuples skipped: its function failed on them" in shown
    assert "big: 80 tuples left to Python by compiled code" in shown
    readings = {(r.metric, r.labels[2:]): r.value for r in MetricsReader().read(seen.metrics, seen.plan)}
    assert readings["rayelastic_operator_tuples_dropped_total", ("step", "failed")] == 20
    assert readings["rayelastic_operator_tuples_answered_by_python_total", ("big",)] == 80
