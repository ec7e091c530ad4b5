"""t["age"] reads a field of a tuple without a class of the user's, in each execution mode and wherever tuples go."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError, SchemaError
from rayelastic.graph.records.schema import Schema
from tests.raising import raises

ROWS = [("Ada", 36, 1), ("Tim", 9, None), ("Ada", 40, 3)]
SCHEMA = {"name": str, "age": int, "n": int | None}


def people() -> Any:
    return rel.Topology("people").source(rel.rows(ROWS, SCHEMA), name="people")


def older(t: Any) -> int:
    age: int = t["age"]
    return age + 1


class Age(NamedTuple):
    age: int = 0


class Eldest:
    init = Age

    def add(self, t: Any, state: Any) -> None:
        state.age = max(state.age, t["age"])

    def merge(self, other: Any, state: Any) -> None:
        state.age = max(state.age, other.age)

    def result(self, state: Any) -> int:
        age: int = state.age
        return age


class Names:
    def on_tuple(self, t: Any, state: Any, out: Any) -> None:
        out.give((t["name"], t["age"]))


FUNCTIONS = {
    "several": lambda t: (t["name"], t[1], t["age"] + t.age),
    "None": lambda t: 0 if t["n"] is None else t["n"] + 1,
    "helper": older,
    "called": lambda t: older(t),
    "comprehension": lambda t: sum(t["age"] for _ in t["name"]),
}


@pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_compiled_code_and_python_read_the_same(fn: Any) -> None:
    compiled = people().map(fn, name="it", lane="compiled")
    assert compiled.collect() == people().map(fn, name="it", lane="python", schema=compiled.schema).collect()
    kind: Any = Schema.of(SCHEMA).tuple_type
    assert [one if len(one) > 1 else one[0] for one in compiled.collect()] == [fn(kind(*row)) for row in ROWS]


STREAMS = {
    "filter": (lambda s: s.filter(lambda t: t["age"] > 10).select("age"), [(36,), (40,)]),
    "flat_map": (lambda s: s.flat_map(lambda t: [t["age"], t.age]).take(2), [(36,), (36,)]),
    "filter_map": (lambda s: s.filter_map(lambda t: t["n"]), [(1,), (3,)]),
    "with_columns": (lambda s: s.with_columns(twice=lambda t: t["age"] * 2).select("twice"), [(72,), (18,), (80,)]),
    "key": (lambda s: s.key_by(lambda t: t["name"]).sum("age"), [("Ada", 76), ("Tim", 9)]),
    "keys": (lambda s: s.key_by(lambda t: (t["age"], t["name"])).count().select("age"), [(36,), (9,), (40,)]),
    "state": (
        lambda s: s.key_by("name").map(lambda t, s: (t["age"],), state=dict, schema={"a": int}),
        [(36,), (9,), (40,)],
    ),
    "fold": (lambda s: s.key_by("name").fold(lambda a, t: a + t["age"], 0), [("Ada", 76), ("Tim", 9)]),
    "reduce": (
        lambda s: s.key_by("name").reduce(lambda a, b: a if a["age"] > b["age"] else b).select("age"),
        [(40,), (9,)],
    ),
    "join": (
        lambda s: s.key_by("name").enrich({"Ada": "UK"}, schema={"country": str}).map(lambda t: t["country"]),
        [("UK",), ("UK",)],
    ),
    "aggregate": (lambda s: s.key_by("name").combine(Eldest(), schema={"eldest": int}), [("Ada", 40), ("Tim", 9)]),
    "process": (lambda s: s.key_by("name").process(Names(), schema={"a": str, "b": int}), [row[:2] for row in ROWS]),
    "a later tuple": (lambda s: s.map(lambda t: {"x": t["age"]}).map(lambda t: t["x"]), [(36,), (9,), (40,)]),
}


@pytest.mark.parametrize(("declare", "out"), STREAMS.values(), ids=list(STREAMS))
def test_wherever_tuples_go(declare: Any, out: list[Any]) -> None:
    assert declare(people()).collect() == out


def test_sinks_results_and_pickles() -> None:
    seen: list[str] = []
    stream = people()
    stream.for_each(lambda t: seen.append(t["name"]), name="out")
    rel.run(stream.topology)
    assert seen == ["Ada", "Tim", "Ada"]
    row = stream.collect()[0]
    assert (row["age"], row[-1], row[1:]) == (36, 1, (36, 1))
    assert pickle.loads(pickle.dumps(row))["name"] == "Ada"


def test_a_field_that_is_not_there() -> None:
    with raises(SchemaError, "unknown-field", "'agee'", "'age'", "name, age, n"):
        people().map(lambda t: t["agee"])
    with raises(SchemaError, "unknown-field", "'agee'"):
        people().map(lambda t: (lambda row: row["agee"])(t))
    with raises(JobFailedError, "function-raised", "'agee'", "name, age, n"):
        people().map(lambda t: t["agee"], lane="python", schema=int).collect()
    with raises(rel.errors.GraphError, "unknown-field"):
        people().key_by(lambda t: t["agee"])


def test_a_class_of_the_user_has_attributes_only() -> None:
    class Person(NamedTuple):
        name: str

    own: Any = rel.Topology("own").source(rel.rows([Person("Ada")]))
    with raises(SchemaError, "field-as-key", "Person", "t.name"):
        own.map(lambda t: t["name"])
