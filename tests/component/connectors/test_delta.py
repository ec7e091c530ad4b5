"""Rows into a Delta table, each once whatever is lost when, and a version of a table as rows."""

from __future__ import annotations

import datetime as dt
import importlib.util
import tempfile
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors.delta.declaration import DeltaSink
from rayelastic.connectors.delta.tables import place_of
from rayelastic.connectors.delta.writer import TableTarget
from rayelastic.connectors.output.epochs import EpochSink
from rayelastic.connectors.output.record import Output
from rayelastic.errors import JobFailedError, SinkError, SinkLostError, SinkTakenError, SourceError, StateError
from rayelastic.graph.records.schema import Schema
from rayelastic.runtime.values.failure import Failure
from rayelastic.testing import check_sink
from tests.component.connectors.object_store import object_store
from tests.component.connectors.test_sinks_by_epoch import FATES, SCHEMA, Trial, batch, played, row
from tests.component.connectors.test_sinks_checked import OfWriter
from tests.component.runtime.checkpoint_folder import Blobs
from tests.raising import raises
from tests.waiting import wait_until

pytestmark = pytest.mark.edges

PATIENCE = 60.0


def write(table: Path, rows: Any, schema: Any, config: Any = None, **options: Any) -> Any:
    topology = rel.Topology("write")
    topology.source(rel.rows(rows, schema), name="rows").sink(rel.delta(table, **options), name="out")
    return rel.run(topology, config)["out"]


def read(table: Path | str, schema: Any = None, **options: Any) -> list[tuple[Any, ...]]:
    topology = rel.Topology("read")
    topology.source(rel.delta(table, schema, **options), name="rows").sink(rel.list(), name="out")
    return [tuple(one) for one in rel.run(topology)["out"]]


def held(table: Path) -> list[dict[str, Any]]:
    """What an outsider reads."""
    return sorted(DeltaTable(table).to_pyarrow_table().to_pylist(), key=lambda one: one["n"])


# --- what a row is --------------------------------------------------------------------------------------------------


def test_values_of_all_types_are_written_and_read_back(tmp_path: Path) -> None:
    at = dt.datetime(2024, 5, 1, 12, 0, 0, 123456)  # noqa: DTZ001  (as a stream without a zone has it)
    schema: Any = {
        "n": int,
        "f": float,
        "s": str | None,
        "b": bool | None,
        "raw": bytes,
        "at": dt.datetime | None,
        "day": dt.date,
        "d": Decimal,
        "numbers": list[int],
        "counts": dict[str, int],
        "json": rel.Json,
    }
    one = (
        2**63 - 1,
        -0.5,
        "ä",
        True,
        b"\xff\x00",
        at,
        at.date(),
        Decimal("1.250000000000000001"),
        [1, 2],
        {"a": 1},
        "{}",
    )
    none: Any = (-(2**63), float("inf"), None, None, b"", None, at.date(), Decimal(-1), [], {}, None)
    write(tmp_path / "t", [one, none], schema)
    assert sorted(read(tmp_path / "t", schema), reverse=True) == [one, none]
    assert sorted(read(tmp_path / "t"), reverse=True)[1] == none


def test_types_that_delta_lacks_become_larger_ones_or_are_errors(tmp_path: Path) -> None:
    columns = pa.schema([
        ("u8", pa.uint8()), ("u16", pa.uint16()), ("u32", pa.uint32()), ("u64", pa.uint64()), ("f16", pa.float16()),
        ("at", pa.timestamp("ns", "Europe/Berlin")), ("many", pa.list_(pa.uint8())),
    ])  # fmt: skip
    moment = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    values: list[Any] = [2**8 - 1, 2**16 - 1, 2**32 - 1, 2**64 - 1, 1.5, moment, [255]]
    table = pa.Table.from_arrays(
        [pa.array([one], kind) for one, kind in zip(values, columns.types, strict=True)], schema=columns
    )
    topology = rel.Topology("write")
    topology.source(rel.arrow(table), name="rows").sink(rel.delta(tmp_path / "t"), name="out")
    rel.run(topology)
    read_back = DeltaTable(tmp_path / "t").to_pyarrow_table()
    assert list(read_back.to_pylist()[0].values()) == [*values[:3], Decimal(2**64 - 1), *values[4:]]
    ids = rel.Topology("ids")
    ids.source(rel.rows([(uuid.UUID(int=7),)], {"id": uuid.UUID}), name="rows").sink(
        rel.delta(tmp_path / "i"), name="out"
    )
    rel.run(ids)
    assert DeltaTable(tmp_path / "i").to_pyarrow_table().to_pylist() == [{"id": str(uuid.UUID(int=7))}]
    for kind in (dt.time, dt.timedelta):
        with raises(SinkError, "unsupported-type", "'t'"):
            write(tmp_path / "t2", [], {"t": kind})


def test_a_value_that_delta_would_change_fails_the_job(tmp_path: Path) -> None:
    table = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    topology = rel.Topology("nanoseconds")
    topology.source(rel.arrow(table), name="rows").sink(rel.delta(tmp_path / "t"), name="out")
    with raises(JobFailedError, "unwritable-value", "'at'", operator="out"):
        rel.run(topology)
    with raises(JobFailedError, "unwritable-value", "'p'", "null", operator="out"):
        write(tmp_path / "p", [(1, "")], {"n": int, "p": str}, partition_by="p")
    assert held(tmp_path / "p") == []


# --- wrong declarations and other tables ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "options", "code"),
    [
        ({"n": int}, {"mode": "overwrite"}, "unknown-choice"),
        ({"n": int}, {"version": 3}, "conflicting-arguments"),
        ({"n": int}, {"partition_by": 3}, "wrong-type"),
        ({"n": int, "p": str}, {"partition_by": "m"}, "unknown-field"),
        ({"n": int, "p": list[int]}, {"partition_by": ["p"]}, "wrong-field-type"),
        ({"n": int}, {"partition_by": ["n"]}, "out-of-range"),
    ],
)
def test_wrong_arguments_are_errors_at_the_declaration(tmp_path: Path, schema: Any, options: Any, code: str) -> None:
    numbers = rel.Topology("wrong").source(rel.rows([], schema), name="rows")
    with raises(SinkError, code, "'out'"):
        numbers.sink(rel.delta(tmp_path / "t", **options), name="out")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("schema", "options", "text"),
    [
        ({"n": int, "p": str, "more": int}, {}, "no column 'more'"),
        ({"n": str, "p": str}, {}, "'n' of int64"),
        ({"n": int | None, "p": str}, {}, "without nulls"),
        ({"p": str}, {}, "needs a column 'n'"),
        ({"n": int, "p": str}, {"partition_by": "n"}, "partitioned by ['p']"),
    ],
)
def test_a_table_with_other_columns_is_an_error_at_the_declaration(
    tmp_path: Path, schema: Any, options: Any, text: str
) -> None:
    write(tmp_path / "t", [(1, "x")], {"n": int, "p": str}, partition_by="p")
    numbers = rel.Topology("wrong").source(rel.rows([], schema), name="rows")
    with raises(SinkError, "schema-mismatch", "'out'", text):
        numbers.sink(rel.delta(tmp_path / "t", **options), name="out")


def test_smaller_numbers_fit_and_columns_that_the_stream_lacks_are_null(tmp_path: Path) -> None:
    columns = pa.schema([("more", pa.string()), ("n", pa.int64()), ("f", pa.float64())])
    write_deltalake(tmp_path / "t", columns.empty_table(), mode="append")
    topology = rel.Topology("small")
    small = pa.table({"f": pa.array([0.5], pa.float32()), "n": pa.array([7], pa.int8())})
    topology.source(rel.arrow(small), name="rows").sink(rel.delta(tmp_path / "t"), name="out")
    rel.run(topology)
    assert held(tmp_path / "t") == [{"more": None, "n": 7, "f": 0.5}]


def test_a_missing_package_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "deltalake" else find(name, *more)
    )
    with raises(SinkError, "missing-package", "pip install 'rayelastic[delta]'"):
        write(tmp_path / "t", [(1,)], {"n": int})
    with raises(SourceError, "missing-package", "pip install 'rayelastic[delta]'"):
        read(tmp_path / "t")


# --- exactly once ---------------------------------------------------------------------------------------------------


class Committed(Trial):
    """A table that is written by epochs."""

    @property
    def table(self) -> Path:
        return self.folder / "out"

    def made(self, before: Output | None, run: str = "run") -> EpochSink:
        return EpochSink(TableTarget(DeltaSink(str(self.table)), SCHEMA), self.context(before, run))

    def seen(self) -> list[dict[str, Any]]:
        return held(self.table) if self.table.exists() else []

    def left(self, value: Any) -> list[dict[str, Any]]:
        assert value == str(self.table)
        return self.seen()


class OfTable(OfWriter):
    kind = Committed


def test_the_sink_keeps_the_protocol() -> None:
    assert check_sink(OfTable, lambda folder: [one["n"] for one in Committed(folder).seen()], range(4)).exactly_once


def test_each_row_is_there_once_whatever_is_lost_when() -> None:
    fates = st.sampled_from([fate for fate in FATES if fate != "lost, ended"])  # the job commits all before that

    @settings(max_examples=25, derandomize=True, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 50), fates), max_size=8))
    def play(life: list[tuple[int, str]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            played(Committed(Path(folder)), life)

    play()


class KilledError(BaseException):
    """Ends a writer as SIGKILL does."""


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["begin", "first commit", "second commit"])
def test_a_process_that_is_killed_at_a_commit_costs_and_doubles_no_row(
    tmp_path: Path, step: str, is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, append = Committed(tmp_path), TableTarget.append

    def dies(target: TableTarget, *arguments: Any) -> None:
        if is_written:
            append(target, *arguments)
        raise KilledError

    def killed(call: Callable[[], Any], *, here: bool) -> bool:
        if not here:
            call()
            return False
        with monkeypatch.context() as patch:
            patch.setattr(TableTarget, "append", dies)
            with pytest.raises(KilledError):
                call()
        return True

    saved: Output | None = None
    writer = trial.made(None)
    if killed(writer.begin, here=step == "begin"):
        writer = trial.begun(None)
    for epoch, name in enumerate(("first commit", "second commit"), 1):
        writer.write(batch(10 * epoch - 10, 10 * epoch))
        saved = trial.prepare(writer, epoch)
        if killed(lambda e=epoch, w=writer: w.commit(e), here=step == name):  # type: ignore[misc]
            writer = trial.begun(saved)
        assert trial.seen() == [row(n) for n in range(10 * epoch)]
    writer.close()
    assert trial.seen() == [row(n) for n in range(20)]


def test_two_jobs_from_one_checkpoint_and_older_checkpoints_are_rejected(tmp_path: Path) -> None:
    trial = Committed(tmp_path)
    first = trial.begun(None)
    first.write(batch(0, 10))
    old = trial.prepare(first, 1)
    first.commit(1)
    second = trial.made(old, "other")
    second.begin()
    first.write(batch(10, 20))
    trial.prepare(first, 2)
    with raises(SinkTakenError, "output-taken"):
        first.commit(2)
    with raises(SinkTakenError, "output-taken"):
        trial.prepare(first, 3)
    with raises(SinkTakenError, "output-taken"):  # its process is lost and recovers
        trial.made(old)
    second.write(batch(10, 15))
    trial.prepare(second, 12)
    second.commit(12)
    with raises(StateError, "output-ahead", "epoch 12", "drop="):
        trial.made(old, "third")
    assert trial.seen() == [row(n) for n in range(15)]


def test_a_writer_that_was_replaced_between_its_look_and_its_commit_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, append = Committed(tmp_path), TableTarget.append
    first = trial.begun(None)
    first.write(batch(0, 10))
    output = trial.prepare(first, 1)

    def late(target: TableTarget, *arguments: Any) -> None:
        monkeypatch.setattr(TableTarget, "append", append)
        trial.made(output, "other").begin()
        append(target, *arguments)

    monkeypatch.setattr(TableTarget, "append", late)
    with raises(SinkTakenError, "output-taken"):
        first.commit(1)
    assert trial.seen() == [row(n) for n in range(10)]


def test_two_jobs_on_one_table_both_append(tmp_path: Path) -> None:
    trials = [Committed(tmp_path), Committed(tmp_path)]
    trials[1].blobs = Blobs(tmp_path / "others")
    writers = [trial.made(None, run) for trial, run in zip(trials, ("one", "two"), strict=True)]
    for writer in writers:  # the second finds the table that the first has made since it looked
        writer.begin()
    for epoch in (1, 2, 3):
        for number, writer in enumerate(writers):
            start = 1000 * number + 10 * epoch
            writer.write(batch(start, start + 10))
            trials[number].prepare(writer, epoch)
            writer.commit(epoch)
    assert trials[0].seen() == [row(n) for start in (10, 1010) for n in range(start, start + 30)]


def test_a_table_that_was_made_again_or_lost_its_token_or_changed_is_rejected(tmp_path: Path) -> None:
    trial = Committed(tmp_path)
    writer = trial.begun(None)
    writer.write(batch(0, 10))
    output = trial.prepare(writer, 1)
    writer.commit(1)
    state = output.state
    columns = pa.table({"n": pa.array([], pa.int64()), "other": pa.array([], pa.string())})
    writer.write(batch(10, 20))
    trial.prepare(writer, 2)
    write_deltalake(trial.table, columns, mode="overwrite", schema_mode="overwrite")
    with raises(SinkError, "schema-mismatch", "no column 'text'"):
        writer.commit(2)
    for log in (trial.table / "_delta_log").iterdir():
        log.unlink()
    with raises(StateError, "missing-output", "was deleted since"):
        trial.made(output)
    write_deltalake(trial.table, SCHEMA.to_arrow().empty_table(), mode="append")
    with raises(StateError, "missing-output", "created again", "drop="):
        trial.made(output)
    there = f"{DeltaTable(trial.table).metadata().id}"
    old = state.split('"id": "')[1].split('"')[0]
    with raises(StateError, "missing-output", "setTransactionRetentionDuration"):
        trial.made(replace(output, state=state.replace(old, there)))


def test_a_job_whose_table_changes_fails_and_names_operator_and_column(tmp_path: Path) -> None:
    gate = testing.Gate()
    topology = rel.Topology("changed")
    source = testing.script([(1,), gate, (2,)], {"n": int})
    topology.source(source, name="rows").sink(rel.delta(tmp_path / "t"), name="out")
    with closing(rel.start(topology, rel.JobConfig(checkpoint=rel.Checkpoint(every=0.2, restarts=0)))) as job:
        wait_until(job, lambda: (tmp_path / "t").exists() and len(held(tmp_path / "t")) == 1, look=0.05)
        other = pa.table({"other": pa.array([], pa.string())})
        write_deltalake(tmp_path / "t", other, mode="overwrite", schema_mode="overwrite")
        gate.open()
        with raises(JobFailedError, "schema-mismatch", "'out'", "no column 'n'"):
            job.wait(PATIENCE)


def test_a_commit_that_fails_is_written_with_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Committed(tmp_path)
    writer = trial.begun(None)
    writer.write(batch(0, 10))
    trial.prepare(writer, 1)

    def fails(*_: Any, **__: Any) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("deltalake.write_deltalake", fails)
        with pytest.raises(SinkError, match=f"{trial.table}.*No space left"):
            writer.commit(1)
    writer.write(batch(10, 20))
    trial.prepare(writer, 2)
    writer.commit(2)
    assert trial.seen() == [row(n) for n in range(20)]


@pytest.mark.guarantee(source="rows", sink="a Delta table", lost="a PE, after each commit", rows="each once")
def test_a_job_that_recovers_again_and_again_writes_each_row_once(tmp_path: Path) -> None:
    gates = [testing.Gate() for _ in range(3)]
    events: list[Any] = [(n,) for n in range(400)]
    for number in (2, 1, 0):
        events.insert(100 * (number + 1), gates[number])
    topology = rel.Topology("recovers")
    topology.source(testing.script(events, {"n": int}), name="rows").sink(rel.delta(tmp_path / "t"), name="out")
    with closing(rel.start(topology, rel.JobConfig(checkpoint=rel.Checkpoint(every=0.2, restarts=10)))) as job:
        for number, gate in enumerate(gates, 1):
            wait_until(job, lambda rows=100 * number: len(held(tmp_path / "t")) == rows, look=0.05)  # type: ignore[misc]
            job._control._coordinator._recovery.lose(Failure("planted"))  # type: ignore[attr-defined]
            gate.open()
        job.wait(PATIENCE)
        assert job.status.checkpoints.restarts == 3
    assert [one["n"] for one in held(tmp_path / "t")] == list(range(400))


def test_savepoints_are_exact_or_rejected(tmp_path: Path) -> None:
    gate = testing.Gate()
    events: list[Any] = [(n,) for n in range(200)]
    events.insert(100, gate)

    def topology(source: Any) -> rel.Topology:
        made = rel.Topology("saved")
        made.source(source, name="rows").sink(rel.delta(tmp_path / "t"), name="out")
        return made

    job = rel.start(topology(testing.script(events, {"n": int})))
    with closing(job):
        assert gate.wait_reached(PATIENCE)
        job.stop(tmp_path / "saved")
        gate.open()
    assert [one["n"] for one in held(tmp_path / "t")] == list(range(100))
    again = topology(rel.rows([(n,) for n in range(200)], {"n": int}))
    rel.run(again, restore=tmp_path / "saved")
    assert [one["n"] for one in held(tmp_path / "t")] == list(range(200))
    with raises(StateError, "output-ahead", "'out'"):
        rel.run(again, restore=tmp_path / "saved")
    rel.run(again, restore=rel.Snapshot(tmp_path / "saved", drop=("out",)))
    assert len(held(tmp_path / "t")) == 300


# --- reading --------------------------------------------------------------------------------------------------------


def test_versions_partitions_and_columns_are_read(tmp_path: Path) -> None:
    table = tmp_path / "a table"
    rows = [(n, f"p {n % 2}/ä%", dt.date(2024, 1, 1 + n % 2)) for n in range(10)]
    schema: Any = {"n": int, "p": str | None, "day": dt.date}
    write(table, rows, schema, partition_by=["p", "day"])
    write(table, [(10, None, dt.date(2024, 1, 3))], schema)
    assert sorted(read(table)) == [*rows, (10, None, dt.date(2024, 1, 3))]
    assert sorted(read(table, version=1)) == rows
    assert read(table, version=0) == []
    assert sorted(read(table, {"number": int, "day": dt.date}, columns={"n": "number", "day": "day"})) == [
        (n, day) for n, _, day in [*rows, (10, None, dt.date(2024, 1, 3))]
    ]
    with raises(SourceError, "missing-file", "newest version is 3"):
        read(table, version=4)


def test_files_that_lack_a_newer_column_have_nulls(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"n": [1]}), mode="append")
    write_deltalake(tmp_path / "t", pa.table({"n": [2], "d": [Decimal("1.5")]}), mode="append", schema_mode="merge")
    assert sorted(read(tmp_path / "t")) == [(1, None), (2, Decimal("1.5"))]


def test_deleted_rows_are_gone_and_what_is_unsupported_is_an_error(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"n": [1, 2, 3]}), mode="append")
    DeltaTable(tmp_path / "t").delete("n = 2")
    assert sorted(read(tmp_path / "t")) == [(1,), (3,)]
    assert sorted(read(tmp_path / "t", version=0)) == [(1,), (2,), (3,)]
    log = tmp_path / "t" / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace('"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}'))
    with raises(SourceError, "unsupported-format", "column mapping"):
        read(tmp_path / "t")
    with raises(SourceError, "missing-file", "no Delta table"):
        read(tmp_path / "none")
    with raises(SourceError, "conflicting-arguments"):
        read(tmp_path / "t", partition_by="n")
    with raises(SourceError, "conflicting-arguments"):
        read(tmp_path / "t", mode="overwrite")


def test_a_restored_job_reads_the_version_that_it_has_begun_with(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"n": list(range(1000))}), mode="append")
    write_deltalake(tmp_path / "t", pa.table({"n": list(range(1000, 2000))}), mode="append")

    with closing(rel.start(slow(tmp_path, 500.0))) as job:
        wait_until(job, lambda: job.metrics().operator("rows").tuples_out > 100)
        job.stop(tmp_path / "saved")
    write_deltalake(tmp_path / "t", pa.table({"n": list(range(2000, 3000))}), mode="append")
    DeltaTable(tmp_path / "t").optimize.compact()
    rel.run(slow(tmp_path, 1e9), restore=tmp_path / "saved")
    assert sorted(parquet.read_table(tmp_path / "out").column("n").to_pylist()) == list(range(2000))
    write_deltalake(tmp_path / "other", pa.table({"n": [1]}), mode="append")
    for table, version in ((tmp_path / "other", None), (None, 0)):
        with raises(StateError, "changed-input", "'rows'", "version 1 of table"):
            rel.run(slow(tmp_path, 1e9, table, version), restore=tmp_path / "saved")


def slow(folder: Path, rate: float, table: Path | None = None, version: int | None = None) -> rel.Topology:
    made = rel.Topology("versions")
    rows = made.source(rel.delta(table or folder / "t", version=version), name="rows")
    rows.throttle(rate, name="paced").sink(rel.parquet(folder / "out"), name="out")
    return made


def test_windows_over_a_table_have_all_rows(tmp_path: Path) -> None:
    """Files aren't in the order of their times: each has a watermark of its own."""
    for hour in (5, 1, 3):
        at = [dt.datetime(2024, 1, 1, hour, n) for n in range(60)]  # noqa: DTZ001
        write_deltalake(tmp_path / "t", pa.table({"at": pa.array(at, pa.timestamp("us"))}), mode="append")
    for version in (0, 2):
        made = rel.Topology("windows")
        rows = made.source(rel.delta(tmp_path / "t", version=version), name="rows").event_time("at")
        rows.window(seconds=3600).aggregate(n=rel.count()).sink(rel.list(), name="out")
        assert [one.n for one in rel.run(made)["out"]] == [60] * (version + 1)


def test_a_table_in_an_object_store_is_written_and_read(tmp_path: Path) -> None:
    with object_store() as store:
        place = store.uri("lake/table")
        for start in (0, 5):
            topology = rel.Topology("write")
            rows = rel.rows([(n, f"p{n % 2}/ä") for n in range(start, start + 5)], {"n": int, "p": str})
            topology.source(rows, name="rows").sink(rel.delta(place, partition_by="p"), name="out")
            rel.run(topology, rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / f"{start}")))
        assert sorted(read(place)) == [(n, f"p{n % 2}/ä") for n in range(10)]
        target = TableTarget(DeltaSink(place), Schema.of({"n": int, "p": str}))
        assert "secret" not in target.shown
        store.failing.add("GET")
        with raises(SinkLostError, "sink-unreachable", "lake/table"):
            target.open()
        topology.source(rows, name="again").sink(rel.delta(place), name="other")  # it may answer when the job starts


def test_locations_of_stores_are_translated() -> None:
    uri, options = place_of("s3://key:a%2Fb@bucket/t?region=eu&endpoint_override=127.0.0.1:9000&scheme=http")
    assert uri == "s3://bucket/t"
    assert options == {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "a/b",
        "AWS_REGION": "eu",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "AWS_ALLOW_HTTP": "true",
        "connect_timeout": "10s",
        "timeout": "60s",
        "max_retries": "3",
        "retry_timeout": "20s",
    }
