"""Where checkpoints are kept: a store that fails, a place that can't be written, nodes with other disks there.

What costs a checkpoint is counted and told, and the job goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.values.failure import Failure
from tests.component.checkpoint.test_checkpoints import Losing
from tests.component.connectors.object_store import Store, object_store
from tests.component.runtime.dying_coordinator import PATIENCE, ROWS, Row
from tests.raising import raises
from tests.waiting import wait_until

COUNTS = [(n, n // 7 + 1) for n in range(len(ROWS))]


@pytest.fixture
def store() -> Iterator[Store]:
    with object_store() as made:
        yield made


def counting(source: Any) -> rel.Topology:
    topology = rel.Topology("stored")
    keyed = topology.source(source, name="rows").key_by("key")
    keyed.aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count()).sink(rel.list(), name="out")
    return topology


ALL = {"HEAD", "GET", "PUT", "POST", "DELETE"}


def test_a_store_that_fails_for_a_while_costs_checkpoints_and_nothing_else(store: Store) -> None:
    gates, place = [testing.Gate() for _ in range(3)], store.uri("saved")
    script = [*ROWS[:100], gates[0], *ROWS[100:300], gates[1], *ROWS[300:500], gates[2], *ROWS[500:]]
    made = Losing(counting(testing.script(script, Row)), rel.JobConfig(checkpoint=rel.Checkpoint(place, every=600.0)))
    try:
        assert gates[0].wait_reached(PATIENCE)
        made.take()
        assert made.job.status.checkpoints.last == 1
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        store.failing.update({"PUT", "POST"})
        made.take()
        counted = made.job.status.checkpoints
        assert (counted.last, counted.abandoned) == (1, 1)
        assert "s3://user:***@store/saved/00000002" in counted.problem
        assert "can't be written" in counted.problem
        assert "secret" not in counted.problem
        store.failing.clear()
        made.lose(gates[1])  # back to the one before
        assert gates[2].wait_reached(PATIENCE)
        made.take()
        counted = made.job.status.checkpoints
        assert (counted.problem, counted.abandoned) == ("", 1)
        store.failing.update(ALL)
        made.coordinator._lose(Failure("PE pe0 was lost"))
        while (outage := made.job.status.outage) is None or outage.attempts == 0:
            made.job.pause(0.01)
        assert "s3://user:***@store/saved/00000003" in outage.reason
        store.failing.clear()  # it had tried once, and didn't take the newest one for damaged
        gates[2].open()
        out = made.job.wait(PATIENCE)["out"]
    finally:
        for gate in gates:
            gate.open()
        made.job.close()
    assert [(row.n, row.all) for row in out] == COUNTS
    assert [one.checkpoint for one in made.coordinator._journal.checkpoints] == [1, 3]
    assert sum(rel.read_snapshot(place)["counts"].column("all").to_pylist()) == 500
    again = rel.run(counting(rel.rows(ROWS, schema=Row)), restore=rel.Checkpoint(place))
    assert [(row.n, row.all) for row in again["out"]] == COUNTS


def test_a_store_that_fails_at_the_start_refuses_it(store: Store) -> None:
    store.failing.add("PUT")
    topology = counting(rel.rows(ROWS, schema=Row))
    with raises(StateError, "unreadable-state") as refused:
        rel.run(topology, rel.JobConfig(checkpoint=rel.Checkpoint(store.uri("saved"))))
    assert "secret" not in str(refused.value)
    store.failing.update(ALL)
    with raises(StateError, "unreadable-state"):
        rel.run(topology, restore=store.uri("saved"))


def test_where_checkpoints_cannot_be_written_nothing_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    checkpoint = rel.Checkpoint(tmp_path / "file" / "below")
    with raises(StateError, "bad-location"):
        rel.run(counting(rel.rows(ROWS, schema=Row)), rel.JobConfig(checkpoint=checkpoint))
    place = tmp_path / "saved"
    rel.run(counting(rel.rows(ROWS, schema=Row)), rel.JobConfig(checkpoint=rel.Checkpoint(place)))
    assert not list(place.glob("trial*"))


@pytest.mark.parametrize("kept_by_node", [False, True])
def test_a_place_that_is_another_one_on_another_node_is_told_and_nothing_written_there(
    kept_by_node: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no place is named each node keeps its share on its own disk."""
    place, made = tmp_path / "saved", SnapshotFolder.prepare

    def elsewhere(self: SnapshotFolder) -> None:  # the coordinator makes its folder on the disk of its own node
        made(self)
        if not self.location.endswith("rows"):
            self.remove()

    monkeypatch.setattr(SnapshotFolder, "prepare", elsewhere)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    checkpoint = rel.Checkpoint(None if kept_by_node else place, every=0.2)
    gate = testing.Gate()
    source = testing.script([*ROWS[:100], gate, *ROWS[100:]], Row)
    job = rel.start(counting(source), rel.JobConfig(checkpoint=checkpoint))
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until(job, lambda: job.status.checkpoints.taken if kept_by_node else job.status.checkpoints.abandoned)
        problem = job.status.checkpoints.problem
        if not kept_by_node:
            assert re.search(r"saved/0+1 isn't there on .*another disk.*every node of the cluster sees", problem)
            assert not list(place.glob("0*"))
            with raises(StateError, "bad-location"):
                job.snapshot(tmp_path / "savepoint")
        gate.open()
        assert [(row.n, row.all) for row in job.wait(PATIENCE)["out"]] == COUNTS
    finally:
        gate.open()
        job.close()
