"""State with fields of type `typing.Any` is restored by the process that declared it, and refused by others at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from rayelastic.graph.records.sealing import seal_of_this_process
from tests.raising import raises

PATIENCE = 60.0
KEY = b"of saved objects alone"


class Row(NamedTuple):
    key: str
    at: int
    given: Any


ROWS = [Row("a", n, {"n": n}) for n in range(50)]


def folded(timed: Any) -> Any:
    return timed.window(seconds=20).fold(lambda ns, t: [*ns, t.given["n"]], [], name="kept", schema={"ns": list[int]})


def joined(timed: Any) -> Any:
    return timed.join(timed, name="kept", within=(3, 3))


def latest(timed: Any) -> Any:
    return timed.window(seconds=20).aggregate(name="kept", last=rel.last("given"))


def summed(timed: Any) -> Any:
    return timed.window(seconds=20).aggregate(name="kept", n=rel.sum("at"))


def declare(source: Any, keep: Callable[[Any], Any]) -> rel.Topology:
    topology = rel.Topology("objects")
    timed = topology.source(source, name="rows").event_time("at", name="timed", lateness=10).key_by("key")
    keep(timed).sink(rel.list(), name="out")
    return topology


@pytest.fixture(autouse=True)
def _seals() -> Iterator[None]:
    yield
    seal_of_this_process.cache_clear()


@pytest.mark.parametrize("keep", [folded, joined, latest, summed])
def test_objects_in_state_are_refused_by_another_process_before_it_starts(
    tmp_path: Path, keep: Callable[[Any], Any]
) -> None:
    saved, gate = rel.Snapshot(tmp_path, key=KEY), testing.Gate()
    job = rel.start(declare(testing.script([*ROWS[:30], gate], Row), keep))
    try:
        assert gate.wait_reached(PATIENCE)
        job.snapshot(saved)
    finally:
        gate.open()
        job.close()
    whole = rel.run(declare(rel.rows(ROWS, schema=Row), keep))["out"]
    assert rel.run(declare(rel.rows(ROWS, schema=Row), keep), restore=saved)["out"] == whole
    seal_of_this_process.cache_clear()  # as another process has it
    other = declare(rel.rows(ROWS, schema=Row), keep)
    if keep is summed:
        assert rel.run(other, restore=saved)["out"] == whole
        return
    with raises(StateError, "foreign-objects", "kept"):
        rel.run(other, restore=saved)
