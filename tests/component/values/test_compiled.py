"""Compiled functions over lists, named tuples, dataclasses, enums, decimals and UUIDs, beside plain Python."""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import JobFailedError
from tests.component.values.kinds import LEAVES, NUMBER, POINT, TEXT, Leg, Level, Point, Side
from tests.raising import raises


class Row(NamedTuple):
    id: uuid.UUID
    other: uuid.UUID
    side: Side
    level: Level | None
    price: decimal.Decimal
    at: Point
    leg: Leg
    whole: list[int]
    small: tuple[bool, ...]
    real: list[float]
    names: list[str]
    maybe: list[int | None]
    words: tuple[str | None, ...]
    path: list[Point]
    grid: list[list[int]]


VALUES = dict(LEAVES[:8]) | {Leg: LEAVES[-1][1]}
ROWS = st.lists(
    st.builds(
        Row, st.uuids(), st.uuids(), st.sampled_from(Side), st.none() | st.sampled_from(Level), VALUES[decimal.Decimal],
        POINT, VALUES[Leg], st.lists(st.integers(-100, 100)), st.lists(st.booleans()).map(tuple), st.lists(NUMBER),
        st.lists(TEXT), st.lists(st.none() | st.integers(-100, 100)), st.lists(st.none() | TEXT).map(tuple),
        st.lists(POINT, max_size=4), st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=3),
    ),
    max_size=6,
)  # fmt: skip


def length(t: Row) -> int:
    return len(t.whole) + 10 * len(t.names) + 100 * len(t.small) + 1000 * len(t.grid)


def total(t: Row) -> int:
    n = 0
    for x in t.whole:
        n += x
    return n


def ends(t: Row) -> tuple[int, str]:
    return (t.whole[0] + t.whole[-1] if t.whole else 0), (t.names[-1] + t.names[0] if t.names else "none")


def has(t: Row) -> tuple[bool, bool, bool]:
    return 7 in t.whole, "a" in t.names, 1.5 in t.real


def without_none(t: Row) -> tuple[int, str]:
    n = 0
    for x in t.maybe:
        if x is not None:
            n += x
        else:
            n += 1000
    text = ""
    for word in t.words:
        if word is None:
            text = text + "?"
        elif len(word) > len(text):
            text = word
    return n, text


def path_of(t: Row) -> tuple[float, str | None]:
    n = 0.0
    tag = t.at.tag
    for point in t.path:
        n = max(n, point.x)
    return n + t.at.x * 2, tag


def squares(t: Row) -> int:
    n = 0
    for line in t.grid:
        for x in line:
            n += x * x
    return n


def chosen(t: Row) -> tuple[bool, bool, bool, bool]:
    high = t.level is not None and t.level == Level.HIGH
    return t.side == Side.BUY, t.leg.side != Side.SELL, high, t.id == t.other or t.price > t.price


def index_error(t: Row) -> int:
    return t.whole[3] if len(t.whole) > 3 else len(t.whole)


FUNCTIONS = [length, total, ends, has, without_none, path_of, squares, chosen, index_error]


def given_by(function: Callable[..., Any], rows: list[Row]) -> list[Any]:
    topology = rel.Topology("compiled")
    mapped = topology.source(rel.rows(rows, schema=Row), name="in").map(
        function, name="f", lane="compiled", schema=schema_of(function)
    )
    mapped.sink(rel.list(), name="out")
    return [tuple(row) for row in rel.run(topology)["out"]]


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    import typing

    returned = typing.get_type_hints(function)["return"]
    kinds = typing.get_args(returned) if typing.get_origin(returned) is tuple else (returned,)
    return {f"f{n}": kind for n, kind in enumerate(kinds)}


@pytest.mark.parametrize("function", FUNCTIONS)
@settings(deadline=None, max_examples=12)
@given(rows=ROWS)
def test_compiled_is_what_python_gives(function: Callable[..., Any], rows: list[Row]) -> None:
    expected = [made if isinstance(made, tuple) else (made,) for made in map(function, rows)]
    assert given_by(function, rows) == expected


def test_an_index_out_of_range_is_pythons_own() -> None:
    rows = [Row(uuid.UUID(int=1), uuid.UUID(int=1), Side.BUY, None, decimal.Decimal(1), Point(1, None),
                Leg(Side.BUY, decimal.Decimal(1)), [1], (), [], [], [], (), [], [])]  # fmt: skip
    topology = rel.Topology("beyond")
    mapped = topology.source(rel.rows(rows, schema=Row), name="in").map(lambda t: t.whole[1], name="f", lane="compiled")
    mapped.sink(rel.list(), name="out")
    with raises(JobFailedError, "function-raised", "list index out of range"):
        rel.run(topology)


def test_what_isnt_compiled_says_so_and_runs_in_python() -> None:
    topology = rel.Topology("fallback")
    source = topology.source(rel.rows([({"a": 1}, [3, 1])], schema={"m": dict[str, int], "xs": list[int]}), name="in")
    made = source.map(lambda t: (t.m["a"], sorted(t.xs)[0]), name="f", schema={"a": int, "x": int})
    made.sink(rel.list(), name="out")
    assert "not compiled" in str(topology.explain())
    assert [tuple(row) for row in rel.run(topology)["out"]] == [(1, 1)]
