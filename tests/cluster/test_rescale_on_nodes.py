"""Regions over three hosts with addresses of their own: changed at random, by themselves, while a host dies (R1)."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.test_nodes import load_netns

netns = load_netns()
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.netns,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
]
ROOT = Path(__file__).parents[2]
TIMEOUT = 400.0  # seconds
HOSTS = [f"rel-node{number}" for number in range(1, 4)]  # the head, 0, has the driver alone
DETECTION = {  # of a host that died: in 1.5 seconds; by default Ray takes 15
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "500",
    "RAY_health_check_failure_threshold": "3",
}
SETTLED = 10.0  # seconds until a change has been ended or undone (R11)


@contextmanager
def hosts() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PYTHONPATH": str(ROOT), **DETECTION}.items():  # for the raylets, and so for all workers
            patch.setenv(name, value)
        with netns.Nodes(1 + len(HOSTS), cpus=1, head_cpus=0) as made:  # one CPU each: replicas need them all
            yield made


def told(nodes: Any, *arguments: str) -> dict[str, Any]:
    done = nodes.run(0, [sys.executable, "-m", "tests.cluster.rescale_on_nodes", *arguments], timeout=TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def test_random_rescales_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    with hosts() as nodes:
        report = told(nodes, str(tmp_path), "random", "--seconds", "60")
    assert report["changes"] >= 10, report
    assert report["nodes"] == HOSTS, report


def test_vwap_moves_over_the_hosts(tmp_path: Path) -> None:
    with hosts() as nodes:
        report = told(nodes, str(tmp_path), "vwap")
    assert report["replicas"] == [2, 3, 1], report
    assert report["nodes"] == HOSTS, report
    assert (report["bargains"], report["wrong"]) == (report["expected"], []), report


@pytest.mark.parametrize("part", ["by-itself", "vwap-by-itself"])
def test_a_job_follows_its_load_over_the_hosts_by_itself(part: str, tmp_path: Path) -> None:
    """Replicas go where free CPUs are: three busy ones end on three hosts of one CPU each."""
    with hosts() as nodes:
        report = told(nodes, str(tmp_path), part)
    assert report["replicas"][:3] == [1, 2, 3], report
    assert report["replicas"][-1] == 1, report
    assert report["busy"] == HOSTS, report
    assert (report.get("bargains"), report.get("wrong", [])) == (report.get("expected"), []), report


@pytest.mark.parametrize(("step", "occurrence"), [("attach", 1), ("hold", 1), ("copy", 1), ("commit", 1), ("end", 1)])
def test_a_host_dies_during_a_change(step: str, occurrence: int, tmp_path: Path) -> None:
    with hosts() as nodes, ThreadPoolExecutor(1) as pool:
        running = pool.submit(told, nodes, str(tmp_path), "lose-node", step, str(occurrence))
        waiting = threading.Event()
        while not (tmp_path / "at").exists() and not running.done():
            waiting.wait(0.05)
        if not running.done():
            nodes.kill(int((tmp_path / "at").read_text().removeprefix("rel-node")))
        (tmp_path / "go").touch()
        report = running.result(TIMEOUT)
    assert report["seconds"] < SETTLED, report
    if "failure" in report:
        assert "pe1" in report["failure"], report
        assert step in ("commit", "end"), report
    else:
        assert report["replicas"] == (2 if report["outcome"] == "completed" else 1), report
