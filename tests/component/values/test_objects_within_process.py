"""Objects of Python's between functions of one process need no seal, and are nobody else's all the same."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError
from rayelastic.runtime.private_streams import private_streams
from tests.raising import raises

COUNT = 50


class Box(NamedTuple):
    n: int
    held: Any


def filled(t: Box) -> Box:
    t.held.append(t.n)
    return Box(t.n, t.held)


def twice(t: Box) -> Iterator[Box]:
    yield t
    yield t


def boxes() -> Iterator[Box]:
    for n in range(COUNT):
        yield Box(n, [])


def chain(*, last: str = "count") -> rel.Topology:
    topology = rel.Topology("boxes")
    stream = topology.source(rel.callable(boxes, Box), name="boxes")
    stream = stream.map(filled, name="a", lane="python").flat_map(twice, name="b", lane="python")
    stream.map(filled, name="c", lane="python").sink(rel.count() if last == "count" else rel.list(), name="out")
    return topology


def test_only_what_others_may_have_is_under_the_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    digest = hmac.digest

    def counted(key: bytes, given: bytes, how: str) -> bytes:
        made.append(given)
        return digest(key, given, how)

    monkeypatch.setattr(hmac, "digest", counted)
    assert rel.run(chain())["out"] == 2 * COUNT
    assert len(made) == 2 * COUNT  # to the sink


def test_nobody_sees_what_another_one_changes() -> None:
    found = rel.run(chain(last="list"))["out"]
    assert [tuple(t) for t in found] == [(n, [n, n]) for n in range(COUNT) for _ in range(2)]


@pytest.mark.parametrize(
    "config",
    [rel.JobConfig(), rel.JobConfig(pes={"other": 1}), rel.JobConfig(pes={"same": 1, "one": 1})],
    ids=["together", "one apart", "source apart"],
)
def test_two_functions_that_take_a_stream_get_objects_of_their_own(config: rel.JobConfig) -> None:
    topology = rel.Topology("fork")
    same = topology.source(rel.callable(boxes, Box), name="boxes").map(
        lambda t: t, name="same", schema=Box, lane="python"
    )
    for name in ("one", "other"):
        same.map(filled, name=name, lane="python").sink(rel.list(), name=f"out_{name}")
    found = rel.run(topology, config)
    for name in ("one", "other"):
        assert [tuple(t) for t in found[f"out_{name}"]] == [(n, [n]) for n in range(COUNT)]


def test_which_streams_are_private() -> None:
    topology = chain()
    operators = tuple(topology.operators.values())
    assert private_streams(operators) == {"boxes", "a", "b"}
    assert private_streams(operators, leaving={"a"}) == {"boxes", "b"}


@pytest.mark.parametrize(
    "taken",
    [
        lambda s: s.filter(lambda t: True, name="f", lane="python"),  # hands the bytes on
        lambda s: s.map(filled, name="f", lane="python", on_error="skip"),  # keeps the tuple that failed
        lambda s: s.map(filled, name="f", concurrent=rel.concurrent(capacity=2)),
        lambda s: s.union(s.map(filled, name="g", lane="python")).map(filled, name="f", lane="python"),
    ],
)
def test_bytes_that_somebody_else_has_stay_sealed(taken: Any) -> None:
    topology = rel.Topology("others")
    stream = topology.source(rel.callable(boxes, Box), name="boxes")
    taken(stream).sink(rel.count(), name="out")
    assert "boxes" not in private_streams(tuple(topology.operators.values()))
    assert rel.run(topology)["out"] >= COUNT


def test_streams_without_objects_have_nothing_to_seal() -> None:
    topology = rel.Topology("numbers")
    numbers = topology.source(rel.rows([(1,), (2,)], {"n": int}), name="numbers").map(
        lambda t: t.n, name="same", schema=int, lane="python"
    )
    numbers.sink(rel.list(), name="out")
    assert private_streams(tuple(topology.operators.values())) == frozenset()


def test_an_object_that_cant_be_pickled_is_refused_as_everywhere() -> None:
    topology = rel.Topology("locks")
    stream = topology.source(rel.rows([(1,)], {"n": int}), name="n")
    made = stream.map(lambda t: Box(t.n, (one for one in "ab")), name="made", schema=Box, lane="python")
    made.map(filled, name="taken", lane="python").sink(rel.count(), name="out")
    with raises(JobFailedError, "function-raised", "a generator can't be pickled for the next operator"):
        rel.run(topology)
