"""Restoring state of operators that have no name of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from tests.raising import raises

pytestmark = pytest.mark.edges
PATIENCE = 60.0
ROWS = [("a", 1), ("a", 2), ("a", 5)]


class Event(NamedTuple):
    key: str
    n: int


class Total(NamedTuple):
    total: int = 0


def total(t: Any, s: Any) -> int:
    s.total += t.n
    return s.total


Declare = Callable[[Any], Any]


def declared(rows: Any, declare: Declare) -> rel.Topology:
    topology = rel.Topology("automatic")
    declare(topology.source(rows, name="events").key_by("key")).sink(rel.list(), name="out")
    return topology


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Declare], Path]:
    def save(declare: Declare) -> Path:
        gate = testing.Gate()
        job = rel.start(declared(testing.script([*ROWS[:2], gate, *ROWS[2:]], Event), declare))
        assert gate.wait_reached(PATIENCE)
        job.stop(tmp_path / "saved")
        return tmp_path / "saved"

    return save


def restored(declare: Declare, folder: Path | rel.Snapshot) -> list[Any]:
    found: list[Any] = rel.run(declared(testing.script(ROWS, Event), declare), restore=folder)["out"]
    return [tuple(t) for t in found]


def test_state_is_found_by_an_automatic_name(saved: Any) -> None:
    once: Declare = lambda s: s.map(total, state=Total, schema=int)  # noqa: E731
    assert restored(once, saved(once)) == [(8,)]  # with what the first run had


def test_an_operator_before_takes_the_name(saved: Any) -> None:
    """Without the check, the first map would go on with the state of the second."""
    sums: Declare = lambda s: s.key_by("key").aggregate(emit="update", n=rel.sum("n"))  # noqa: E731
    folder = saved(lambda s: sums(s.filter(lambda t: True)))
    with raises(StateError, "automatic-name", operator="aggregate"):
        restored(lambda s: sums(sums(s).filter(lambda t: True)), folder)


def test_the_name_is_written_where_the_state_belongs(saved: Any) -> None:
    folder = saved(lambda s: s.filter(lambda t: True).key_by("key").aggregate(n=rel.sum("n")))
    changed = lambda s, **name: s.aggregate(emit="update", n=rel.count()).map(  # noqa: E731
        lambda t: (t.key, t.n), schema=Event
    ).key_by("key").aggregate(**name, n=rel.sum("n"))  # fmt: skip
    with raises(StateError, "automatic-name", "aggregate", "name="):
        restored(changed, folder)
    assert restored(lambda s: s.aggregate(name="aggregate", n=rel.sum("n")), folder) == [("a", 8)]


def test_a_name_that_was_given_and_no_longer_is(saved: Any) -> None:
    folder = saved(lambda s: s.aggregate(name="sums", n=rel.sum("n")))
    with pytest.raises(StateError) as error:
        restored(lambda s: s.aggregate(n=rel.sum("n")), folder)
    assert f"Write name='sums' for the aggregate at {Path(__file__)}" in str(error.value)


def test_a_source_without_its_name(saved: Any) -> None:
    folder = saved(lambda s: s.aggregate(n=rel.sum("n")))
    topology = rel.Topology("automatic")
    topology.source(testing.script(ROWS, Event)).key_by("key").aggregate(n=rel.sum("n")).sink(rel.list(), name="out")
    with raises(StateError, "automatic-name", "events", "name="):
        rel.run(topology, restore=folder)
