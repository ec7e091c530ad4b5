"""Hosts with disks of their own are switched off under a default job: each row counts once, or a clear error."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.node_loss import problem_of
from tests.cluster.test_nodes import load_netns

netns = load_netns()
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.netns,
    pytest.mark.nightly,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
]
MODULE = [sys.executable, "-m", "tests.cluster.node_loss"]
PAD = 20_000  # bytes of state for each key, 2 MB in all
QUICK = {"initial_delay_ms": 2000, "period_ms": 1000, "timeout_ms": 1500, "failure_threshold": 3}  # the guide's


@pytest.fixture(autouse=True)
def quick_health_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUICK.items():
        monkeypatch.setenv(f"RAY_health_check_{name}", str(value))


class Watched:
    """A job that another host submits, and its states."""

    def __init__(self, nodes: Any, submitter: int, folder: Path, rows: int) -> None:
        done = nodes.run(submitter, [*MODULE, "submit", str(folder), str(rows), str(PAD), "3000"], timeout=120)
        assert done.returncode == 0, done.stderr
        self._process = nodes.start(0, [*MODULE, "watch"])

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return its first state from now on that is wanted."""
        for line in self._process.stdout:
            state: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if state.get("state") in ("finished", "failed", "running") and wanted(state):
                return state
            assert state.get("state") not in ("finished", "failed"), state
        raise AssertionError("it ended")


def has_copy(state: dict[str, Any]) -> bool:
    return bool(state["taken"] and state["copied"] and not state["one_copy"])


@pytest.mark.guarantee(
    source="`rel.sequence`", sink="Parquet", lost="a node with its disk, the coordinator's among them", rows="each once"
)
def test_the_coordinators_host_is_switched_off_with_its_disk(tmp_path: Path) -> None:
    rows = 120_000
    with netns.Nodes(3, cpus=2) as nodes:
        job = Watched(nodes, 1, tmp_path, rows)
        state = job.until(has_copy)
        assert state["nodes"] == ["rel-node1"], "the only process of the job is beside its coordinator"
        nodes.cut(1)  # so that nobody hears it end: a power cut says no goodbye
        nodes.kill(1)
        state = job.until(lambda state: state["state"] == "running" and state["restarts"] > 0)
        assert state["nodes"] != ["rel-node1"]
        nodes.revive(1)  # with an empty disk
        state = job.until(lambda state: state["state"] == "finished")
        assert state["restarts"] <= 2, "it may restart once on a host that Ray doesn't know to be gone yet"
        assert problem_of(tmp_path, rows) == ""
        for number in range(3):
            left = nodes.run(number, ["sh", "-c", "find ~/.cache/rayelastic/checkpoints -type f"]).stdout
            assert left == "", "copies are removed as the originals are"


def test_where_both_copies_are_gone_the_job_fails_at_once(tmp_path: Path) -> None:
    with netns.Nodes(3, cpus=2, head_cpus=0) as nodes:  # the coordinator on the head, processes on the others
        job = Watched(nodes, 0, tmp_path, 10_000_000)
        job.until(has_copy)
        for number in (1, 2):
            nodes.cut(number)
            nodes.kill(number)
        threading.Thread(target=nodes.revive, args=(2,), daemon=True).start()  # with an empty disk
        state = job.until(lambda state: state["state"] == "failed")
        assert state["code"] == "checkpoints-gone", state
        assert "no checkpoint can be restored: " in state["problem"]
        assert "Checkpoint(location)" in state["problem"]
        assert state["restarts"] <= 3, state
