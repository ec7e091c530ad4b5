"""Savepoints of a job that writes to PostgreSQL, restored in any order: exact or rejected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from tests.component.connectors.test_postgres import PATIENCE, ROWS, Row, checkpointed, held, opened, topology
from tests.component.runtime.checkpoint_folder import Blobs
from tests.postgres import needs_postgres, postgres_server
from tests.raising import raises

pytestmark = [needs_postgres, pytest.mark.edges]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as conninfo:
        yield conninfo


@pytest.fixture
def table(request: pytest.FixtureRequest) -> str:
    return f"t{abs(hash(request.node.name))}"


def test_savepoints_of_one_run_are_exact_or_rejected_in_whatever_order(server: str, table: str, tmp_path: Path) -> None:
    """E2, row 4."""
    gates, places = [testing.Gate(), testing.Gate()], [tmp_path / "A", tmp_path / "B"]
    source = testing.script([*ROWS[:300], gates[0], *ROWS[300:600], gates[1], *ROWS[600:]], Row)
    job = rel.start(topology(source, server, table))
    try:
        for gate, place in zip(gates, places, strict=True):
            assert gate.wait_reached(PATIENCE)
            job.snapshot(place)
            gate.open()
        job.wait(PATIENCE)
    finally:
        for gate in gates:
            gate.open()
        job.close()
    again = topology(rel.rows(ROWS, schema=Row), server, table)
    for place in (places[1], places[1], places[0], places[0]):
        rel.run(again, restore=place)
        assert held(server, table) == [tuple(row) for row in ROWS]
    with raises(StateError, "missing-output", "out", "600", "300"):
        rel.run(again, restore=places[1])
    assert held(server, table) == [tuple(row) for row in ROWS]


def test_rows_that_another_branch_has_staged_arent_taken_for_those_of_a_savepoint(
    server: str, table: str, tmp_path: Path
) -> None:
    """E2, row 4, where nothing has been moved."""
    schema, store = rel.Schema.of(Row), Blobs(tmp_path / "blobs")
    first, batch, at = checkpointed(server, table, schema, store)
    first.write(batch.slice(300, 300))
    later = first.prepare(2, store)
    first.abandon()
    branch = opened(server, table, schema, at, "branch")
    branch.write(batch.slice(300, 300))
    branch.prepare(3, store)
    branch.abandon()
    with raises(StateError, "missing-output", "600", "300"):
        opened(server, table, schema, later, "another")
    after = opened(server, table, schema, at, "another")
    after.write(batch.slice(300))
    after.close()
    assert held(server, table) == [tuple(row) for row in ROWS]
