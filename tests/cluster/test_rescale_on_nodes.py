"""Regions over three hosts with addresses of their own: changed at random, by themselves, while a host dies (R1)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.killing import Victim
from tests.cluster.kills import DETECTION, on_hosts
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
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]  # Ray may have had words of its own
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def test_random_rescales_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    with hosts() as nodes:
        report = told(nodes, str(tmp_path), "random", "--seconds", "60")
    assert report["changes"] >= 10, report
    assert report["nodes"] == HOSTS, report


def test_vwap_moves_over_the_hosts(tmp_path: Path) -> None:
    with hosts() as nodes:
        report = told(nodes, str(tmp_path), "vwap")
    assert report["replicas"] == [2, 2, 3, 3, 1, 1], report
    assert report["nodes"] == HOSTS, report
    assert (report["bargains"], report["wrong"]) == (report["expected"], []), report


@pytest.mark.parametrize("part", ["by-itself", "vwap-by-itself"])
def test_a_job_follows_its_load_over_the_hosts_by_itself(part: str, tmp_path: Path) -> None:
    """Replicas go where free CPUs are: three busy ones end on three hosts of one CPU each."""
    with hosts() as nodes:
        report = told(nodes, str(tmp_path), part)
    assert (report.get("bargains"), report.get("wrong", [])) == (report.get("expected"), []), report
    assert report["busy"] == HOSTS, report
    assert report["replicas"][-1] == 1, report
    # One more at a time, as the load grows; if the machine gets slower at the same time, one too many at the last.
    assert report["replicas"][:3] in ([1, 2, 3], [1, 2, 4]), report


@pytest.mark.parametrize("victim", [Victim.NODE_OF_NEW, Victim.NODE_OF_GIVER])
def test_a_host_dies_during_a_change(victim: Victim, tmp_path: Path) -> None:
    """At some steps, once; at all of them twenty times: `./dev kills`."""
    rows = list(on_hosts([victim], ["attach", "hold", "copy", "commit", "end"], 1, tmp_path))
    assert [row.wrong for row in rows if row.wrong] == []
    assert sum(row.kills for row in rows) == len(rows) >= 4
