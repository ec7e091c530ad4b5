"""What keeps the first or the last tuple of a key keeps it whole, nulls included (B2)."""

# ruff: noqa: DTZ001  (times without a zone are what is tested)

from __future__ import annotations

import datetime as dt
import itertools
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import testing

pytestmark = pytest.mark.edges

LONG = "a text that doesn't fit into sixteen bytes, "


class Point(NamedTuple):
    x: int
    y: str


VALUES: dict[str, tuple[Any, list[Any]]] = {  # a type, and values of it
    "int": (int | None, [1, -5, 2**63 - 1]),
    "bool": (bool | None, [False, True]),
    "float": (float | None, [0.0, 2.5]),
    "text": (str | None, ["", "b", LONG + "one", LONG + "two"]),
    "bytes": (bytes | None, [b"", b"\0", b"\xff" * 40]),
    "decimal": (Annotated[Decimal, pa.decimal128(12, 2)] | None, [Decimal("0.00"), Decimal("1.50")]),
    "time": (dt.datetime | None, [dt.datetime(1970, 1, 1), dt.datetime(2026, 11, 29, 9)]),
    "date": (dt.date | None, [dt.date(1970, 1, 1), dt.date(2026, 11, 29)]),
    "uuid": (uuid.UUID | None, [uuid.UUID(int=0), uuid.UUID(int=2**127)]),
    "list": (list[int] | None, [[], [1, 2], list(range(20))]),
    "class": (Point | None, [Point(0, ""), Point(3, LONG)]),
}


def drawn(name: str) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """Rows of three keys, half of whose values are null: (key, number, two values, time)."""
    kind, values = VALUES[name]
    draw = random.Random(name)
    some = [None] * len(values) + values
    rows = [(draw.choice("abc"), n, draw.choice(some), draw.choice(some), n) for n in range(60)]
    return {"k": str, "n": int, "x": kind, "y": kind, "at": int}, rows


def last_of(rows: list[tuple[Any, ...]], part: Callable[[tuple[Any, ...]], Any]) -> dict[Any, tuple[Any, ...]]:
    """The last row of each part."""
    return {part(row): row for row in rows}


def first_of(rows: list[tuple[Any, ...]], part: Callable[[tuple[Any, ...]], Any]) -> dict[Any, tuple[Any, ...]]:
    return last_of(rows[::-1], part)


def each(pick: Callable[..., Any]) -> dict[str, Any]:
    return {f"its_{field}": pick(field, nulls=True) for field in ("n", "x", "y", "at")}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("lane", ["auto", "python"])
def test_reduce_and_fold_give_whole_rows(name: str, lane: str) -> None:
    schema, rows = drawn(name)
    right = sorted(last_of(rows, lambda row: row[0]).values())

    def keyed(s: Any) -> Any:
        return s.map(lambda t: t, name="same", schema=schema, lane=lane).key_by("k")

    assert (
        sorted(map(tuple, testing.collect(lambda s: keyed(s).reduce(lambda old, new: new, name="r"), rows, schema)))
        == right
    )
    inner = {field: schema[field] for field in ("n", "x", "y", "at")}
    start = (0, VALUES[name][1][-1], VALUES[name][1][-1], 0)
    folded = testing.collect(
        lambda s: keyed(s).fold(lambda last, t: tuple(t)[1:], start, name="f", schema=inner), rows, schema
    )
    assert sorted(map(tuple, folded)) == right
    firsts = testing.collect(lambda s: keyed(s).reduce(lambda old, new: old, name="r"), rows, schema)
    assert sorted(map(tuple, firsts)) == sorted(first_of(rows, lambda row: row[0]).values())


def test_reduce_of_the_issue() -> None:
    rows, schema = [("a", 1, 9), ("a", 2, None)], {"k": str, "j": int, "x": int | None}
    assert testing.collect(lambda s: s.key_by("k").reduce(lambda old, new: new, name="latest"), rows, schema) == [
        ("a", 2, None)
    ]
    made = {"v": int | None}
    assert testing.collect(lambda s: s.key_by("k").fold(lambda a, t: t.x, 0, name="f", schema=made), rows, schema) == [
        ("a", None)
    ]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("pick", [rel.first, rel.last])
def test_first_and_last_with_nulls_in_all_aggregates(name: str, pick: Any) -> None:
    schema, rows = drawn(name)
    of = first_of if pick is rel.first else last_of

    def got(declare: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, testing.collect(declare, rows, schema)), key=repr)

    def right(found: dict[Any, tuple[Any, ...]], *, keys: int = 1) -> list[tuple[Any, ...]]:
        heads = {part: part if isinstance(part, tuple) else (part,) for part in found}
        return sorted(((*heads[part][:keys], *row[1:]) for part, row in found.items()), key=repr)

    by_key = right(of(rows, lambda row: row[0]))
    assert got(lambda s: s.key_by("k").aggregate(name="w", **each(pick))) == by_key
    assert got(lambda s: s.key_by("k").aggregate(name="w", two_steps=True, **each(pick))) == by_key
    whole = [rows[0 if pick is rel.first else -1][1:]]
    assert got(lambda s: s.aggregate(name="w", **each(pick))) == whole

    def timed(s: Any) -> Any:
        return s.event_time("at", name="time").key_by("k")

    windows = of(rows, lambda row: (row[0], row[4] // 7))
    right_windows = sorted(((k, w * 7, w * 7 + 7, *row[1:]) for (k, w), row in windows.items()), key=repr)
    assert got(lambda s: timed(s).window(seconds=7).aggregate(name="w", **each(pick))) == right_windows
    sliding = [(row, start) for row in rows for start in range(row[4] // 3 * 3, row[4] - 9, -3)]
    found = {}
    for row, start in sliding if pick is rel.last else sliding[::-1]:
        found[row[0], start] = row
    right_sliding = sorted(((k, start, start + 9, *row[1:]) for (k, start), row in found.items()), key=repr)
    assert got(lambda s: timed(s).window(seconds=9, slide=3).aggregate(name="w", **each(pick))) == right_sliding
    sessions = [
        list(group)
        for key in "abc"
        for group in itertools.chain.from_iterable([cut([row for row in rows if row[0] == key], gap=4)])
    ]
    right_sessions = sorted(
        ((s[0][0], s[0][4], s[-1][4] + 4, *(s[0] if pick is rel.first else s[-1])[1:]) for s in sessions), key=repr
    )
    assert got(lambda s: timed(s).session(gap=4).aggregate(name="w", **each(pick))) == right_sessions


def cut(rows: list[tuple[Any, ...]], gap: int) -> list[list[tuple[Any, ...]]]:
    """Sessions of the rows of a key."""
    made: list[list[tuple[Any, ...]]] = []
    for row in rows:
        if made and row[4] - made[-1][-1][4] <= gap:
            made[-1].append(row)
        else:
            made.append([row])
    return made


def test_updates_and_counts_keep_rows_whole() -> None:
    schema, rows = drawn("text")
    updates = testing.collect(
        lambda s: s.key_by("k").aggregate(name="w", emit="update", **each(rel.last)), rows, schema
    )
    assert list(map(tuple, updates)) == rows
    by_count = testing.collect(lambda s: s.window(count=7, slide=3).aggregate(name="w", **each(rel.last)), rows, schema)
    assert list(map(tuple, by_count)) == [rows[end - 1][1:] for end in range(7, 61, 3)]


def test_a_null_is_left_out_unless_it_counts() -> None:
    rows, schema = [(1, None), (2, 9), (3, None)], {"n": int, "x": int | None}
    wanted: dict[str, Any] = {
        "first": rel.first("x"),
        "last": rel.last("x"),
        "first_too": rel.first("x", nulls=True),
        "last_too": rel.last("x", nulls=True),
    }
    assert testing.collect(lambda s: s.aggregate(name="w", **wanted), rows, schema) == [(9, 9, None, None)]
