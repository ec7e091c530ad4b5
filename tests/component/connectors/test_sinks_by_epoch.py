"""Sinks that are brought through checkpoints: whatever is lost when, whoever reads at the end finds each row once."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayelastic.connectors.csv.writer import CsvFormat
from rayelastic.connectors.json.writer import JsonFormat
from rayelastic.connectors.output.kept_rows import KeptRows
from rayelastic.connectors.output.part_folder import PartFolder
from rayelastic.connectors.output.record import Output, SinkContext
from rayelastic.connectors.output.single_file import SingleFile
from rayelastic.connectors.parquet.growing_table import GrowingTable
from rayelastic.connectors.parquet.writer import ParquetFormat
from rayelastic.errors import SinkTakenError, StateError
from rayelastic.graph.records.schema import Schema
from tests.component.runtime.checkpoint_folder import Blobs
from tests.raising import raises

SCHEMA = Schema.of({"n": int, "text": str})
TOTAL = 200  # rows of a whole stream
HOUR = 3600.0


def row(n: int) -> dict[str, Any]:
    return {"n": n, "text": f'"{n}",\nof "a" text' if n % 3 else ""}


def batch(start: int, stop: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row(n) for n in range(start, stop)], schema=SCHEMA.to_arrow())


def read_files(target: Path, form: str) -> list[dict[str, Any]]:
    """What an outsider sees: files by their order, none that is hidden."""
    shown = [file for file in target.iterdir() if not file.name.startswith(".")] if target.is_dir() else [target]
    seen = sorted(shown, key=lambda file: int(file.stem.split("-")[1]) if target.is_dir() else 0)
    options = pa.csv.ParseOptions(newlines_in_values=True) if form == "csv" else None
    if not seen:
        return []
    if form == "jsonl":
        return [json.loads(line) for file in seen for line in file.read_text().splitlines()]
    kind = dataset.CsvFileFormat(options) if form == "csv" else form
    table = dataset.dataset(seen, schema=SCHEMA.to_arrow(), format=kind).to_table()
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


class Trial:
    """A sink of one kind that is written, checkpointed and lost."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs = Blobs(folder / "blobs")

    def context(self, before: Output | None, run: str = "run") -> SinkContext:
        outputs = {} if before is None else {"out": before}
        return SinkContext("job", "out", run, outputs, self.blobs, own=run == "run", blobs="pe0-0000")

    def begun(self, before: Output | None) -> Any:
        writer = self.made(before)
        if hasattr(writer, "begin"):
            writer.begin()
        return writer

    def made(self, before: Output | None) -> Any:
        raise NotImplementedError

    def prepare(self, writer: Any, epoch: int) -> Output:
        output: Output = writer.prepare(epoch, self.blobs)
        return Output(**json.loads(json.dumps(asdict(output))))  # as a manifest has it

    def abandon(self, writer: Any) -> None:
        """Leaves a writer as a process does that is killed."""

    def forget(self, output: Output, complete: Output) -> None:
        """Removes what a checkpoint that didn't become complete has, and the last complete one hasn't."""
        for blob in set(output.blobs) - set(complete.blobs):
            (self.blobs.folder / blob.name).unlink()

    def seen(self) -> list[dict[str, Any]]:
        """What readers see while the job runs."""
        return []

    def left(self, value: Any) -> list[dict[str, Any]]:
        raise NotImplementedError


class Folder(Trial):
    form: Callable[[Schema], Any] = ParquetFormat
    kind = "parquet"

    def made(self, before: Output | None) -> PartFolder:
        return PartFolder(str(self.folder / "out"), type(self).form(SCHEMA), self.context(before))

    def seen(self) -> list[dict[str, Any]]:
        return read_files(self.folder / "out", self.kind) if (self.folder / "out").is_dir() else []

    def left(self, value: Any) -> list[dict[str, Any]]:
        assert not [file.name for file in Path(value).parent.rglob(".*") if file.is_file()]
        return read_files(Path(value), self.kind)


class CsvFolder(Folder):
    form = CsvFormat
    kind = "csv"


class ParquetFile(Folder):
    def seen(self) -> list[dict[str, Any]]:
        return []  # it appears at the end

    def made(self, before: Output | None) -> Any:
        return SingleFile(str(self.folder / f"out.{self.kind}"), type(self).form(SCHEMA), self.context(before))


class CsvFile(ParquetFile):
    form = CsvFormat
    kind = "csv"


class JsonFolder(Folder):
    form = JsonFormat
    kind = "jsonl"


class JsonFile(ParquetFile):
    form = JsonFormat
    kind = "jsonl"


class Growing(Folder):
    def made(self, before: Output | None) -> Any:
        return GrowingTable(
            str(self.folder / "out"), SCHEMA, HOUR, self.context(before), part_rows=30, takes_checkpoints=True
        )

    def abandon(self, writer: Any) -> None:
        writer._closed.set()


class Kept(Trial):
    def made(self, before: Output | None) -> KeptRows:
        return KeptRows(SCHEMA, "pe0-0000", before, self.blobs)

    def left(self, value: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = value.to_pylist()
        return rows


KINDS = [Folder, CsvFolder, JsonFolder, ParquetFile, CsvFile, JsonFile, Growing, Kept]
FATES = [
    "told",  # the checkpoint is complete, and the sink hears of it
    "told late",  # after more rows have come
    "not told",  # only whoever goes on shows it
    "not complete",  # another element couldn't prepare; the job goes on
    "lost",  # with rows that no checkpoint has
    "lost, prepared",
    "lost, complete",
    "lost, told",
    "lost, ended",  # the sink has come to its end, another element hasn't
]
LIVES = st.lists(st.tuples(st.integers(0, 50), st.sampled_from(FATES)), max_size=8)


def played(trial: Trial, life: Sequence[tuple[int, str]]) -> None:
    """Plays a life: an epoch is so many rows and what becomes of it."""
    writer, position, late = trial.begun(None), 0, 0
    complete = (1, 0, trial.prepare(writer, 1))  # the first one is made before there are rows
    for epoch, (count, fate) in enumerate(life, 2):
        for _ in range(2):
            stop = min(TOTAL, position + count)
            if stop > position:
                writer.write(batch(position, stop))
            position = stop
        writer.commit(late)
        if fate == "lost, ended":
            writer.write(batch(position, TOTAL + 1))
            writer.close()
        elif fate != "lost":
            prepared = (epoch, position, trial.prepare(writer, epoch))
            assert prepared[2].rows == position
            if fate in ("not complete", "lost, prepared"):
                trial.forget(prepared[2], complete[2])
            else:
                complete = prepared
        if fate in ("told", "lost, told"):
            writer.commit(complete[0])
            writer.commit(complete[0])
        late = complete[0] if fate == "told late" else 0
        if fate.startswith("lost"):
            trial.abandon(writer)
            _, position, output = complete
            writer = trial.begun(output)
        assert trial.seen() == [row(n) for n in range(complete[1])][: len(trial.seen())]
    if position < TOTAL:
        writer.write(batch(position, TOTAL))
    assert trial.left(writer.close()) == [row(n) for n in range(TOTAL)]


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_there_once_whatever_is_lost_when(kind: Callable[[Path], Trial]) -> None:
    @settings(max_examples=40, derandomize=True, deadline=None)
    @given(LIVES)
    def play(life: Sequence[tuple[int, str]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            played(kind(Path(folder)), life)

    play()


@pytest.mark.parametrize("kind", KINDS)
def test_a_sink_that_ended_before_the_first_checkpoint_and_is_lost_then_has_each_row_once(
    kind: Callable[[Path], Trial], tmp_path: Path
) -> None:
    trial = kind(tmp_path)
    for _ in range(2):
        writer = trial.begun(None)
        for start in range(0, TOTAL, 40):
            writer.write(batch(start, start + 40))
        left = writer.close()
    assert trial.left(left) == [row(n) for n in range(TOTAL)]


def test_a_growing_table_keeps_what_other_runs_wrote(tmp_path: Path) -> None:
    for run in ("first", "second", "second"):
        context = SinkContext("job", "out", run)
        table = GrowingTable(str(tmp_path), SCHEMA, HOUR, context, part_rows=30, takes_checkpoints=True)
        table.begin()
        table.write(batch(0, TOTAL))
        table.close()
        table.abandon()
    assert read_files(tmp_path, "parquet") == [row(n) for n in range(TOTAL)] * 2


def test_a_checkpoint_gets_what_is_new_in_few_blobs(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    rows, written, epochs = KeptRows(SCHEMA, "rows"), 0, 200
    for epoch in range(1, epochs + 1):
        rows.write(batch(10 * epoch, 10 * epoch + 10))
        output = rows.prepare(epoch, blobs)
        rows.commit(epoch)
        assert len(output.blobs) <= epochs.bit_length()
        written += sum(blob.rows for blob in output.blobs if blob.name == f"rows-{epoch:06}.rows")
    assert written <= 10 * epochs * epochs.bit_length()
    files = len(list(blobs.folder.iterdir()))
    assert rows.prepare(epochs + 1, blobs).blobs == output.blobs
    assert len(list(blobs.folder.iterdir())) == files, "no rows, no file"


@pytest.mark.parametrize("keep", [1, 3])
def test_blobs_that_no_checkpoint_counts_on_are_removed_while_the_job_runs(tmp_path: Path, keep: int) -> None:
    blobs = Blobs(tmp_path / "blobs")
    rows, kept = KeptRows(SCHEMA, "rows", keep=keep), list[Any]()
    for epoch in range(1, 51):
        rows.write(batch(10 * epoch, 10 * epoch + 10))
        output = rows.prepare(epoch, blobs)
        if epoch % 5 == 0:
            continue  # it is never complete
        rows.commit(epoch)
        kept = [*kept, output][-keep:]
        assert {file.name for file in blobs.folder.iterdir()} == {blob.name for one in kept for blob in one.blobs}
    for one in kept:
        assert KeptRows(SCHEMA, "rows", one, blobs, keep).rows == one.rows
    later = KeptRows(SCHEMA, "rows", kept[-1], blobs, keep)
    later.write(batch(0, 1000))
    for epoch in range(60, 60 + keep):
        output = later.prepare(epoch, blobs)
        later.commit(epoch)
    assert not {blob.name for blob in kept[-1].blobs} & {file.name for file in blobs.folder.iterdir()}


def test_rows_whose_schema_is_another_now_or_whose_checkpoint_is_missing_are_refused(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    rows = KeptRows(SCHEMA, "rows")
    rows.write(batch(0, 10))
    output = rows.prepare(1, blobs)
    with raises(StateError, "changed-state"):
        KeptRows(Schema.of({"n": float}), "rows", output, blobs)
    with raises(StateError, "missing-output"):
        KeptRows(SCHEMA, "rows", output)


@pytest.mark.edges
@pytest.mark.parametrize("kind", [Folder, Growing, ParquetFile])
def test_a_writer_that_was_given_up_shows_nothing_and_replaces_nothing(
    kind: Callable[[Path], Trial], tmp_path: Path
) -> None:
    trial = kind(tmp_path)
    given_up = trial.begun(None)
    given_up.write(batch(0, 10))
    output = trial.prepare(given_up, 1)
    given_up.commit(1)
    given_up.write(batch(10, 30))
    trial.prepare(given_up, 2)
    successor = trial.begun(output)
    successor.write(batch(10, 20))
    trial.prepare(successor, 3)
    successor.commit(3)
    there = {file: file.read_bytes() for file in tmp_path.rglob("*part-*") if file.is_file()}
    for late in (lambda: given_up.commit(2), lambda: given_up.prepare(4, trial.blobs), given_up.close):
        if kind is ParquetFile and late is not given_up.close:
            continue  # it shows nothing before its end
        with raises(SinkTakenError, "output-taken"):
            late()
    assert {file: file.read_bytes() for file in tmp_path.rglob("*part-*") if file.is_file()} == there
    successor.write(batch(20, TOTAL))
    assert trial.left(successor.close()) == [row(n) for n in range(TOTAL)]
    trial.abandon(given_up)
