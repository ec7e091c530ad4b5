"""The journal in Ray's store: what becomes of a line whose answer is lost. The store is a dictionary here."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rayelastic.errors import JobExistsError, UnavailableError
from rayelastic.on_ray.store import gcs_store
from rayelastic.on_ray.store.gcs_store import GcsStore
from tests.raising import raises


class Kept:
    """Keys and values as the GCS keeps them; its next answers may be lost."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.lost_before = 0  # of so many requests to put, which aren't carried out
        self.lost_after = 0  # of so many answers
        self.deletes = True

    def kv_put(self, key: str, value: bytes, namespace: str, *, overwrite: bool = True) -> bool:
        if self.lost_before:
            self.lost_before -= 1
            raise RuntimeError("no answer")
        there = key in self.values
        if overwrite or not there:
            self.values[key] = value
        if self.lost_after:
            self.lost_after -= 1
            raise RuntimeError("no answer")
        return there

    def kv_get(self, key: str, namespace: str) -> bytes | None:
        return self.values.get(key)

    def kv_keys(self, prefix: str, namespace: str) -> Sequence[str]:
        return sorted(key for key in self.values if key.startswith(prefix))

    def kv_delete(self, key: str, namespace: str, *, prefix: bool = False) -> None:
        if not self.deletes:
            raise RuntimeError("no answer")
        self.values.pop(key, None)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    made = Kept()
    monkeypatch.setattr(gcs_store, "adapter", made)
    return made


def test_a_line_that_is_not_carried_out_is_told_and_the_next_one_takes_its_place(kept: Kept) -> None:
    store = GcsStore("job")
    store.append("one", alone=False)
    kept.lost_before = 1
    with raises(UnavailableError, "journal-not-written"):
        store.append("two", alone=False)
    store.append("three", alone=False)
    assert GcsStore("job").lines() == ["one", "three"]


def test_a_line_whose_answer_is_lost_is_no_other_coordinators(kept: Kept) -> None:
    store = GcsStore("job")
    store.append("one", alone=False)
    kept.lost_after = 1
    with pytest.raises(UnavailableError):
        store.append("two", alone=False)
    store.append("three", alone=False)
    store.append("four", alone=False)
    assert GcsStore("job").lines() == ["one", "two", "three", "four"]


def test_nothing_is_guessed_where_answers_are_lost_twice(kept: Kept) -> None:
    store = GcsStore("job")
    kept.lost_after = 2
    for line in ("one", "two"):
        with pytest.raises(UnavailableError):
            store.append(line, alone=False)
    store.append("three", alone=False)
    assert GcsStore("job").lines() == ["one", "three"]


def test_another_coordinator_is_noticed_behind_a_lost_answer_too(kept: Kept) -> None:
    store = GcsStore("job")
    store.append("one", alone=False)
    kept.lost_before = 1
    with pytest.raises(UnavailableError):
        store.append("two", alone=False)
    other = GcsStore("job")
    assert other.lines() == ["one"]
    other.append("started", alone=False)
    with raises(JobExistsError, "second-coordinator"):
        store.append("three", alone=False)


def test_old_lines_that_can_not_be_removed_do_not_fail_the_new_one(kept: Kept) -> None:
    store = GcsStore("job")
    store.append("one", alone=False)
    kept.deletes = False
    store.append("two", alone=True)
    kept.deletes = True
    assert GcsStore("job").lines() == ["one", "two"]
    store.append("three", alone=True)
    assert GcsStore("job").lines() == ["three"]
