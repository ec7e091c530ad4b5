"""Servers and stores outside of a job that don't answer for a while: the job waits, and each row counts once (E3)."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors import source as sources
from rayelastic.connectors.fingerprints import check_input, input_of
from rayelastic.connectors.json import lines as json_text
from rayelastic.connectors.parquet import reader as parquet
from rayelastic.errors import JobFailedError, SourceLostError
from rayelastic.runtime.checkpoint import restarts
from rayelastic.runtime.values.outage import Outage
from rayelastic.runtime.values.status import State
from tests.component.connectors.store_that_goes import Store, serve
from tests.postgres import away, needs_postgres, postgres_server
from tests.raising import raises
from tests.waiting import wait_until

pytestmark = pytest.mark.edges

PATIENCE = 60.0


class Row(NamedTuple):
    number: int
    name: str


ROWS = [Row(n, f"name {n}") for n in range(900)]
FIELDS = {"number": int, "name": str}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as conninfo:
        yield conninfo


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "FIRST_PAUSE", 0.02)


@pytest.fixture
def table(request: pytest.FixtureRequest) -> str:
    return f"t{abs(hash(request.node.name))}"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    return serve(monkeypatch, tmp_path / "store")


@pytest.fixture
def small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FEEDER_BYTES", 1 << 20)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 1000)
    monkeypatch.setattr(json_text, "BLOCK_BYTES", 1 << 16)  # pyarrow reads several ahead


def topology(source: Any, sink: Any) -> rel.Topology:
    made = rel.Topology("outages")
    made.source(source, name="rows").sink(sink, name="out")
    return made


def waits(job: rel.Job, attempts: int) -> Outage:
    """Return what the job waits for, once it has tried so often."""
    while (outage := job.status.outage) is None or outage.attempts < attempts:
        assert not job.status.state.is_final, job.status.failure
        job.pause(0.01)
    assert job.status.state is State.RECOVERING
    return outage


def checkpointed(job: rel.Job) -> None:
    """Return when a checkpoint is complete that began after this call."""
    before = job.status.checkpoints.taken
    wait_until(job, lambda: job.status.checkpoints.taken >= before + 2)


def write(form: str, path: Path, rows: pa.Table) -> None:
    """Write a file, in small pieces."""
    if form == "parquet":
        pq.write_table(rows, path, row_group_size=1000, compression="none", use_dictionary=False)
    elif form == "csv":
        csv.write_csv(rows, path)
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows.to_pylist()))


def held(server: str, table: str) -> list[Any]:
    with psycopg.connect(server) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY number').fetchall()


@needs_postgres
def test_a_server_that_is_away_three_times_costs_no_restart_and_no_row(
    server: str, table: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gates = [testing.Gate() for _ in range(3)]
    script = [*ROWS[:100], gates[0], *ROWS[100:200], gates[1], *ROWS[200:300], gates[2], *ROWS[300:]]
    checkpoint = rel.Checkpoint(tmp_path / "saved", every=0.2, restarts=1)
    with caplog.at_level("WARNING", "rayelastic.events"):
        job = rel.start(
            topology(testing.script(script, Row), rel.postgres(server, table)), rel.JobConfig(checkpoint=checkpoint)
        )
        try:
            for gate in gates:
                assert gate.wait_reached(PATIENCE)
                checkpointed(job)
                with away(server):
                    outage = waits(job, 4)  # more than `restarts` allows
                    gate.open()
                assert (outage.operator, outage.timeout) == ("out", 900.0)
                assert "can't be written" in outage.reason
                assert str(outage).startswith("operator 'out' waits since 20")
            job.wait(PATIENCE)
            assert (job.status.checkpoints.restarts, job.status.outage) == (3, None)
        finally:
            for gate in gates:
                gate.open()
            job.close()
    assert held(server, table) == ROWS
    told = [json.loads(record.getMessage())["event"] for record in caplog.records]
    assert told.count("job waits for an outage to end") == 3
    assert told.count("job recovers") == 0


@needs_postgres
def test_rows_that_wait_for_a_checkpoint_when_the_server_goes_are_no_loss(
    server: str, table: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gate = testing.Gate()
    source = testing.script([*ROWS[:300], gate, *ROWS[300:]], Row)
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))  # the first after a second
    with caplog.at_level("WARNING", "rayelastic.events"):
        job = rel.start(topology(source, rel.postgres(server, table)), config)
        try:
            assert gate.wait_reached(PATIENCE)
            with away(server):
                waits(job, 1)
            gate.open()
            job.wait(PATIENCE)
        finally:
            gate.open()
            job.close()
    assert held(server, table) == ROWS
    assert "job recovers" not in [json.loads(record.getMessage())["event"] for record in caplog.records]


@needs_postgres
@pytest.mark.guarantee(
    source="any",
    sink="PostgreSQL",
    lost="the server, longer than `outage_timeout`",
    rows="the job fails; its checkpoint stays",
)
def test_a_server_that_does_not_return_fails_the_job_whose_checkpoint_stays(
    server: str, table: str, tmp_path: Path
) -> None:
    gate, saved = testing.Gate(), tmp_path / "saved"
    config = rel.JobConfig(checkpoint=rel.Checkpoint(saved, every=0.2, outage_timeout=0.5))
    source = testing.script([*ROWS[:300], gate, *ROWS[300:]], Row)
    job = rel.start(topology(source, rel.postgres(server, table)), config)
    try:
        assert gate.wait_reached(PATIENCE)
        checkpointed(job)
        with away(server), pytest.raises(JobFailedError) as failed:
            job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()
    assert failed.value.operator == "out"
    assert "it didn't answer for" in failed.value.reason
    assert f'The last checkpoint stays in {saved}: run the job again with restore="latest"' in failed.value.reason
    rel.run(topology(rel.rows(ROWS, schema=Row), rel.postgres(server, table)), restore=rel.Checkpoint(saved))
    assert held(server, table) == ROWS


@needs_postgres
@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seconds", [60.0, 600.0])
def test_a_server_that_is_away_for_minutes_costs_no_row(
    server: str, table: str, seconds: float, tmp_path: Path
) -> None:
    gate = testing.Gate()
    source = testing.script([*ROWS[:300], gate, *ROWS[300:]], Row)
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=1.0))
    job = rel.start(topology(source, rel.postgres(server, table)), config)
    try:
        assert gate.wait_reached(PATIENCE)
        checkpointed(job)
        with away(server):
            gate.open()
            job.pause(seconds)
            assert job.status.outage is not None
        job.wait(PATIENCE)
        assert job.status.checkpoints.restarts == 1
    finally:
        gate.open()
        job.close()
    assert held(server, table) == ROWS


@needs_postgres
@pytest.mark.parametrize("location", [None, "saved"])
def test_a_checkpoint_of_python_values_stays_where_a_job_gave_up(
    server: str, table: str, location: str | None, tmp_path: Path
) -> None:
    def counted(t: Row, state: dict[str, int]) -> Row:
        state["n"] = state.get("n", -1) + 1
        return Row(state["n"], t.name)

    def made(source: Any) -> rel.Topology:
        topology = rel.Topology("kept")
        keyed = topology.source(source, name="rows").map(lambda t: (0, *t), name="keyed", schema={"key": int, **FIELDS})
        keyed.key_by("key").map(counted, name="counted", state=dict, schema=Row).sink(
            rel.postgres(server, table), name="out"
        )
        return topology

    gate = testing.Gate()
    place = None if location is None else tmp_path / location
    config = rel.JobConfig(checkpoint=rel.Checkpoint(place, every=0.2, outage_timeout=0.5))
    job = rel.start(made(testing.script([*ROWS[:300], gate, *ROWS[300:]], Row)), config)
    try:
        assert gate.wait_reached(PATIENCE)
        checkpointed(job)
        with away(server), pytest.raises(JobFailedError) as failed:
            job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()
    kept = re.search(r"The last checkpoint stays in (\S+): run the job again with restore=", failed.value.reason)
    assert kept is not None
    try:
        rel.run(made(rel.rows(ROWS, schema=Row)), restore=kept[1])
    finally:
        shutil.rmtree(kept[1])
    assert held(server, table) == ROWS


@needs_postgres
@pytest.mark.guarantee(
    source="any, `checkpoint=False`", sink="PostgreSQL", lost="the server", rows="the job fails with a hint"
)
def test_without_checkpoints_an_outage_ends_the_job_and_it_says_what_to_do(server: str, table: str) -> None:
    gate = testing.Gate()
    job = rel.start(topology(testing.script([*ROWS[:300], gate, *ROWS[300:]], Row), rel.postgres(server, table)))
    try:
        assert gate.wait_reached(PATIENCE)
        with away(server):
            gate.open()
            with raises(JobFailedError, "sink-unreachable", "Without"):
                job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()


@needs_postgres
def test_a_job_that_waits_is_cancelled_at_once(server: str, table: str, tmp_path: Path) -> None:
    gate = testing.Gate()
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=0.2))
    source = testing.script([*ROWS[:300], gate, *ROWS[300:]], Row)
    job = rel.start(topology(source, rel.postgres(server, table)), config)
    try:
        assert gate.wait_reached(PATIENCE)
        checkpointed(job)
        with away(server):
            waits(job, 1)
            job.cancel(drain=False)
            with pytest.raises(rel.errors.JobCancelledError):
                job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
@pytest.mark.guarantee(source="any", sink="files in a store", lost="the store, for a while", rows="each once")
def test_a_store_of_a_sink_that_is_away_costs_no_row(form: str, store: Store, tmp_path: Path) -> None:
    gates = [testing.Gate(), testing.Gate()]
    source = testing.script([*ROWS[:300], gates[0], *ROWS[300:600], gates[1], *ROWS[600:]], Row)
    checkpoint = rel.Checkpoint(tmp_path / "saved", every=0.2, restarts=1)
    sink = getattr(rel, form)(store.uri("out"))
    job = rel.start(topology(source, sink), rel.JobConfig(checkpoint=checkpoint))
    try:
        for gate in gates:
            assert gate.wait_reached(PATIENCE)
            checkpointed(job)
            store.away = True
            gate.open()
            outage = waits(job, 3)
            assert "the store doesn't answer" in outage.reason
            store.away = False
        job.wait(PATIENCE)
        assert job.status.checkpoints.restarts <= len(gates)
    finally:
        for gate in gates:
            gate.open()
        job.close()
    again = topology(getattr(rel, form)(str(store.folder / "out" / "*"), schema=Row), rel.list())
    assert sorted(rel.run(again)["out"]) == ROWS


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "text"])
@pytest.mark.usefixtures("small_reads")
@pytest.mark.guarantee(source="files in a store", sink="any", lost="the store, for a while", rows="each once")
def test_a_store_of_a_source_that_is_away_costs_no_row(form: str, store: Store, tmp_path: Path) -> None:
    many = [Row(n, f"name {n} " + "x" * 500) for n in range(20_000)]
    path = store.folder / f"in.{form}"
    if form == "text":
        path.write_text("".join(f"{row.name}\n" for row in many))
    else:
        rows = pa.Table.from_pylist([row._asdict() for row in many])
        write(form, path, rows)
    where = store.uri(path.name)
    source = rel.text(where) if form == "text" else getattr(rel, form)(where, schema=Row)
    made, config = topology(source, rel.list()), rel.Checkpoint(tmp_path / "saved", every=0.2, restarts=1)
    store.bytes_left = path.stat().st_size // 2
    job = rel.start(made, rel.JobConfig(checkpoint=config))
    try:
        outage = waits(job, 3)
        assert (outage.operator, store.away) == ("rows", True)
        assert "the store doesn't answer" in outage.reason
        store.away = False
        assert len(job.wait(PATIENCE)["out"]) == len(many)
    finally:
        store.away, store.bytes_left = False, None
        job.close()


@pytest.mark.parametrize(("fault", "had"), [("away", False), ("full", True)])
def test_a_store_of_checkpoints_that_fails_at_the_very_end_costs_no_row(
    fault: str, had: bool, store: Store, tmp_path: Path
) -> None:
    """Without the last checkpoint nobody sees the last rows, so the job waits until it can be taken."""
    gate, out = testing.Gate(), tmp_path / "out"
    checkpoint = rel.Checkpoint(store.uri("saved"), every=0.2 if had else 600.0, restarts=1)
    source = testing.script([*ROWS[:300], gate, *ROWS[300:]], Row)
    job = rel.start(topology(source, rel.csv(str(out))), rel.JobConfig(checkpoint=checkpoint))
    try:
        assert gate.wait_reached(PATIENCE)
        if had:
            checkpointed(job)
        setattr(store, fault, True)
        gate.open()
        assert "the store" in waits(job, 2).reason
        assert sum(csv.read_csv(part).num_rows for part in out.glob("part-*")) == (300 if had else 0)
        setattr(store, fault, False)
        job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()
    assert sorted(rel.run(topology(rel.csv(str(out / "part-*"), schema=Row), rel.list()))["out"]) == ROWS


def test_a_store_of_a_source_that_is_away_at_a_restore_is_an_outage(store: Store) -> None:
    """The position in its files can't be checked then."""
    (store.folder / "in.csv").write_text("number,name\n1,a\n")
    spec = topology(rel.csv(store.uri("in.csv"), schema=Row), rel.count()).operators["rows"]
    before = input_of(spec)
    store.away = True
    with raises(SourceLostError, "source-unreachable", "rows"):
        check_input(spec, before, 1)
