"""Rows into PostgreSQL, a real server: each once, whatever is lost when."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors.output.record import Output, SinkContext
from rayelastic.connectors.postgres.writer import PostgresTable
from rayelastic.errors import JobFailedError, RayelasticError, SinkError, SinkLostError, StateError
from rayelastic.runtime.values.status import State
from tests.component.checkpoint.test_checkpoints import Losing
from tests.component.runtime.checkpoint_folder import Blobs
from tests.postgres import needs_postgres, postgres_server, restart
from tests.raising import raises
from tests.waiting import wait_until

pytestmark = needs_postgres

PATIENCE = 60.0


class Row(NamedTuple):
    number: int
    part: str | None
    price: float
    at: dt.datetime
    data: bytes


DAY = dt.datetime(2026, 3, 1)  # noqa: DTZ001  (as a stream without a zone has it)
ROWS = [
    Row(n, None if n % 7 == 0 else f"text\t{n}\n\\N", n / 4, DAY + dt.timedelta(hours=n), bytes([n % 256, 0]))
    for n in range(900)
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as conninfo:
        yield conninfo


@pytest.fixture
def table(server: str, request: pytest.FixtureRequest) -> str:
    return f"t{abs(hash(request.node.name))}"


def topology(source: Any, server: str, table: str, name: str = "postgres") -> rel.Topology:
    made = rel.Topology(name)
    made.source(source, name="rows").sink(rel.postgres(server, table), name="out")
    return made


def held(server: str, table: str) -> list[Any]:
    with psycopg.connect(server) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY number').fetchall()


def leftovers(server: str) -> list[Any]:
    with psycopg.connect(server) as connection:
        return connection.execute(
            "SELECT tablename FROM pg_tables WHERE tablename LIKE 'rayelastic_staged%'"
        ).fetchall()


def opened(server: str, table: str, schema: rel.Schema, at: Output | None = None, run: str = "run") -> PostgresTable:
    outputs = {} if at is None else {"out": at}
    made = PostgresTable(rel.postgres(server, table), schema, SinkContext("job", "out", f"{run} of {table}", outputs))
    made.begin()
    return made


def checkpointed(
    server: str, table: str, schema: rel.Schema, store: Blobs
) -> tuple[PostgresTable, pa.RecordBatch, Output]:
    """A table that has prepared its first 300 rows for a checkpoint; all rows; and what the checkpoint knows of it."""
    batch = pa.table(list(zip(*ROWS, strict=True)), schema=schema.to_arrow()).to_batches()[0]
    made = opened(server, table, schema)
    made.write(batch.slice(0, 300))
    return made, batch, made.prepare(1, store)


def test_values_of_all_kinds_arrive_and_nothing_is_left_beside(server: str, table: str) -> None:
    assert rel.run(topology(rel.rows(ROWS, schema=Row), server, table))["out"] == table
    assert held(server, table) == [tuple(row) for row in ROWS]
    rel.run(topology(rel.rows([Row(1000, "x", 1.0, DAY, b"")], schema=Row), server, table))
    assert len(held(server, table)) == len(ROWS) + 1  # another run appends
    assert leftovers(server) == []


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_a_job_that_goes_back_writes_each_row_once(server: str, table: str, lost: int, tmp_path: Path) -> None:
    gates = [testing.Gate(), testing.Gate()]
    source = testing.script([*ROWS[:300], gates[0], *ROWS[300:600], gates[1], *ROWS[600:]], Row)
    config = rel.JobConfig(pes={"rows": 0, "out": 1}, checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    made = Losing(topology(source, server, table), config)
    try:
        for number, gate in enumerate(gates):
            assert gate.wait_reached(PATIENCE)
            if lost != 3:
                made.take()
            seen = held(server, table)  # only what a checkpoint counts on
            assert seen == [tuple(row) for row in ROWS[: len(seen)]]
            assert len(seen) == 300 * (number + 1) * (lost != 3) or made.job.status.checkpoints.restarts
            if lost in (number, 2, 3):
                made.lose(gate)
            gate.open()
        made.job.wait(PATIENCE)
    finally:
        for gate in gates:
            gate.open()
        made.job.close()
    assert held(server, table) == [tuple(row) for row in ROWS]


def test_what_came_behind_a_savepoint_is_taken_back_unless_somebody_changed_it(
    server: str, table: str, tmp_path: Path
) -> None:
    gate = testing.Gate()
    job = rel.start(topology(testing.script([*ROWS[:300], gate, *ROWS[300:]], Row), server, table))
    try:
        assert gate.wait_reached(PATIENCE)
        saved = job.snapshot(tmp_path / "saved")
        assert len(held(server, table)) == 300  # without checkpoints a savepoint shows what there is
        gate.open()
        job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()
    again = topology(rel.rows(ROWS, schema=Row), server, table)
    rel.run(again, restore=saved)
    assert held(server, table) == [tuple(row) for row in ROWS]
    with psycopg.connect(server) as connection:
        connection.execute(f'UPDATE "{table}" SET price = 0 WHERE number = 800')
    with raises(StateError, "missing-output", "out", "600", "599"):
        rel.run(again, restore=saved)
    assert len(held(server, table)) == len(ROWS)


def test_a_stopped_job_goes_on(server: str, table: str, tmp_path: Path) -> None:
    gate = testing.Gate()
    job = rel.start(topology(testing.script([*ROWS[:300], gate], Row), server, table))
    try:
        assert gate.wait_reached(PATIENCE)
        job.stop(tmp_path / "saved")
    finally:
        gate.open()
        job.close()
    rel.run(topology(rel.rows(ROWS, schema=Row), server, table), restore=tmp_path / "saved")
    assert held(server, table) == [tuple(row) for row in ROWS]


@pytest.mark.edges
@pytest.mark.parametrize("noticed", ["at its end", "by a checkpoint"])
def test_a_writer_that_was_replaced_writes_no_more(server: str, table: str, noticed: str, tmp_path: Path) -> None:
    gates = [testing.Gate(), testing.Gate()]
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "checkpoints", every=600.0))
    made = Losing(topology(testing.script([*ROWS[:300], gates[0], *ROWS[300:]], Row), server, table), config)
    other = None
    try:
        assert gates[0].wait_reached(PATIENCE)
        made.take()
        source = testing.script([*ROWS[:600], gates[1], *ROWS[600:]], Row)
        other = rel.start(topology(source, server, table, "green"), restore=tmp_path / "checkpoints")
        assert gates[1].wait_reached(PATIENCE)
        if noticed == "by a checkpoint":
            made.take()
        gates[0].open()
        with raises(JobFailedError, "output-taken", "green"):
            made.job.wait(PATIENCE)
        assert made.job.status.checkpoints.restarts == 0  # or they would take the table from each other for ever
        gates[1].open()
        other.wait(PATIENCE)
    finally:
        for gate in gates:
            gate.open()
        made.job.close()
        if other is not None:
            other.close()
    assert held(server, table) == [tuple(row) for row in ROWS]


def test_what_an_abandoned_checkpoint_staged_does_not_count(server: str, table: str, tmp_path: Path) -> None:
    schema, store = rel.Schema.of(Row), Blobs(tmp_path / "blobs")
    lost, batch, at = checkpointed(server, table, schema, store)
    lost.write(batch.slice(300, 300))
    lost.prepare(2, store)  # is staged, but the checkpoint of the job isn't complete
    lost.abandon()
    after = opened(server, table, schema, at)
    assert held(server, table) == [tuple(row) for row in ROWS[:300]]
    after.write(batch.slice(300))
    after.close()
    assert held(server, table) == [tuple(row) for row in ROWS]


@pytest.mark.parametrize("shown", ["by its end", "by a later checkpoint"])
def test_rows_of_a_checkpoint_stay_where_the_job_goes_back_to_it_from_behind_its_end(
    server: str, table: str, tmp_path: Path, shown: str
) -> None:
    schema, store = rel.Schema.of(Row), Blobs(tmp_path / "blobs")
    lost, batch, at = checkpointed(server, table, schema, store)  # whoever was to tell the sink of it has died
    lost.write(batch.slice(300))
    if shown == "by its end":
        lost.close()
    else:
        lost.prepare(2, store)
        lost.commit(2)
        lost.abandon()
    assert len(held(server, table)) == len(ROWS)
    after = opened(server, table, schema, at)
    assert held(server, table) == [tuple(row) for row in ROWS[:300]]
    after.write(batch.slice(300))
    after.close()
    assert held(server, table) == [tuple(row) for row in ROWS]


def test_a_checkpoint_that_meets_the_end_has_all_rows(server: str, table: str, tmp_path: Path) -> None:
    schema, store = rel.Schema.of(Row), Blobs(tmp_path / "blobs")
    batch = pa.table(list(zip(*ROWS, strict=True)), schema=schema.to_arrow()).to_batches()[0]
    ended = opened(server, table, schema)
    ended.write(batch)
    ended.close()
    at = ended.prepare(1, store)
    ended.commit(1)
    after = opened(server, table, schema, at)  # others of the job were lost then
    assert (at.rows, held(server, table)) == (len(ROWS), [tuple(row) for row in ROWS])
    after.close()
    assert held(server, table) == [tuple(row) for row in ROWS]


def test_checkpoints_go_on_when_one_of_two_tables_is_complete(server: str, table: str, tmp_path: Path) -> None:
    gate = testing.Gate()
    made = topology(rel.rows(ROWS, schema=Row), server, table)
    made.source(testing.script([*ROWS[:300], gate, *ROWS[300:]], Row), name="more").sink(rel.count(), name="other")
    pins = {"rows": 0, "out": 0, "more": 1, "other": 1}
    config = rel.JobConfig(pes=pins, checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    losing = Losing(made, config)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until(losing.job, lambda: losing.job.status.pes[0].state is State.FINISHED)
        losing.take()
        counted = losing.job.status.checkpoints
        assert (counted.taken, counted.abandoned, counted.restarts) == (1, 0, 0)
        losing.lose(gate)
        assert losing.job.wait(PATIENCE)["other"] == len(ROWS)
        assert losing.job.status.checkpoints.restarts == 1
    finally:
        gate.open()
        losing.job.close()
    assert held(server, table) == [tuple(row) for row in ROWS]


@pytest.mark.parametrize("ended", [True, False])
def test_who_begins_anew_takes_back_what_was_there_before_the_first_checkpoint(
    server: str, table: str, ended: bool
) -> None:
    schema = rel.Schema.of(Row)
    batch = pa.table(list(zip(*ROWS, strict=True)), schema=schema.to_arrow()).to_batches()[0]
    lost = opened(server, table, schema)
    lost.write(batch.slice(0, 600))
    if ended:  # its streams were over, and others of the job were lost
        lost.close()
        assert len(held(server, table)) == 600
    after = opened(server, table, schema)
    assert held(server, table) == []
    after.write(batch)
    if not ended:
        with raises(SinkError, "output-taken", "job"):
            lost.close()
        lost.abandon()
    after.close()
    assert held(server, table) == [tuple(row) for row in ROWS]


def test_a_commit_that_fails_is_made_up_for(server: str, table: str, tmp_path: Path) -> None:
    gate = testing.Gate()
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "checkpoints", every=600.0))
    made = Losing(topology(testing.script([*ROWS[:300], gate, *ROWS[300:]], Row), server, table), config)
    try:
        assert gate.wait_reached(PATIENCE)
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'ALTER TABLE "{table}" RENAME TO elsewhere')
            made.take()
            counted = made.job.status.checkpoints
            assert (counted.taken, counted.abandoned) == (1, 0)  # it is complete, though nobody sees the rows yet
            connection.execute(f'ALTER TABLE elsewhere RENAME TO "{table}"')
        made.take()
        assert len(held(server, table)) == 300
        gate.open()
        made.job.wait(PATIENCE)
    finally:
        gate.open()
        made.job.close()
    assert held(server, table) == [tuple(row) for row in ROWS]


@pytest.mark.parametrize("moment", ["it writes", "a checkpoint is taken", "it ends"])
def test_a_job_goes_back_when_the_server_starts_again(server: str, table: str, moment: str, tmp_path: Path) -> None:
    rows = [Row(n, "text", n / 4, DAY, b"data") for n in range(70_000 if moment == "it writes" else 900)]
    gates = [testing.Gate(), testing.Gate()]
    source = testing.script([*rows[:300], gates[0], *rows[300:-200], gates[1], *rows[-200:]], Row)
    config = rel.JobConfig(pes={"rows": 0, "out": 1}, checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    made = Losing(topology(source, server, table), config)
    try:
        assert gates[0].wait_reached(PATIENCE)
        made.take()
        if moment == "it writes":
            restart(server)
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        if moment != "it writes":
            restart(server)
        if moment == "a checkpoint is taken":
            made.take()
            wait_until(made.job, lambda: made.job.status.checkpoints.restarts != 0)
        gates[1].open()
        made.job.wait(PATIENCE)
        assert made.job.status.checkpoints.restarts == 1
    finally:
        for gate in gates:
            gate.open()
        made.job.close()
    assert held(server, table) == [tuple(row) for row in rows]


def test_without_checkpoints_the_job_fails_when_the_server_starts_again(server: str, table: str) -> None:
    gate = testing.Gate()
    source = testing.script([*ROWS[:300], gate, *ROWS[300:]], Row)
    job = rel.start(topology(source, server, table), rel.JobConfig(checkpoint=False))
    try:
        assert gate.wait_reached(PATIENCE)
        restart(server)
        gate.open()
        with raises(JobFailedError, "sink-unreachable"):
            job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()
    assert held(server, table) == []


def test_rows_of_a_checkpoint_are_shown_by_another_connection_when_one_is_lost(
    server: str, table: str, tmp_path: Path
) -> None:
    made, batch, _ = checkpointed(server, table, rel.Schema.of(Row), Blobs(tmp_path / "blobs"))
    restart(server)
    with pytest.raises(SinkLostError):
        made.commit(1)
    made.commit(1)
    assert held(server, table) == [tuple(row) for row in ROWS[:300]]
    with pytest.raises(SinkLostError):
        made.write(batch.slice(300))
    made.abandon()


def test_mistakes_are_told_before_anything_starts(server: str, table: str) -> None:
    rows = rel.rows(ROWS, schema=Row)
    with raises(SinkError, "wrong-type", "table="):
        topology(rows, server, "")
    with raises(SinkError, "sink-unreachable", "out"):
        rel.run(topology(rows, "host=/nowhere dbname=x", table))
    with psycopg.connect(server) as connection:
        connection.execute(f'CREATE TABLE "{table}" (number bigint, other text)')
    with raises(RayelasticError, "sink-failed", "part"):
        rel.run(topology(rows, server, table))
    assert "secret" not in repr(rel.postgres("postgresql://user:secret@host/db", "t"))
