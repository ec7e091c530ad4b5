"""Tuples on which a function fails: skipped or diverted in every lane; side outputs of functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rayelastic as rel
from rayelastic.errors import GraphError, JobFailedError, LaneError
from rayelastic.plan.explain import describe
from tests.raising import check_reason, raises


class Text(NamedTuple):
    text: str
    n: int
    note: str | None


class Number(NamedTuple):
    value: int


class Total(NamedTuple):
    total: int = 0


COUNT = 3000
ROWS = [Text(f"{n}" if n % 7 else f"no number at all, {n}", n, None if n % 2 else f"note {n}") for n in range(COUNT)]
BAD = [t for t in ROWS if t.n % 7 == 0]
CONFIGS = [
    rel.JobConfig(threads=rel.Threads(count=1, model="manual")),
    rel.JobConfig(threads=rel.Threads(count=2, model="dynamic", queue_records=256)),
    rel.JobConfig(threads=rel.Threads(count=8, model="dedicated")),
    rel.JobConfig(pes=2),
]


def texts(topology: rel.Topology, count: int = COUNT) -> Any:
    return topology.source(rel.rows(ROWS[:count], schema=Text), name="texts")


def parse(t: Text) -> Number:
    return Number(int(t.text))


def is_even(t: Text) -> bool:
    return int(t.text) % 2 == 0


def twice(t: Text) -> Iterator[Number]:
    yield Number(t.n)
    yield Number(int(t.text))


def good(kind: str) -> list[int]:
    numbers = [t.n for t in ROWS if t.n % 7]
    if kind == "filter":
        return [n for n in numbers if n % 2 == 0]
    return [n for n in numbers for _ in range(2)] if kind == "flat_map" else numbers


def declared(stream: Any, kind: str, lane: Any, on_error: Any) -> Any:
    if kind == "map":
        return stream.map(parse, name="step", schema=Number, lane=lane, on_error=on_error)
    if kind == "filter":
        return stream.filter(is_even, name="step", lane=lane, on_error=on_error)
    return stream.flat_map(twice, name="step", schema=Number, lane=lane, on_error=on_error)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("kind", ["map", "filter", "flat_map"])
def test_diverted_tuples_come_with_the_reason(kind: str, lane: str, config: rel.JobConfig) -> None:
    topology = rel.Topology("divert")
    made = declared(texts(topology), kind, lane, "divert")
    made.sink(rel.list(), name="out")
    made.errors.sink(rel.list(), name="bad")
    result = rel.run(topology, config)
    assert [t[1] if kind == "filter" else t.value for t in result["out"]] == good(kind)
    assert [(t.text, t.n, t.note) for t in result["bad"]] == BAD
    for t in result["bad"]:
        assert t.operator == "step"
        assert t.error == f"ValueError: invalid literal for int() with base 10: {t.text!r}"


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("kind", ["map", "filter", "flat_map"])
def test_skipped_tuples_are_gone_and_failing_is_still_the_default(kind: str, lane: str) -> None:
    topology = rel.Topology("skip")
    declared(texts(topology), kind, lane, "skip").sink(rel.list(), name="out")
    result = rel.run(topology, CONFIGS[1])["out"]
    assert [t[1] if kind == "filter" else t.value for t in result] == good(kind)
    topology = rel.Topology("fail")
    declared(texts(topology), kind, lane, "fail").sink(rel.list(), name="out")
    with raises(JobFailedError, "function-raised", "invalid literal"):
        rel.run(topology)


def total(t: Text, s: Any) -> Number:
    s.total += 1
    return Number(int(t.text) * 0 + s.total)


def totals(t: Text, s: Any) -> Iterator[Number]:
    s.total += 1
    for _ in range(3):
        yield Number(s.total + int(t.text) * 0)


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("kind", ["map", "flat_map"])
def test_state_of_keys_is_changed_once_by_each_tuple(kind: str, lane: Any) -> None:
    topology = rel.Topology("keyed")
    keyed = texts(topology).map(lambda t: Text(t.text, t.n, "all"), name="key", schema=Text).key_by("note")
    if kind == "map":
        made = keyed.map(total, name="step", state=Total, schema=Number, lane=lane, on_error="divert")
    else:
        made = keyed.flat_map(totals, name="step", state=Total, schema=Number, lane=lane, on_error="divert")
    made.sink(rel.list(), name="out")
    made.errors.sink(rel.count(), name="bad")
    result = rel.run(topology, rel.JobConfig(threads=rel.Threads(count=2, model="dynamic", run_records=64)))
    counted = [t.n + 1 for t in ROWS if t.n % 7]  # failing tuples change the state before they fail
    times = 3 if kind == "flat_map" else 1
    assert [t.value for t in result["out"]] == [n for n in counted for _ in range(times)]
    assert result["bad"] == len(BAD)


class Result(NamedTuple):
    n: int
    half: int


def numpy_map(run: np.ndarray) -> Any:
    if (run["n"] % 7 == 0).any():
        raise ArithmeticError("sevens")
    return {"n": run["n"], "half": run["n"] // 2}


def arrow_map(run: pa.RecordBatch) -> Any:
    if pc.any(pc.starts_with(run.column("text"), "no")).as_py():
        raise ArithmeticError("sevens")
    half = pc.divide(run.column("n"), pa.scalar(2, pa.int64()))
    return pa.record_batch({"n": run.column("n"), "half": half})


def pandas_map(run: pd.DataFrame) -> Any:
    if (run.n % 7 == 0).any():
        raise ArithmeticError("sevens")
    return pd.DataFrame({"n": run.n, "half": run.n // 2})


@pytest.mark.parametrize("function", [numpy_map, arrow_map, pandas_map])
def test_a_run_is_halved_until_the_failing_tuple_is_alone(function: Any) -> None:
    topology = rel.Topology("runs")
    count = 140  # frames are dear to make
    made = texts(topology, count).map(function, name="step", schema=Result, on_error="divert")
    assert topology.operators["step"].lane is rel.Lane.VECTORISED
    made.sink(rel.list(), name="out")
    made.errors.sink(rel.list(), name="bad")
    result = rel.run(topology, CONFIGS[1])
    assert result["out"] == [Result(t.n, t.n // 2) for t in ROWS[:count] if t.n % 7]
    assert [(t.text, t.n, t.note) for t in result["bad"]] == BAD[: count // 7]
    assert {t.error for t in result["bad"]} == {"ArithmeticError: sevens"}


def test_what_doesnt_fit_the_schema_is_an_error_of_its_tuple() -> None:
    topology = rel.Topology("fit")
    made = texts(topology).map(
        lambda t: (t.n if t.n % 7 else None,), name="step", schema=Number, lane="python", on_error="divert"
    )
    made.sink(rel.list(), name="out")
    made.errors.sink(rel.list(), name="bad")
    result = rel.run(topology)
    assert [t.value for t in result["out"]] == good("map")
    assert [t.n for t in result["bad"]] == [t.n for t in BAD]
    assert "isn't nullable" in result["bad"][0].error


@rel.operator(inputs=Text, outputs=Number, state=Total)
class Parse:
    def invoke(self, t: Any, s: Any) -> Iterator[Any]:
        s.total += 1
        yield Number(int(t.text))

    def shutdown(self) -> Iterator[Any]:
        yield Number(-1)


def test_operator_classes_have_policies_too() -> None:
    topology = rel.Topology("classes")
    made = texts(topology).key_by("n").apply(Parse(), name="parse", on_error="divert")
    made.sink(rel.list(), name="out")
    made.errors.sink(rel.list(), name="bad")
    result = rel.run(topology, CONFIGS[1])
    assert [t.value for t in result["out"]] == [*good("map"), -1]
    assert [(t.text, t.n, t.note) for t in result["bad"]] == BAD


def sorted_out(t: Text) -> Iterator[Any]:
    if t.n % 7:
        yield Number(t.n)
    else:
        yield rel.to("sevens", (t.text, t.note))
    if t.n % 100 == 0:
        yield rel.to("hundreds", t.n)


def test_a_function_sends_to_side_outputs() -> None:
    topology = rel.Topology("sides")
    sides = {"sevens": {"text": str, "note": str | None}, "hundreds": int}
    made = texts(topology).flat_map(sorted_out, name="step", schema=Number, sides=sides)
    check_reason(describe(topology.operators)["step"].refusal, "side_output", "sevens")
    made.sink(rel.list(), name="out")
    made.side("sevens").sink(rel.list(), name="sevens")
    made.side("hundreds").map(lambda t: t.value, name="same", schema=int).sink(rel.list(), name="hundreds")
    for config in CONFIGS:
        result = rel.run(topology, config)
        assert [t.value for t in result["out"]] == good("map")
        assert [tuple(t) for t in result["sevens"]] == [(t.text, t.note) for t in BAD]
        assert [t.value for t in result["hundreds"]] == list(range(0, COUNT, 100))


@pytest.mark.parametrize(
    ("declare", "code", "value"),
    [
        (
            lambda s: s.map(parse, name="x", on_error="keep"),
            "unknown-choice",
            "'fail', 'skip' or 'divert'",
        ),
        (
            lambda s: s.map(parse, name="x", schema=Number).errors,
            "unknown-port",
            "on_error='divert'",
        ),
        (
            lambda s: s.map(parse, name="x", schema=Number).side("a"),
            "unknown-port",
            "sides={port: schema}",
        ),
        (lambda s: s.map(parse, name="x", sides={"out": int}), "bad-name", "'out'"),
        (lambda s: s.map(parse, name="x", sides={"a b": int}), "bad-name", "'a b'"),
        (lambda s: s.map(parse, name="x", sides=["a"]), "wrong-type", "sides=['a']"),
        (lambda s: s.map(parse, name="x", sides={"a": int}, lane="compiled"), "not-compiled", "'a'"),
        (
            lambda s: s.map(lambda t: (t.n, t.text), name="y", schema={"n": int, "error": str}).map(
                lambda t: t.n, name="x", on_error="divert"
            ),
            "duplicate-field",
            "'error'",
        ),
        (
            lambda s: (
                s.map(parse, name="x", schema=Number, on_error="divert").sink(rel.count(), name="o"),
                s.topology.validate(),
            ),
            "no-sink",
            "'errors'",
        ),
    ],
)
def test_mistakes(declare: Any, code: str, value: str) -> None:
    with raises((GraphError, LaneError), code, value, operator="x"):
        declare(texts(rel.Topology("bad")))
