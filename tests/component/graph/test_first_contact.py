"""What somebody writes who comes from another system: it works, or the message tells what to write instead."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import RayelasticError


class Row(NamedTuple):
    n: int


ROWS = [Row(1), Row(2)]


def declared(declare: Callable[[rel.Stream], rel.Stream]) -> list[Any]:
    return testing.collect(declare, ROWS, Row)


def test_local_classes_may_be_annotations() -> None:
    class Out(NamedTuple):
        twice: int

    def twice(t: Row) -> Out:
        return Out(2 * t.n)

    assert declared(lambda s: s.map(twice, name="twice", lane="python")) == [(2,), (4,)]


def test_plain_types_may_be_null() -> None:
    def odd(t: Row) -> int | None:
        return t.n if t.n % 2 else None

    assert declared(lambda s: s.map(odd, name="odd", schema=int | None)) == [(1,), (None,)]


def no_value(t: Row) -> None:
    assert t.n


def at_times(t: Row) -> Any:
    if t.n > 1:
        return Row(t.n)
    return None


def unknown(t: Row) -> Missing:  # type: ignore[name-defined]  # noqa: F821
    return t


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda s: s.map(lambda t: None, name="m"), "it returns None for all tuples"),
        (lambda s: s.map(at_times, name="m"), "Leave tuples out by filter_map or filter: map emits one for each"),
        (lambda s: s.map(unknown, name="m", lane="python"), "its annotations name 'Missing', which is unknown"),
        (lambda s: s.key_by(lambda t: -t.n), "key_by takes fields, and the function computes. Write .with_columns"),
        (lambda s: s.map(at_times, name="m", schema=int | str), "int | str doesn't fit a record"),
    ],
)
def test_messages_tell_what_to_write(declare: Callable[[rel.Stream], rel.Stream], said: str) -> None:
    with pytest.raises(RayelasticError) as caught:
        declared(declare)
    assert said in str(caught.value)


@dataclasses.dataclass
class Point:
    x: int
    name: str | None = None


def given(rows: list[Any], schema: Any = None) -> list[tuple[Any, ...]]:
    topology = rel.Topology("rows")
    topology.source(rel.rows(rows, schema), name="rows").sink(rel.list(), name="out")
    return [tuple(t) for t in rel.run(topology)["out"]]


def test_rows_may_be_mappings_and_dataclasses() -> None:
    assert given([{"b": "x", "a": 1}, {"a": 2, "b": "y"}], {"a": int, "b": str}) == [(1, "x"), (2, "y")]
    assert given([Point(1), Point(2, "b")]) == [(1, None), (2, "b")]
    assert given([{"a": 1, "b": None}, {"a": 2, "b": "y"}]) == [(1, None), (2, "y")]
    assert given([{"x": 1}], Point) == [(1, None)]


@pytest.mark.parametrize(
    ("rows", "schema", "said"),
    [
        ([{"a": 1}, {"a": "x"}], None, "can't infer the type of field 'a': its values are int and str. Pass schema="),
        ([{"a": None}], None, "can't infer the type of field 'a': its values are NoneType"),
        ([{"a": 1}, {"b": 1}], {"a": int}, "row 1 has no field 'a'"),
        ([{"a": 1}, {"a": 1, "b": 1}], None, "row 1 has the field 'b'"),
        ([Point(1), {"y": 1}], None, "row 1 has no field 'x'"),
    ],
)
def test_rows_that_do_not_fit(rows: list[Any], schema: Any, said: str) -> None:
    with pytest.raises(RayelasticError) as caught:
        rel.rows(rows, schema)
    assert said in str(caught.value)


def test_the_package_is_a_command() -> None:
    shown = subprocess.run([sys.executable, "-m", "rayelastic", "--help"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("Usage: rayelastic")
