"""Savepoints that earlier versions wrote are read, and jobs go on from them: files of theirs, no imitations."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import StateError
from rayelastic.runtime.values.snapshot import FORMAT
from tests.component.older_snapshot import CUT, KEY, ROWS, Row, declare
from tests.raising import raises

SNAPSHOTS = Path(__file__).parents[1] / "state" / "snapshots"


def outcome(number: int = 2, **options: Any) -> dict[str, list[tuple[Any, ...]]]:
    """What all sinks have in the end; between two streams of an operator there is no order.

    Pairs without a key are left out: earlier versions joined them.
    """
    result = rel.run(declare(rel.rows(ROWS, schema=Row), number), **options)
    of = {sink: [tuple(t) for t in result[sink]] for sink in result}
    of["pairs"] = [pair for pair in of["pairs"] if pair[0] is not None]
    return {sink: sorted(tuples, key=repr) for sink, tuples in of.items()}


@pytest.mark.parametrize("number", [2, FORMAT])
def test_a_job_goes_on_from_a_savepoint_of_a_format_that_users_have(number: int) -> None:
    saved = rel.Snapshot(SNAPSHOTS / f"format_{number}", key=KEY)
    body = json.loads(json.loads((SNAPSHOTS / f"format_{number}" / "manifest.json").read_text())["body"])
    assert body["format"] == number
    assert body["positions"] == {"rows": CUT}
    assert set(body["forms"]) > {"record", "value", "all", "windows", "sessions", "join", "object", "switch"}
    assert (number < 4) or set(body["forms"]) > {"counts", "folds", "timers", "match"}
    assert outcome(number, restore=saved) == outcome(number)


def test_a_savepoint_of_an_earlier_format_is_shown() -> None:
    states = rel.read_snapshot(rel.Snapshot(SNAPSHOTS / "format_2", key=KEY))
    keys = {row.key for row in ROWS[:CUT]}
    counted = {key: sum(row.key == key for row in ROWS[:CUT]) for key in keys}
    assert {row["key"]: row["rows"] for row in states["record"].to_pylist()} == counted
    assert {row["key"]: row["n"] for row in states["all"].to_pylist()} == counted
    values = {row["key"]: row["value"]["all"] for row in states["value"].to_pylist()}
    assert values == {key: [row.n for row in ROWS[:CUT] if row.key == key] for key in keys}
    assert states["object"].to_pylist() == [{"value": {"total": sum(range(CUT))}}]


@pytest.mark.edges
def test_files_of_an_earlier_format_are_never_written_to_by_guess(tmp_path: Path) -> None:
    """It has no list of the parts, so nothing can say whether they are what was written."""
    document = json.loads((SNAPSHOTS / "format_2" / "manifest.json").read_text())
    body = json.loads(document["body"])
    body["outputs"]["pairs"]["location"] = "pairs.csv"
    folder = shutil.copytree(SNAPSHOTS / "format_2", tmp_path / "saved")
    text = json.dumps(body)
    signed = hmac.new(KEY, text.encode(), "sha256").hexdigest()
    changed = {"body": text, "sha256": hashlib.sha256(text.encode()).hexdigest(), "hmac": signed}
    (folder / "manifest.json").write_text(json.dumps(changed))
    folder.chmod(0o700)
    with raises(StateError, "older-version", "pairs", "drop="):
        outcome(restore=rel.Snapshot(folder, key=KEY))
    assert outcome(restore=rel.Snapshot(folder, key=KEY, drop=("pairs",)))["records"] == outcome()["records"]
