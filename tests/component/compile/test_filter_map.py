"""filter_map drops the None of what a function returns, in each execution mode."""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import testing
from tests.raising import raises

ROWS = [(n, word) for n, word in enumerate(("", "ab", "a text longer than twelve bytes", "x", "ab"))]


class Pair(NamedTuple):
    n: int
    word: str


def half(t: Any) -> Any:
    if t.n % 2 == 0:
        return t.n // 2
    return None


def falls_through(t: Any) -> Any:  # noqa: RET503 -- as users write it
    if t.n > 1:
        return t.word


def in_a_loop(t: Any) -> Any:
    for at, letter in enumerate(t.word):
        if letter == "x":
            return at, letter
    return None if t.n < 4 else (t.n, "end")


def in_try(t: Any) -> Any:
    try:
        return 12 // t.n
    except ZeroDivisionError:
        return None


def maybe(n: int) -> int | None:
    return n if n > 2 else None


class Above:
    def __init__(self, least: int) -> None:
        self.least = least

    def __call__(self, t: Any) -> Any:
        return t.n if t.n > self.least else None


def annotated(t: Any) -> Pair | None:
    return Pair(t.n, str(os.getpid() > 0)) if t.n else None


async def asked(t: Any) -> int | None:
    return t.n if t.n % 2 else None


COMPILED = {
    "half": half, "falls through": falls_through, "in a loop": in_a_loop, "in try": in_try, "object": Above(1),
    "partial": functools.partial(lambda least, t: t.n if t.n > least else None, 2),
    "tuple": lambda t: t if t.n % 2 else None,
    "class": lambda t: None if t.word == "" else Pair(t.n, t.word),
    "dict": lambda t: {"n": t.n, "size": len(t.word)} if t.word else None,
    "nested": lambda t: None if t.n == 0 else t.word if t.word else None,
    "called": lambda t: maybe(t.n),
    "never None": lambda t: t.n + 1,
}  # fmt: skip


def expected(fn: Any) -> list[Any]:
    made = (fn(Pair(*row)) for row in ROWS)
    return [
        tuple(one.values()) if isinstance(one, dict) else tuple(one) if isinstance(one, tuple) else (one,)
        for one in made
        if one is not None
    ]


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("fn", COMPILED.values(), ids=list(COMPILED))
def test_none_is_left_out(fn: Any, lane: Any) -> None:
    stream: Any = rel.Topology("declared").source(rel.rows([Pair(*row) for row in ROWS]))
    schema = stream.filter_map(fn, name="it").schema
    assert stream.topology.operators["it"].lane.value == "compiled"
    one: Any = {"schema": schema} if lane == "python" else {}
    assert testing.collect(lambda s: s.filter_map(fn, lane=lane, **one), ROWS, Pair) == expected(fn)


@pytest.mark.parametrize(("fn", "out"), [(annotated, [(n, "True") for n in range(1, 5)]), (asked, [(1,), (3,)])])
def test_a_function_in_python_names_its_result_by_its_annotation(fn: Any, out: list[Any]) -> None:
    assert testing.collect(lambda s: s.filter_map(fn), ROWS, Pair) == out


@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_a_value_that_is_none_is_dropped_as_well(lane: Any) -> None:
    rows, schema = [("a",), (None,), ("",)], {"text": str | None}
    kept = testing.collect(
        lambda s: s.filter_map(lambda text: text if text != "" else None, lane=lane, schema=str), rows, schema
    )
    assert kept == [("a",)]
    assert testing.collect(lambda s: s.filter_map(lambda t: t, lane=lane, schema=schema), rows, schema) == rows


def test_a_function_without_source_compiles() -> None:
    half_of_even: Any = eval("lambda t: t.n // 2 if t.n % 2 == 0 else None")  # noqa: S307
    stream = rel.Topology("eval").source(rel.rows([(4,), (5,)], {"n": int})).filter_map(half_of_even, name="it")
    assert stream.collect() == [(2,)]


def test_errors_of_the_function_are_diverted() -> None:
    topology = rel.Topology("bad")
    texts = topology.source(rel.rows([("1",), ("x",), ("",), ("3",)], {"text": str}))
    numbers = texts.filter_map(lambda t: int(t.text) if t.text else None, on_error="divert")
    numbers.sink(rel.list(), name="out")
    numbers.errors.sink(rel.list(), name="bad")
    result = rel.run(topology)
    assert ([t.value for t in result["out"]], [t.text for t in result["bad"]]) == ([1, 3], ["x"])


def test_what_filter_map_rejects() -> None:
    stream: Any = rel.Topology("rejected").source(rel.rows([1, 2]))

    def yields(t: Any) -> Any:
        yield t

    class Opened(Above):
        def initialize(self) -> None: ...

    def batch(t: pa.RecordBatch) -> Any: ...

    for fn, code in [
        (yields, "must-return"), (Opened(1), "unknown-method"), (batch, "not-vectorised"), (3, "not-a-function"),
    ]:  # fmt: skip
        with pytest.raises(rel.errors.RayelasticError) as error:
            stream.filter_map(fn, name="it")
        assert error.value.code == code, fn


def test_a_map_that_returns_none_names_filter_map() -> None:
    stream: Any = rel.Topology("none").source(rel.rows([1, 2]))
    with raises(rel.errors.SchemaError, "no-schema", "filter_map"):
        stream.map(lambda t: t if t.value > 1 else None)
