"""What can't be saved from the first tuple on is refused before anything starts, where checkpoints are asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import StateError
from rayelastic.fluent.stream import Stream
from tests.raising import raises


class Row(NamedTuple):
    key: int
    at: int


class Locked:
    def __init__(self) -> None:
        self.lock = threading.Lock()


def keep(t: Row, kept: Any) -> Row:
    return t


class Timed:
    def on_tuple(self, t: Row, kept: Any, out: rel.Out) -> None:
        out.give(t)


@rel.operator(outputs={"out": Row}, state=Locked)
class ByKey:
    def invoke(self, t: Row, kept: Any) -> list[Row]:
        return [t]


def fails() -> Any:
    raise OSError("no such file")


VALUE = r"what a key begins with can't be pickled: TypeError: cannot pickle '_thread.lock' object"
REFUSED: dict[str, tuple[Callable[[Stream], Stream], str]] = {
    "state of keys": (
        lambda s: s.key_by("key").map(keep, name="keeps", state=Locked, schema=Row, lane="python"),
        VALUE,
    ),
    "a class with timers": (
        lambda s: (
            s.event_time("at", name="time")
            .key_by("key")
            .process(Timed, name="keeps", state=Locked, schema=Row, lane="python")
        ),
        VALUE,
    ),
    "a class by key": (lambda s: s.key_by("key").apply(ByKey(), name="keeps"), VALUE),
}


def declared(declare: Callable[[Stream], Stream]) -> rel.Topology:
    topology = rel.Topology("first")
    declare(topology.source(rel.rows([Row(1, 1), Row(2, 2)], schema=Row), name="rows")).sink(rel.count(), name="out")
    return topology


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_by_name(case: str, tmp_path: Path) -> None:
    declare, why = REFUSED[case]
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved"))
    with raises(StateError, "not-saveable", str(why)):
        rel.start(declared(declare), config)
    assert not (tmp_path / "saved").exists()
    assert rel.run(declared(declare))["out"] == 2, "without checkpoints it runs"


def test_a_first_value_that_fails_is_told_where_its_key_comes(tmp_path: Path) -> None:
    def declare(s: Stream) -> Stream:
        none = s.filter(lambda t: t.key > 5, name="none").key_by("key")
        return none.map(keep, name="keeps", state=fails, schema=Row, lane="python")

    assert rel.run(declared(declare), rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved")))["out"] == 0
