"""Functions return dicts, dataclasses and other classes of fields, in every mode; errors name the field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError, SchemaError
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import raises

ROWS = [("ada", 1), ("bob", 2)]


@dataclass
class Half:
    n: float
    user: str = "nobody"


@dataclass(frozen=True)
class Swapped:
    n: int
    user: str


class Maybe(TypedDict):
    user: str
    age: NotRequired[int]


class Plain:
    user: str
    n: int

    def __init__(self, user: str, n: int) -> None:
        self.user, self.n = user, n


Declare = Callable[[Any], Any]


def run(declare: Declare) -> tuple[Lane, list[tuple[Any, ...]]]:
    """The mode of the operator 'op', and what comes out."""
    topology = rel.Topology("named")
    source = topology.source(rel.rows(ROWS, {"user": str, "n": int}), name="source")
    declare(source).sink(rel.list(), name="out")
    return topology.operators["op"].lane, [tuple(t) for t in rel.run(topology)["out"]]


def fibers(t: Any) -> Iterator[dict[str, Any]]:
    for i in range(t.n):
        yield {"i": i, "user": t.user}


@pytest.mark.parametrize(
    ("fn", "out"),
    [
        (lambda t: {"user": t.user, "k": t.n * 2}, [("ada", 2), ("bob", 4)]),
        (lambda t: {**t._asdict(), "n": t.n / 2, "x": 1}, [("ada", 0.5, 1), ("bob", 1.0, 1)]),
        (lambda t: {"k": t.n} if t.n > 1 else {"k": 0}, [(0,), (2,)]),
        (lambda t: Half(t.n), [(1.0, "nobody"), (2.0, "nobody")]),
        (lambda t: Swapped(t.n, user=t.user), [(1, "ada"), (2, "bob")]),
    ],
)
def test_literals_and_dataclasses_compile(fn: Any, out: list[Any]) -> None:
    assert run(lambda s: s.map(fn, name="op")) == (Lane.COMPILED, out)


def test_flat_map_yields_or_returns_dicts() -> None:
    assert run(lambda s: s.flat_map(fibers, name="op")) == (Lane.COMPILED, [(0, "ada"), (0, "bob"), (1, "bob")])
    listed = run(lambda s: s.flat_map(lambda t: [{"letter": letter} for letter in t.user], name="op"))
    assert listed == (Lane.COMPILED, [("a",), ("d",), ("a",), ("b",), ("o",), ("b",)])


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("fn", [lambda t: {"user": t.user, "n": t.n}, lambda t: Swapped(t.n, t.user)])
def test_the_declared_order_counts(fn: Any, lane: Any) -> None:
    assert run(lambda s: s.map(fn, name="op", schema=Half, lane=lane))[1] == [(1.0, "ada"), (2.0, "bob")]


@pytest.mark.parametrize("made", [lambda t: {"user": t.user}, lambda t: json.loads('{"user": "x"}')])
def test_a_field_that_may_be_none_may_be_missing(made: Any) -> None:
    assert {age for _, age in run(lambda s: s.map(made, name="op", schema=Maybe))[1]} == {None}


@pytest.mark.parametrize("lane", ["auto", "python"])
def test_instances_of_a_class_with_annotations_alone(lane: Any) -> None:
    out = run(lambda s: s.map(lambda t: Plain(t.user, t.n), name="op", schema=Plain, lane=lane))
    assert out == (Lane.PYTHON, ROWS)


def test_what_one_field_holds_itself_is_its_value() -> None:
    as_json = run(lambda s: s.map(lambda t: {"n": t.n}, name="op", schema=rel.Json))
    assert as_json == (Lane.PYTHON, [({"n": 1},), ({"n": 2},)])
    assert run(lambda s: s.map(lambda t: Half(t.n), name="op", schema={"half": Half}))[1][1] == (Half(2.0),)


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (lambda t: {"n": t.n}, ("'op'", "without the key 'user'", "Add 'user'")),
        (lambda t: {"n": t.n, "user": "", "z": 1}, ("'op'", "the key 'z'", "Its fields are n, user")),
        (lambda t: Maybe(user=t.user), ("'op'", "user")),
    ],
)
def test_a_literal_that_does_not_fit_is_no_declaration(fn: Any, said: tuple[str, ...]) -> None:
    with pytest.raises((SchemaError, JobFailedError)) as error:
        run(lambda s: s.map(fn, name="op", schema=Swapped))
    assert [word for word in said if word not in str(error.value)] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"n": 1}', "field 'user': the key 'user' is missing in {'n': 1}: pass each of n, user"),
        ('{"n": 1, "user": "", "z": 2}', "field 'z': no such field in the schema (n, user)"),
        ('{"n": "x", "user": ""}', "field 'n': expected int, got 'x' (str)"),
        ("[1, 2]", "expected a tuple (n, user), or a dict with these keys, got [1, 2]"),
    ],
)
def test_a_dict_that_does_not_fit_fails_the_job(text: str, said: str) -> None:
    with pytest.raises(JobFailedError) as error:
        run(lambda s: s.map(lambda t: json.loads(text), name="op", schema=Swapped))
    assert error.value.operator == "op"
    assert said in str(error.value)


def test_state_functions_and_aggregates_return_dicts() -> None:
    def add(t: Any, s: Any) -> dict[str, Any]:
        s.append(t.n)
        return {"user": t.user, "sum": sum(s)}

    keyed = run(lambda s: s.key_by("user").map(add, name="op", state=list, schema={"user": str, "sum": int}))
    assert keyed == (Lane.PYTHON, [("ada", 1), ("bob", 2)])
    scanned = run(
        lambda s: s.key_by("user").scan(lambda a, t: {"n": a["n"] + t.n}, {"n": 10}, name="op", schema={"n": int})
    )
    assert scanned[1] == [("ada", 11), ("bob", 12)]
    with raises(JobFailedError, "function-raised", "n"):
        run(lambda s: s.key_by("user").scan(lambda _, __: {"m": 1}, {"n": 10}, name="op", schema={"n": int}))


def test_windows_fold_and_reduce_dicts() -> None:
    def windowed(s: Any) -> Any:
        return s.event_time("n", name="time").key_by("user").window(seconds=10)

    reduced = run(
        lambda s: windowed(s.union(s.map(lambda t: t, name="again"))).reduce(lambda a, t: t._asdict(), name="op")
    )
    assert reduced[1] == [("ada", 0, 10, 1), ("bob", 0, 10, 2)]
    folded = run(lambda s: windowed(s).fold(lambda a, t: {"n": t.n}, {"n": 0}, name="op", schema={"n": int}))
    assert folded[1] == reduced[1]


def test_skipped_and_diverted_tuples_are_checked_by_name() -> None:
    def some(t: Any) -> Any:
        return json.loads('{"n": 2}' if t.n > 1 else '{"m": 1}')

    assert run(lambda s: s.map(some, name="op", schema={"n": int}, on_error="skip"))[1] == [(2,)]
