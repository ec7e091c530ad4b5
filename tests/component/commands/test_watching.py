"""What notebooks show of topologies, jobs and results; a watch follows a running job from a thread of its own."""

from __future__ import annotations

import math
import threading
import xml.etree.ElementTree as ET

import pytest

import rayelastic as rel
from rayelastic.errors import ConfigError, SetupError
from rayelastic.job import start
from rayelastic.watching import Reading, Watch
from tests.raising import raises


def numbers(name: str = "numbers", sink: object | None = None) -> rel.Topology:
    topology = rel.Topology(name)
    stream = topology.source(rel.sequence(1000), name="numbers")
    stream.map(lambda t: t.value * 2, name="double", schema={"value": int}).sink(sink or rel.list(), name="out")
    return topology


def test_a_topology_shows_its_graph_and_lanes() -> None:
    shown = numbers()._repr_html_()
    root = ET.fromstring(shown)
    text = "".join(root.itertext())
    assert all(word in text for word in ("numbers", "double", "out", "compiled", "built-in", "r0"))


def test_a_topology_that_cant_run_yet_says_why() -> None:
    topology = rel.Topology("unfinished")
    topology.source(rel.sequence(10), name="numbers")
    assert "no-sink" in topology._repr_html_()


def test_results_show_their_first_rows() -> None:
    shown = rel.run(numbers())._repr_html_()
    assert "1,000 rows" in shown
    assert shown.count("<tr>") == 11
    assert "<th>value</th>" in shown
    table = rel.run(numbers(sink=rel.arrow()))._repr_html_()
    assert table.count("<tr>") == 11
    assert "<b>out</b>" in rel.run(numbers(sink=rel.count()))._repr_html_()


def test_a_watch_updates_until_the_job_ends() -> None:
    go_on, shown, changed = threading.Event(), list[str](), threading.Condition()

    def update(html: str) -> None:
        with changed:
            shown.append(html)
            changed.notify_all()

    def show(html: str) -> object:
        update(html)
        return update

    job = start(numbers(sink=rel.call(lambda t: go_on.wait())))
    watch = Watch(lambda: Reading(job.name, job.status, job.metrics(), job.plan()), show, period=0.05)  # type: ignore[arg-type]
    try:
        with changed:
            assert changed.wait_for(lambda: len(shown) >= 3, 30)
        go_on.set()
        job.pause(30)
        with changed:
            assert changed.wait_for(lambda: "finished" in shown[-1], 30)
        for html in shown:
            ET.fromstring(html)
        assert "1 thread" in shown[0]
        assert "/s" in shown[1]
    finally:
        go_on.set()
        watch.stop()
        job.close()


def test_a_job_shows_its_failure() -> None:
    topology = rel.Topology("fails")
    topology.source(rel.sequence(10), name="numbers").map(
        lambda t: 1 // (t.value - 5), name="inverse", schema={"value": int}
    ).sink(rel.count(), name="out")
    job = start(topology)
    job.pause(30)
    assert "division" in job._repr_html_()
    job.close()


@pytest.mark.edges
def test_outside_a_notebook_a_watch_is_refused_at_once() -> None:
    job = start(numbers())
    with raises(SetupError, "setup-failed", "job.watch()", "rayelastic top"):
        job.watch()
    job.wait()


@pytest.mark.edges
@pytest.mark.parametrize("period", [0, -1.0, math.nan, math.inf])
def test_a_watch_without_a_period_is_refused(period: float) -> None:
    with raises(ConfigError, "invalid-setting", "period="):
        Watch(lambda: pytest.fail("it read the job"), lambda _: lambda _: None, period)
