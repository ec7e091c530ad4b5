"""Objects of Python's between functions of one process need no seal, and are nobody else's all the same."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError
from rayelastic.runtime.private_streams import private_streams

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
    stream = topology.source("boxes", rel.callable(boxes, Box))
    stream = stream.map("a", filled, lane="python").flat_map("b", twice, lane="python")
    stream.map("c", filled, lane="python").sink("out", rel.count() if last == "count" else rel.list())
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
    [rel.JobConfig(), rel.JobConfig(pins={"other": 1}), rel.JobConfig(pins={"same": 1, "one": 1})],
    ids=["together", "one apart", "source apart"],
)
def test_two_functions_that_take_a_stream_get_objects_of_their_own(config: rel.JobConfig) -> None:
    topology = rel.Topology("fork")
    same = topology.source("boxes", rel.callable(boxes, Box)).map("same", lambda t: t, schema=Box, lane="python")
    for name in ("one", "other"):
        same.map(name, filled, lane="python").sink(f"out_{name}", rel.list())
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
        lambda s: s.filter("f", lambda t: True, lane="python"),  # hands the bytes on
        lambda s: s.map("f", filled, lane="python", on_error="skip"),  # keeps the tuple that failed
        lambda s: s.map("f", filled, concurrent=rel.concurrent(capacity=2)),
        lambda s: s.union(s.map("g", filled, lane="python")).map("f", filled, lane="python"),
    ],
)
def test_bytes_that_somebody_else_has_stay_sealed(taken: Any) -> None:
    topology = rel.Topology("others")
    stream = topology.source("boxes", rel.callable(boxes, Box))
    taken(stream).sink("out", rel.count())
    assert "boxes" not in private_streams(tuple(topology.operators.values()))
    assert rel.run(topology)["out"] >= COUNT


def test_streams_without_objects_have_nothing_to_seal() -> None:
    topology = rel.Topology("numbers")
    numbers = topology.source("numbers", rel.rows([(1,), (2,)], {"n": int})).map(
        "same", lambda t: t.n, schema=int, lane="python"
    )
    numbers.sink("out", rel.list())
    assert private_streams(tuple(topology.operators.values())) == frozenset()


def test_an_object_that_cant_be_pickled_is_refused_as_everywhere() -> None:
    topology = rel.Topology("locks")
    stream = topology.source("n", rel.rows([(1,)], {"n": int}))
    made = stream.map("made", lambda t: Box(t.n, (one for one in "ab")), schema=Box, lane="python")
    made.map("taken", filled, lane="python").sink("out", rel.count())
    with pytest.raises(JobFailedError, match="a generator can't be pickled for the next operator"):
        rel.run(topology)
