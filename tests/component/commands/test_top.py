"""`rayelastic top` at two sizes of terminal, of a real job."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator

import pytest
from rich.console import Console

import rayelastic as rel
from rayelastic.job import Job, start
from rayelastic.top import picture, top, view

OPERATORS = 30


@pytest.fixture
def job() -> Iterator[Job]:
    go_on = threading.Event()
    topology = rel.Topology("many")
    stream = topology.source(rel.sequence(10_000_000), name="numbers")
    for number in range(OPERATORS):
        stream = stream.map(lambda t: t.value + 1, name=f"step_{number}", schema={"value": int})
    stream.sink(rel.call(lambda t: go_on.wait()), name="out")
    job = start(topology, rel.JobConfig(pes={"out": 1}, elasticity=rel.Elasticity(thread_period=0.2)))
    yield job
    go_on.set()
    job.close()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_the_picture_fits_the_terminal(job: Job, width: int, height: int) -> None:
    first = view(job, None)
    job.pause(0.5)
    seen = view(job, first.metrics)
    console = Console(width=width, height=height, file=io.StringIO(), record=True)
    console.print(picture(seen, width, height))
    shown = console.export_text().rstrip("\n").split("\n")
    assert len(shown) <= height
    assert all(len(line) <= width for line in shown)
    text = "\n".join(shown)
    assert "many  running" in text
    assert "threads" in text
    assert "MiB" in text
    assert "bottleneck: " in text
    operators = sum(line.startswith(("step_", "numbers", "out ")) for line in shown)
    if height < OPERATORS:
        assert f"and {OPERATORS + 2 - operators} cheaper ones" in text
    else:
        assert operators == OPERATORS + 2
        assert "link step_29->out at pe0" in text
        row = next(line for line in shown if line.startswith("step_11 "))
        assert re.match(r"step_11 {1,5}pe0 ", row)  # the eye follows a row: no gap behind short names


def test_without_a_terminal_it_prints_until_the_job_ends() -> None:
    topology = rel.Topology("short")
    topology.source(rel.sequence(1000), name="numbers").sink(rel.count(), name="out")
    job = start(topology)
    written = io.StringIO()
    top(job, Console(file=written, width=80, height=24))
    job.close()
    assert "short  finished" in written.getvalue()
    assert "\x1b" not in written.getvalue()
