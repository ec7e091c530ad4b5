"""Outputs in a store of objects, which can't refuse a name that it has: one owner all the same."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyarrow import csv

import rayelastic as rel
from rayelastic.connectors.output.folder import OutputFolder
from rayelastic.connectors.output.owner import OutputOwner
from rayelastic.connectors.output.record import SinkContext
from rayelastic.errors import DamagedError, SinkTakenError
from tests.component.connectors.object_store import Store, object_store
from tests.component.connectors.outputs import TOTAL, Held, writes
from tests.raising import raises

pytestmark = pytest.mark.edges

ALL = list(range(TOTAL))


@pytest.fixture
def store() -> Iterator[Store]:
    with object_store() as made:
        yield made


def rows_in(store: Store) -> list[int]:
    parts = sorted(key for key in store.objects if key.startswith("store/out/part-"))
    tables: list[pa.Table] = [csv.read_csv(io.BytesIO(store.objects[key])) for key in parts]
    return [n for table in tables for n in table.column("n").to_pylist()]


def test_jobs_and_savepoints_in_a_store_are_exact_or_rejected(store: Store, tmp_path: object) -> None:
    sink = rel.csv(store.uri("out"))
    first, places = Held(sink, [300, 600]), (f"{tmp_path}/A", f"{tmp_path}/B")
    for place in places:
        first.wait()
        first.job.snapshot(place)
    with raises(SinkTakenError, "output-taken"):
        rel.run(writes(sink, name="second"))
    first.end()
    for place in (places[1], places[0], places[0]):
        rel.run(writes(sink), restore=place)
        assert rows_in(store) == ALL
    with raises(DamagedError, "missing-output"):
        rel.run(writes(sink), restore=places[1])
    assert rows_in(store) == ALL


def test_of_two_that_claim_an_object_at_the_same_moment_one_has_it_at_most(store: Store) -> None:
    """The other one's claim is there when the first one looks whether it is alone."""
    folder = OutputFolder(store.uri("out"))
    write, rival = folder.write, f"store/out/.rayelastic/owner-00000001-{'f' * 8}.json"

    def written(name: str, data: bytes, *, new: bool) -> bool:
        store.objects[rival] = data
        return write(name, data, new=new)

    folder.write = written  # type: ignore[method-assign]
    with raises(SinkTakenError, "output-taken"):
        OutputOwner(folder, SinkContext("second", "out", "2"), "2")
    assert [key for key in store.objects if key.endswith(".json")] == [rival], "who isn't alone withdraws"


def test_a_claim_in_a_store_is_taken_over_once_its_process_is_gone(store: Store) -> None:
    folder = OutputFolder(store.uri("out"))
    first = OutputOwner(folder, SinkContext("first", "out", "1"), "1")
    [record] = [key for key in store.objects if key.endswith(".json")]
    held = json.loads(store.objects[record])
    held["process"]["started"] = "long ago"
    store.objects[record] = json.dumps(held).encode()
    second = OutputOwner(folder, SinkContext("second", "out", "2"), "2")
    with raises(SinkTakenError, "output-taken", "second"):
        first.check()
    second.check()
    first.release(changed=True)
    second.check()
    second.release(changed=True)
