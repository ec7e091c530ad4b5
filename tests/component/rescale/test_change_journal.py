"""The journal of changes: what a coordinator leaves to the next one, in a file that one alone can have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rayelastic.errors import JobExistsError
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.runtime.journal import ChangeJournal, SavedAt
from tests.file_store import FileStore
from tests.raising import raises

REGION = Region("r1", RegionKind.DATA_PARALLEL, ("count",), ("word",))
PLAN = ExecPlan("words", (RegionPlan(REGION, (Pipeline(("count",), ("pe0",)),)),))
CHANGE = plan_change(PLAN, PLAN.with_replicas("r1", 2, ("pe0", "pe1")))


def test_the_next_coordinator_knows_how_far_a_change_got(tmp_path: Path) -> None:
    first = ChangeJournal(FileStore(tmp_path / "journal"))
    assert first.started() == 1
    first.begin(CHANGE, batch=40)
    first.moved(2)
    first.close()
    second = ChangeJournal(FileStore(tmp_path / "journal"))
    assert second.started() == 2
    assert second.plan == PLAN
    assert second.open_change is not None
    assert (second.open_change.change, second.open_change.batch, second.open_change.moved) == (CHANGE, 40, 2)
    second.undo(1)
    second.close()
    third = ChangeJournal(FileStore(tmp_path / "journal"))
    assert third.open_change is not None
    assert (third.open_change.moved, third.open_change.undoing) == (2, 1)
    third.end(PLAN)
    third.close()
    last = ChangeJournal(FileStore(tmp_path / "journal"))
    assert (last.plan, last.open_change, last.incarnation) == (PLAN, None, 2)
    last.close()


def test_the_next_coordinator_knows_the_secret_that_was_renewed(tmp_path: Path) -> None:
    first = ChangeJournal(FileStore(tmp_path / "journal"))
    assert first.secret == b""
    first.secret = bytes(range(32))
    first.end(PLAN)
    first.close()
    second = ChangeJournal(FileStore(tmp_path / "journal"))
    assert second.secret == bytes(range(32))
    second.checkpointed(SavedAt(1, "here"), PLAN, keep=3)  # alone tells all
    second.close()
    third = ChangeJournal(FileStore(tmp_path / "journal"))
    assert third.secret == bytes(range(32))
    third.close()


def test_a_line_that_was_not_ended_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = ChangeJournal(FileStore(path))
    first.begin(CHANGE, batch=40)
    first.close()
    with path.open("a") as file:
        file.write('{"kind": "moved", "cou')
    second = ChangeJournal(FileStore(path))
    assert second.open_change is not None
    assert second.open_change.moved == 0
    second.moved(1)
    second.close()
    third = ChangeJournal(FileStore(path))
    assert third.open_change is not None
    assert third.open_change.moved == 1
    third.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_is_on_the_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, synced = tmp_path / "journal", []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(path.read_text().count("\n")))
    store = FileStore(path)
    for number in range(3):
        store.append(f"line {number}", alone=number == 1)
    assert synced == [1, 2, 3]
    assert store.lines() == ["line 0", "line 1", "line 2"]
    store.append("line 3", alone=False)
    assert store.lines()[-1] == "line 3"
    store.close()


def test_what_is_left_of_a_line_goes_whatever_letters_are_before_it(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("größer\nhalb")
    store = FileStore(path)
    assert store.lines() == ["größer"]
    assert path.read_text() == "größer\n"
    store.close()


def test_a_second_coordinator_is_refused(tmp_path: Path) -> None:
    first = ChangeJournal(FileStore(tmp_path / "journal"))
    with raises(JobExistsError, "second-coordinator"):
        ChangeJournal(FileStore(tmp_path / "journal"))
    first.close()
    ChangeJournal(FileStore(tmp_path / "journal")).close()
