"""A function on tuples of one field takes the value where the tuple would be useless, in each mode; nothing silent."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import SchemaError
from tests.raising import raises

pytestmark = pytest.mark.edges

KNOWN = {"ada": "UK"}
FEW = ("ada", "cyd")
WORDS = ["ada", "an error", "", "bob"]
NUMBERS = [-3, 0, 5]


def upper(word: Any) -> Any:
    return word.upper()


def reads_field(t: Any) -> Any:
    return t.value.upper()


def nothing(t: Any) -> Any:
    return t


class Sized(NamedTuple):
    word: str
    size: int


def result(rows: list[Any], declare: Callable[[Any], Any]) -> list[Any]:
    topology = rel.Topology("values")
    declare(topology.source(rel.rows(rows))).sink(rel.list(), name="out")
    return [t[0] if len(t) == 1 else tuple(t) for t in rel.run(topology)["out"]]


FILTERS: dict[str, tuple[list[Any], Callable[[Any], Any]]] = {
    "in it": (WORDS, lambda w: "err" in w),
    "not in it": (WORDS, lambda w: "err" not in w),
    "in a dict": (WORDS, lambda w: w in KNOWN),
    "in a tuple of names": (WORDS, lambda w: w in FEW),
    "in a tuple": (WORDS, lambda w: w in ("ada", "cyd")),
    "truth": (WORDS, lambda w: w),
    "truth of a number": (NUMBERS, lambda n: n),
    "no truth": (NUMBERS, lambda n: not n),
    "truth in a condition": (NUMBERS, lambda n: 1 if n else 0),
    "truth and": (NUMBERS, lambda n: n and n > 0),
    "on the right": (NUMBERS, lambda n: 3 < n),  # noqa: SIM300
    "between": (NUMBERS, lambda n: -4 < n < 2),
    "equal": (WORDS, lambda w: w == "ada"),
    "a pattern": (WORDS, lambda w: re.search("^a", w) is not None),
}
MAPS: dict[str, tuple[list[Any], Callable[[Any], Any], Any]] = {
    "looked up": (WORDS, lambda w: KNOWN.get(w, "?"), str),
    "an index": (["ada"], lambda w: KNOWN[w], str),
    "an f-string": (WORDS, lambda w: f"<{w}>", str),
    "str": (NUMBERS, lambda n: str(n), str),
    "a format": (WORDS, lambda w: "<{}>".format(w), str),  # noqa: UP032
    "a percent": (NUMBERS, lambda n: "<%d>" % n, str),  # noqa: UP031
    "abs": (NUMBERS, lambda n: abs(n), int),
    "max": (NUMBERS, lambda n: max(n, 1), int),
    "a slice": (WORDS, lambda w: w[:2], str),
    "the last letters": (["ada"], lambda w: w[1:] + w[-1], str),
    "json": (["[1]"], lambda w: len(json.loads(w)), int),
    "a function of a value": (WORDS, lambda w: upper(w), str),
    "a method": (WORDS, lambda w: w.upper(), str),
    "a loop": (WORDS, lambda w: sum(1 for letter in w if letter == "a"), int),
    "a default": (NUMBERS, lambda n: n or 7, int),
}


@pytest.mark.parametrize("lane", ["auto", "python"])
@pytest.mark.parametrize("what", FILTERS)
def test_filters_see_the_value(what: str, lane: Any) -> None:
    rows, function = FILTERS[what]
    assert result(rows, lambda s: s.filter(function, lane=lane)) == [row for row in rows if function(row)]


@pytest.mark.parametrize("lane", ["auto", "python"])
@pytest.mark.parametrize("what", MAPS)
def test_maps_see_the_value(what: str, lane: Any) -> None:
    rows, function, schema = MAPS[what]
    assert result(rows, lambda s: s.map(function, schema=schema, lane=lane)) == [function(row) for row in rows]


def test_a_class_of_fields_gets_the_value() -> None:
    assert result(["ada"], lambda s: s.map(lambda w: Sized(w, len(w)))) == [("ada", 3)]


@pytest.mark.parametrize("lane", ["auto", "python"])
def test_functions_that_are_called_are_decided_one_by_one(lane: Any) -> None:
    both = result(["ada"], lambda s: s.map(lambda t: reads_field(t) + upper(t) + t.value, schema=str, lane=lane))
    assert both == ["ADAADAada"]


class Finds:
    def __call__(self, w: Any) -> bool:
        return "a" in w


def test_an_object_that_would_use_the_value_is_an_error() -> None:
    source = rel.Topology("object").source(rel.rows(WORDS))
    for function in (Finds(), functools.partial(lambda letter, w: letter in w, "a")):
        with raises(SchemaError, "wrong-type", "w.value", "value"):
            source.filter(function)


def test_what_reads_the_field_has_the_tuple() -> None:
    assert result(["ada"], lambda s: s.map(lambda t: t.value + "!")) == ["ada!"]
    assert result(["ada"], lambda s: s.map(lambda t: t[0] + "!")) == ["ada!"]
    assert result(["ada"], lambda s: s.map(lambda t: str(len(t._fields)), schema=str)) == ["1"]
    assert result([["b", "a"]], lambda s: s.map(lambda t: max(t.value, key=lambda t: ord(t)), schema=str)) == ["b"]


def test_a_result_that_is_the_tuple_keeps_its_field() -> None:
    topology = rel.Topology("kept")
    source = topology.source(rel.rows([("ada",)], {"name": str}))
    assert source.map(nothing).schema.names == ("name",)
    assert source.map(lambda name: name.upper()).schema.names == ("value",)


def test_predicates_of_a_split_are_decided_one_by_one() -> None:
    topology = rel.Topology("split")
    numbers: Any = topology.source(rel.rows(NUMBERS))
    parts = numbers.split(low=lambda n: n < 0, zero=lambda t: t.value == 0)
    for name, stream in zip(("low", "zero", "rest"), parts, strict=True):
        stream.sink(rel.list(), name=name)
    found = rel.run(topology)
    assert [[t.value for t in found[name]] for name in ("low", "zero", "rest")] == [[-3], [0], [5]]


def test_sinks_and_inspect_call_with_the_value() -> None:
    seen: list[Any] = []
    topology = rel.Topology("called")
    numbers = topology.source(rel.rows(NUMBERS)).inspect(lambda n: seen.append(n * 2))
    numbers.for_each(lambda n: seen.append(n * 3))
    numbers.sink(rel.call(lambda n, epoch, number: seen.append((n + 1, number)), numbered=True))
    rel.run(topology)
    assert sorted(seen, key=str) == sorted([-6, 0, 10, -9, 0, 15, (-2, 0), (1, 1), (6, 2)], key=str)


def test_what_collects_tuples_collects_tuples() -> None:
    seen: list[Any] = []
    topology = rel.Topology("collected")
    topology.source(rel.rows(WORDS)).sink(rel.call(seen.append))
    rel.run(topology)
    assert [t.value for t in seen] == WORDS
