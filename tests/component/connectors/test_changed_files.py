"""A file that shrinks or changes while it is read fails its source by name; one that grows is read on (E9)."""

from __future__ import annotations

import gzip
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors import source as sources
from rayelastic.connectors.csv import reader as csv_batches
from rayelastic.connectors.json import lines as json_text
from rayelastic.connectors.parquet import reader as parquet
from rayelastic.errors import JobFailedError, SourceError
from tests.raising import raises
from tests.waiting import wait_until_received

pytestmark = pytest.mark.edges

PATIENCE = 60.0
COUNT = 20_000
FORMS = ["text", "text.gz", "csv", "json", "parquet"]


@pytest.fixture(autouse=True)
def small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FEEDER_BYTES", 1 << 18)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 500)
    monkeypatch.setattr(json_text, "BLOCK_BYTES", 1 << 16)  # pyarrow reads several ahead
    monkeypatch.setattr(csv_batches, "BLOCK_BYTES", 1 << 16)


def write(form: str, path: Path, count: int = COUNT) -> None:
    lines = [f"{n} " + os.urandom(200).hex() for n in range(count)]
    if form == "text":
        path.write_text("".join(f"{line}\n" for line in lines))
    elif form == "text.gz":
        path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), 1))
    elif form == "csv":
        path.write_text("line\n" + "".join(f"{line}\n" for line in lines))
    elif form == "json":
        path.write_text("".join(json.dumps({"line": line}) + "\n" for line in lines))
    else:
        pq.write_table(pa.table({"line": lines}), path, row_group_size=500, use_dictionary=False, compression="none")


def reading(form: str, paths: Any, gate: testing.Gate) -> rel.Topology:
    """Return a topology that stands at the gate with its hundredth row, which makes the source wait soon."""
    seen = itertools.count()

    def held(_: Any) -> bool:
        if next(seen) == 100:
            gate._pass()
        return True

    topology = rel.Topology("reading")
    source = rel.text(paths) if form.startswith("text") else getattr(rel, form)(paths, schema={"line": str})
    topology.source(source, name="rows").filter(held, name="held", lane="python").sink(rel.count(), name="out")
    return topology


def truncated(form: str, path: Path) -> None:
    os.truncate(path, 0)


def written_anew(form: str, path: Path) -> None:
    write(form, path, COUNT + 1000)


def replaced(form: str, path: Path) -> None:
    write(form, path.with_name("another"), COUNT)
    path.with_name("another").rename(path)


def removed(form: str, path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", [truncated, written_anew, replaced, removed])
def test_a_file_that_changes_fails_its_source(form: str, change: Callable[[str, Path], None], tmp_path: Path) -> None:
    path, gate = tmp_path / f"in.{form}", testing.Gate()
    write(form, path)
    job = rel.start(reading(form, path, gate))
    try:
        assert gate.wait_reached(PATIENCE)
        change(form, path)
        gate.open()
        with pytest.raises(JobFailedError) as failed:
            job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()
    assert failed.value.operator == "rows"
    assert path.name in failed.value.reason
    words = {
        "truncated": "bytes and has 0 now",
        "written_anew": "was written anew",
        "replaced": "was replaced by another file",
        "removed": "was removed",
    }
    assert words[change.__name__] in failed.value.reason


@pytest.mark.parametrize("form", FORMS)
def test_so_does_one_of_a_glob_that_is_not_open_yet(form: str, tmp_path: Path) -> None:
    gate = testing.Gate()
    write(form, tmp_path / f"a.{form}")
    write(form, tmp_path / f"b.{form}", 10)
    job = rel.start(reading(form, str(tmp_path / f"*.{form}"), gate))
    try:
        assert gate.wait_reached(PATIENCE)
        write(form, tmp_path / f"b.{form}", 5)
        gate.open()
        with raises(JobFailedError, "source-failed", f"b.{form}", operator="rows"):
            job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_rows_that_are_appended_while_it_is_read_are_read(form: str, tmp_path: Path) -> None:
    path, gate = tmp_path / f"in.{form}", testing.Gate()
    write(form, path)
    job = rel.start(reading(form, path, gate))
    try:
        assert gate.wait_reached(PATIENCE)
        with path.open("a") as file:
            file.write('{"line": "more"}\n' if form == "json" else "more\n")
        gate.open()
        assert job.wait(PATIENCE)["out"] == COUNT + 1
    finally:
        gate.open()
        job.close()


@pytest.mark.parametrize("form", FORMS)
def test_no_savepoint_takes_the_position_in_another_file_for_one_in_the_first(form: str, tmp_path: Path) -> None:
    path, gate = tmp_path / f"in.{form}", testing.Gate()
    write(form, path, 100)
    topology = reading(form, path, testing.Gate())
    topology.source(testing.script([gate, (1,)], {"n": int}), name="others").sink(rel.count(), name="more")
    job = rel.start(topology)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_received(job, "held", 100)
        replaced(form, path)
        with raises(SourceError, "changed-file", "rows"):
            job.snapshot(tmp_path / "saved")
        gate.open()
        job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()
