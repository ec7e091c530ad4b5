"""Checkpoints in a store of objects that answers 500 for a while: given up and counted, and the job goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from rayelastic.runtime.values.status import Failure
from tests.component.dying_coordinator import PATIENCE, ROWS, Row
from tests.component.readers.object_store import Store, object_store
from tests.component.test_checkpoints import Losing

COUNTS = [(n, n // 7 + 1) for n in range(len(ROWS))]


@pytest.fixture
def store() -> Iterator[Store]:
    with object_store() as made:
        yield made


def counting(source: Any) -> rel.Topology:
    topology = rel.Topology("stored")
    keyed = topology.source("rows", source).key_by("key")
    keyed.aggregate("counts", emit="update", n=rel.last("n"), all=rel.count()).sink("out", rel.list())
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
        before = counted.restarts
        made.coordinator._lose(Failure("processing element pe0 was lost"))
        while made.job.status.checkpoints.restarts < before + 2:
            made.job.pause(0.01)
        store.failing.clear()  # it had tried once, and didn't take the newest one for damaged
        gates[2].open()
        out = made.job.wait(PATIENCE)["out"]
    finally:
        for gate in gates:
            gate.open()
        made.job.close()
    assert [(row.n, row.all) for row in out] == COUNTS
    assert [one.epoch for one in made.coordinator._journal.checkpoints] == [1, 3]
    assert sum(rel.read_snapshot(place)["counts"].column("all").to_pylist()) == 500
    again = rel.run(counting(rel.rows(ROWS, schema=Row)), restore=rel.Checkpoint(place))
    assert [(row.n, row.all) for row in again["out"]] == COUNTS


def test_a_store_that_fails_at_the_start_refuses_it(store: Store) -> None:
    store.failing.add("PUT")
    topology = counting(rel.rows(ROWS, schema=Row))
    with pytest.raises(StateError, match=r"s3://user:\*\*\*@store/saved/trial-.* can't be written") as refused:
        rel.run(topology, rel.JobConfig(checkpoint=rel.Checkpoint(store.uri("saved"))))
    assert "secret" not in str(refused.value)
    store.failing.update(ALL)
    with pytest.raises(StateError, match=r"s3://user:\*\*\*@store/saved can't be looked at"):
        rel.run(topology, restore=store.uri("saved"))
