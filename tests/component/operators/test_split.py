"""Splits: in turn, by hash, by function, by predicates; every tuple goes to one stream, in order."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic.errors import GraphError, JobFailedError, LaneError, RayelasticError, SchemaError
from tests.raising import raises


class Word(NamedTuple):
    word: str
    n: int


COUNT = 4000
CONFIGS = [
    rel.JobConfig(threads=rel.Threads(count=threads, model=model, queue_records=256))
    for threads in (1, 2, 8)
    for model in ("manual", "dynamic", "dedicated")
] + [rel.JobConfig(pes=3, threads=2)]


def words(topology: rel.Topology) -> Any:
    texts = [f"the word number {n % 97}" for n in range(COUNT)]
    return topology.source(
        rel.arrow(pa.table({"word": texts, "n": pa.array(range(COUNT), pa.int64())}), Word), name="words"
    )


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_in_turn(config: rel.JobConfig) -> None:
    topology = rel.Topology("turns")
    for number, stream in enumerate(words(topology).split(3, name="turns")):
        stream.sink(rel.list(), name=f"out{number}")
    result = rel.run(topology, config)
    for number in range(3):
        assert [t.n for t in result[f"out{number}"]] == list(range(number, COUNT, 3))


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_by_hash_a_key_has_one_stream(config: rel.JobConfig) -> None:
    topology = rel.Topology("hash")
    parts = words(topology).key_by("word").split(4, name="hash")
    for number in range(4):
        parts[number].sink(rel.list(), name=f"out{number}")
    result = rel.run(topology, config)
    streams = [result[f"out{number}"] for number in range(4)]
    assert sorted(t.n for stream in streams for t in stream) == list(range(COUNT))
    keys = [{t.word for t in stream} for stream in streams]
    assert sum(len(one) for one in keys) == 97
    assert min(len(one) for one in keys) > 10
    for stream in streams:
        assert [t.n for t in stream] == sorted(t.n for t in stream)
        assert all(t.word == f"the word number {t.n % 97}" for t in stream)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_by_predicates_the_first_that_holds(lane: Any, config: rel.JobConfig) -> None:
    topology = rel.Topology("predicates")
    parts = words(topology).split(
        name="parts",
        lane=lane,
        small=lambda t: t.n < 100,
        ends_in_7=lambda t: t.word.endswith("7"),
        odd=lambda t: t.n % 2,
    )
    assert topology.operators["parts"].lane.value == lane
    for port in ("small", "ends_in_7", "odd", "rest"):
        parts[port].sink(rel.list(), name=port)
    result = rel.run(topology, config)
    rows = [Word(f"the word number {n % 97}", n) for n in range(100, COUNT)]
    assert [t.n for t in result["small"]] == list(range(100))
    assert result["ends_in_7"] == [t for t in rows if t.word.endswith("7")]
    assert result["odd"] == [t for t in rows if not t.word.endswith("7") and t.n % 2]
    assert result["rest"] == [t for t in rows if not t.word.endswith("7") and t.n % 2 == 0]


@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_by_a_function(lane: Any) -> None:
    topology = rel.Topology("function")
    parts = words(topology).split(5, name="parts", by=lambda t: t.n % 5, lane=lane)
    for number, stream in enumerate(parts):
        stream.sink(rel.list(), name=f"out{number}")
    result = rel.run(topology, CONFIGS[4])
    for number in range(5):
        assert [t.n for t in result[f"out{number}"]] == list(range(number, COUNT, 5))
    topology = rel.Topology("beyond")
    for number, stream in enumerate(words(topology).split(2, name="parts", by=lambda t: t.n // 1000, lane=lane)):
        stream.sink(rel.count(), name=f"out{number}")
    with raises(JobFailedError, "function-raised", "chose output 2 of 2") as caught:
        rel.run(topology)
    assert caught.value.operator == "parts"


@pytest.mark.parametrize(
    ("declare", "error", "code", "values"),
    [
        (lambda s: s.split(name="x"), GraphError, "missing-argument", "split"),
        (lambda s: s.split(2, name="x", odd=lambda t: t.n), GraphError, "missing-argument", "split"),
        (lambda s: s.split(0, name="x"), GraphError, "out-of-range", "0"),
        (lambda s: s.split("two", name="x"), GraphError, "out-of-range", "'two'"),
        (lambda s: s.split(2, name="x", by=3), GraphError, "not-a-function", "3"),
        (lambda s: s.split(name="x", odd=3), GraphError, "not-a-function", "3"),
        (lambda s: s.split(2, name="x", by=lambda t: t.text, lane="compiled"), SchemaError, "unknown-field", "'text'"),
        (lambda s: s.split(2, name="x", by=lambda t: t.n, lane="built-in"), LaneError, "unknown-choice", "'built-in'"),
        (lambda s: s.split(2, name="x")[2], GraphError, "unknown-port", "out0, out1"),
        (lambda s: (s.split(2, name="x"), s.topology.validate()), GraphError, "no-sink", "'out0'"),
    ],
)
def test_mistakes(declare: Any, error: type[RayelasticError], code: str, values: str) -> None:
    with raises(error, code, values, operator="x"):
        declare(words(rel.Topology("bad")))
