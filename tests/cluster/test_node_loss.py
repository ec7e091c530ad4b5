"""Hosts with disks of their own are switched off under a default job: each row counts once, or a clear error."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from tests.cluster.node_loss import problem_of
from tests.cluster.node_losses import Losses, Watched, has_copy, netns
from tests.postgres import needs_postgres

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.netns,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
]
MOMENTS = 5  # of the nightly test


def test_a_host_is_switched_off_under_a_default_job(tmp_path: Path) -> None:
    """That of its coordinator and of its only process; the other one has the second copy."""
    rows = 45_000
    with netns.Nodes(2, cpus=2, quick=True) as nodes:
        job = Watched(nodes, 1, tmp_path, rows)
        assert job.until(has_copy)["nodes"] == ["rel-node1"]
        nodes.cut(1)
        nodes.kill(1)
        state = job.until(lambda state: state["state"] == "finished")
        assert state["nodes"] == ["rel-node0"]
        assert 1 <= state["restarts"] <= 2
        assert problem_of(tmp_path, rows) == ""


@pytest.mark.nightly
@needs_postgres
@pytest.mark.timeout(1800)
def test_hosts_are_switched_off_at_random_moments() -> None:
    losses = Losses(seed=1)
    losses.run(MOMENTS)
    assert [loss.problem for loss in losses.seen] == [""] * MOMENTS, losses.seen
    sys.stdout.write(f"{losses.seen}\n")


@pytest.mark.nightly
@pytest.mark.guarantee(
    source="`rel.sequence`", sink="Parquet", lost="a node with its disk, the coordinator's among them", rows="each once"
)
def test_the_coordinators_host_is_switched_off_with_its_disk(tmp_path: Path) -> None:
    rows = 120_000
    with netns.Nodes(3, cpus=2, quick=True) as nodes:
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


@pytest.mark.nightly
def test_where_both_copies_are_gone_the_job_fails_at_once(tmp_path: Path) -> None:
    with netns.Nodes(
        3, cpus=2, head_cpus=0, quick=True
    ) as nodes:  # the coordinator on the head, processes on the others
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
